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
// A barrier object of 64 bits in shared memory: pending and expected arrivals (20 bits each), bytes still to come
// (22 bits), phase (1 bit). The block never leaves its operating-system thread, so plain accesses do.
struct Mbarrier {
  uint64_t pending : 20, expected : 20, bytes : 23, phase : 1;
};
static inline Mbarrier mbarrier_read(const uint8_t* place) { return get<Mbarrier>(place, 0); }
static inline void mbarrier_settle(uint8_t* place, Mbarrier b) {
  if (b.pending == 0 && b.bytes == 0) {
    b.pending = b.expected;
    b.phase ^= 1;
  }
  put<Mbarrier>(place, 0, b);
}
static inline uint64_t mbarrier_raw(const Mbarrier& b) {
  uint64_t raw;
  memcpy(&raw, &b, 8);
  return raw;
}
static inline void mbarrier_init(Thread& t, uint64_t address, uint32_t count, int32_t site) {
  Mbarrier b{count, count, 0, 0};
  put<Mbarrier>(shared<8, Access::atomic>(t, address, site), 0, b);
}
static inline uint64_t mbarrier_arrive_count(Thread& t, uint64_t address, uint32_t count, uint32_t bytes, int32_t site) {
  uint8_t* place = shared<8, Access::atomic>(t, address, site);
  Mbarrier b = mbarrier_read(place);
  uint64_t before = mbarrier_raw(b);
  b.bytes += bytes;
  b.pending -= count;
  mbarrier_settle(place, b);
  return before;
}
static inline void mbarrier_arrive(Thread& t, uint64_t address, uint32_t net, int32_t site) {
  if (net == 0) mbarrier_arrive_count(t, address, 1, 0, site);  // without it the copy adds one and takes it away
}
static inline bool mbarrier_done(Thread& t, uint64_t address, uint32_t phase, int32_t site) {
  bool done = mbarrier_read(shared<8, Access::atomic>(t, address, site)).phase != phase;
  if (done) t.epoch = t.warp_epoch = ++t.meetings;
  else ks_spin(t, site);
  return done;
}
static inline uint32_t mbarrier_phase_of(uint64_t state) { return (uint32_t)(state >> 63); }
}  // namespace ks
