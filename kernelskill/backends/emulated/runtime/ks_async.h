// Asynchronous copies and memory barriers. Copies are carried out at once.
#pragma once
#include "ks_device.h"

namespace ks {

template <unsigned N>
static inline void copy_async(Thread& t, uint64_t target, uint64_t source, uint32_t given, int32_t read, int32_t write) {
  uint8_t* to = shared<N, Access::write>(t, target, write);
  if (given >= N) {
    memcpy(to, global<N, Access::read>(t, source, read), N);
    return;
  }
  memset(to, 0, N);
  for (uint32_t i = 0; i < given; i++) to[i] = *global<1, Access::read>(t, source + i, read);
}
}  // namespace ks
