// Pools of stacks for fibers.
#include <sys/mman.h>

#include "ks_engine.h"
#include "ks_switch.h"

namespace ks {
constexpr int kChunk = 64;

void FiberPool::require(uint64_t local_bytes, uint64_t stack_bytes) {
  uint64_t needed = (local_bytes + stack_bytes + 4095) & ~uint64_t(4095);
  if (needed <= region_) return;
  release();
  region_ = needed;
}

void FiberPool::release() {
  for (auto& chunk : chunks_) munmap(chunk.first, chunk.second);
  chunks_.clear();
  fibers_.clear();
  free_.clear();
}

FiberPool::~FiberPool() { release(); }

int FiberPool::take(void (*entry)()) {
  if (free_.empty()) {
    uint64_t bytes = region_ * kChunk;
    void* memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return -1;
    chunks_.push_back({memory, bytes});
    for (int i = kChunk; i-- > 0;) free_.push_back((int)fibers_.size() + i);
    for (int i = 0; i < kChunk; i++) fibers_.push_back({nullptr, (uint8_t*)memory + i * region_});
  }
  int index = free_.back();
  free_.pop_back();
  Fiber& fiber = fibers_[index];
  // Tops are staggered, so that equal frames of different fibers fall into different cache sets.
  uintptr_t top = ((uintptr_t)fiber.region + region_ - (size_t)(index % 61) * 192) & ~uintptr_t(15);
  fiber.stack_pointer = begin_stack((void*)top, entry);
  return index;
}
}  // namespace ks
