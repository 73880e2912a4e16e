// A switch of stacks for fibers, without a system call. One source file of a program includes this.
#pragma once
#include <algorithm>

// Keeps where the caller stands in `save`, and goes on where the stack `to` was left.
extern "C" void ks_switch(void** save, void* to);

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
#error "fibers know x86-64 and AArch64 processors"
#endif

namespace ks {
// Returns what ks_switch takes to begin with `entry`, which never returns, on a stack that ends at `top`: a multiple of 16.
inline void* begin_stack(void* top, void (*entry)()) {
#if defined(__x86_64__)
  void** slot = (void**)top;
  *--slot = nullptr;
  *--slot = (void*)entry;
  for (int i = 0; i < 6; i++) *--slot = nullptr;
#else
  char* slot = (char*)top - 160;
  std::fill(slot, slot + 160, 0);
  ((void**)slot)[11] = (void*)entry;
#endif
  return slot;
}
}  // namespace ks
