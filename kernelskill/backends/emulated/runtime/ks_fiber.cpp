// Fibers: a switch of stack pointers, and pools of stacks.
#include <sys/mman.h>

#include <algorithm>

#include "ks_engine.h"

#if defined(__x86_64__)
asm(R"(.text
.globl ks_switch
.type ks_switch,@function
ks_switch:
 pushq %rbp
 pushq %rbx
 pushq %r12
 pushq %r13
 pushq %r14
 pushq %r15
 movq %rsp,(%rdi)
 movq %rsi,%rsp
 popq %r15
 popq %r14
 popq %r13
 popq %r12
 popq %rbx
 popq %rbp
 ret
.size ks_switch,.-ks_switch
)");
#elif defined(__aarch64__)
asm(R"(.text
.globl ks_switch
ks_switch:
 sub sp,sp,#160
 stp x19,x20,[sp,#0]
 stp x21,x22,[sp,#16]
 stp x23,x24,[sp,#32]
 stp x25,x26,[sp,#48]
 stp x27,x28,[sp,#64]
 stp x29,x30,[sp,#80]
 stp d8,d9,[sp,#96]
 stp d10,d11,[sp,#112]
 stp d12,d13,[sp,#128]
 stp d14,d15,[sp,#144]
 mov x9,sp
 str x9,[x0]
 mov sp,x1
 ldp x19,x20,[sp,#0]
 ldp x21,x22,[sp,#16]
 ldp x23,x24,[sp,#32]
 ldp x25,x26,[sp,#48]
 ldp x27,x28,[sp,#64]
 ldp x29,x30,[sp,#80]
 ldp d8,d9,[sp,#96]
 ldp d10,d11,[sp,#112]
 ldp d12,d13,[sp,#128]
 ldp d14,d15,[sp,#144]
 add sp,sp,#160
 ret
)");
#else
#error "the emulated device knows x86-64 and AArch64 processors"
#endif

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
#if defined(__x86_64__)
  void** slot = (void**)top;
  *--slot = nullptr;
  *--slot = (void*)entry;
  for (int i = 0; i < 6; i++) *--slot = nullptr;
  fiber.stack_pointer = slot;
#else
  char* slot = (char*)top - 160;
  std::fill(slot, slot + 160, 0);
  ((void**)slot)[11] = (void*)entry;
  fiber.stack_pointer = slot;
#endif
  return index;
}
}  // namespace ks
