// Registered kernels.
#pragma once

#include "specification.h"

namespace recorder {

// The kernel behind a host stub or a kernel handle, or null.
Kernel* find_kernel(const void* function);

}  // namespace recorder
