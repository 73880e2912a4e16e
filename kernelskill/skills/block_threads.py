"""How the threads of a block are counted, where every launch has whole warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillRefused

WARP = 32
_MOST = 1024


@dataclass(frozen=True)
class BlockThreads:
    """C text for a thread's number in its block and for how many there are."""

    thread: str
    threads: str
    sizes: tuple[int, ...]
    """Threads of a block at each launch."""


def read_block_threads(entries: Sequence[KernelLaunch]) -> BlockThreads:
    """Return how the threads of a block are counted.

    Raises:
        SkillRefused: A launch's block is not known, or is not whole warps.
    """
    sizes, is_line = [], True
    for entry in entries:
        shape = entry.launch.block.values
        known = [size for size in shape if size is not None]
        if len(known) != len(shape):
            raise SkillRefused(f"the block size on line {entry.launch.line} is not a constant")
        size = prod(known)
        if size % WARP or not 0 < size <= _MOST:
            raise SkillRefused(f"the block on line {entry.launch.line} is not whole warps: {size} threads")
        sizes.append(size)
        is_line = is_line and shape[1:] == (1, 1)
    if is_line:
        return BlockThreads("threadIdx.x", "blockDim.x", tuple(sizes))
    thread = "threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)"
    return BlockThreads(thread, "blockDim.x * blockDim.y * blockDim.z", tuple(sizes))
