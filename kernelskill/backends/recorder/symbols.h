// Device variables that the host object registers.
#pragma once

namespace recorder {

void register_symbol(const void* host, const char* name);

}  // namespace recorder
