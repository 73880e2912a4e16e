// How many blocks of a kernel a multiprocessor holds, by NVIDIA's own calculator.
#pragma once

#include "specification.h"

namespace recorder {

// Blocks of `threads` threads a multiprocessor; -1 where the calculator refuses.
int blocks_per_sm(const Kernel& kernel, int threads, size_t dynamic_shared);

// Largest dynamic shared memory with which `blocks` blocks still fit; false where the calculator refuses.
bool shared_for_blocks(const Kernel& kernel, int blocks, int threads, size_t* bytes);

}  // namespace recorder
