"""Device functions for asynchronous copies from global to shared memory."""

from __future__ import annotations

from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.schedule import Schedule

_ASYNC_BUFFERS = 3
"""Tiles in shared memory: one in use, two on their way."""
_TENSOR_BUFFERS = 4
"""For tensor cores, which use a tile up faster than it arrives: three on their way."""

_COPY = """// Starts copying kBytes to shared memory; zeros where nothing is to be taken. Older devices copy at once.
template <int kBytes>
__device__ __forceinline__ void {name}(void* to, const void* from, bool take) {
#if __CUDA_ARCH__ >= 800
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const int taken = take ? kBytes : 0;
    if (kBytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(taken));
    }
    else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(kBytes), "r"(taken));
    }
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
_AWAIT = """// Waits until all groups but the newest {left} have arrived.
__device__ __forceinline__ void {name}() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group {left};" ::: "memory");
#endif
}
"""


def buffer_count(schedule: Schedule) -> int:
    """Return how many tiles of each staged operand lie in shared memory."""
    many = _TENSOR_BUFFERS if schedule.tensor else _ASYNC_BUFFERS
    return {"double": 2, "async": many}.get(schedule.copy, 1)


def use_copies(context: Context) -> None:
    """Make the functions available; `context.helper_names` holds their names by key."""
    texts = {"copy_async": _COPY, "end_copies": _END, "await_copies": _AWAIT}
    for key, text in texts.items():
        if key not in context.helpers:
            name = context.names.fresh(key)
            context.helper_names[key] = name
            filled = text.replace("{name}", name).replace("{left}", str(buffer_count(context.schedule) - 2))
            context.helpers[key] = filled
