"""Device functions for asynchronous copies from global to shared memory."""

from __future__ import annotations

from kernelskill.algorithm.lowering.context import Context

ASYNC_BUFFERS = 3
"""Tiles in shared memory: one in use, two on their way."""

_COPY = """// Starts copying kBytes to shared memory; zeros where nothing is to be taken. Older devices copy at once.
template <int kBytes>
__device__ __forceinline__ void {name}(void* to, const void* from, bool take) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(kBytes), "r"(take ? kBytes : 0));
#else
    for (int b = 0; b < kBytes; ++b) static_cast<char*>(to)[b] = take ? static_cast<const char*>(from)[b] : 0;
#endif
}
"""
_END = """// Ends a group of copies.
__device__ __forceinline__ void {name}() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
"""
_AWAIT = """// Waits until all groups but the newest have arrived.
__device__ __forceinline__ void {name}() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group {left};" ::: "memory");
#endif
}
"""


def use_copies(context: Context) -> None:
    """Make the functions available; `context.helper_names` holds their names by key."""
    texts = {"copy_async": _COPY, "end_copies": _END, "await_copies": _AWAIT}
    for key, text in texts.items():
        if key not in context.helpers:
            name = context.names.fresh(key)
            context.helper_names[key] = name
            filled = text.replace("{name}", name).replace("{left}", str(ASYNC_BUFFERS - 2))
            context.helpers[key] = filled
