// What candidate code may do on this machine: compute, and ask our runtime. Nothing else.
#pragma once

#include <string>

namespace recorder {

// Gives up rights, files, users and system calls, in this order, for good. Returns the path under which the
// files of `root` are found afterwards.
std::string enter_sandbox(const std::string& root, unsigned long cpu_seconds);

// Whether what was printed no longer fits the pipe that swallows it.
bool output_overflowed();

}  // namespace recorder
