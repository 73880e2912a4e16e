"""Blocks of a kernel that fit on one multiprocessor, and what limits them.

Source: the CUDA occupancy calculator (`cuda_occupancy.h`) and the CUDA C++ Programming Guide.
"""

from __future__ import annotations

import re
from typing import Literal

from kernelskill.schema.base import Record
from kernelskill.schema.device import Gpu

Limit = Literal["registers", "shared memory", "threads", "blocks"]

_WARP = 32
_SCHEDULERS = 4
"""Sub-partitions of a multiprocessor; each holds a quarter of the registers."""
_REGISTER_STEP = 8
"""Registers of a thread are allocated in eights: 256 a warp."""
_MAX_REGISTERS_PER_THREAD = 255


class Occupancy(Record):
    """How many blocks are resident on one multiprocessor, and why not more."""

    blocks_per_sm: int
    fraction: float
    """Resident warps over the most that the multiprocessor holds, 0 to 1."""
    limit: Limit
    """The scarcest resource; ties go to the one that a kernel can change least."""
    limits: dict[str, int]
    """Blocks that each resource alone would allow."""


def occupancy(
    gpu: Gpu, registers: int, shared_bytes: int, threads: int, *, shared_capacity: int | None = None
) -> Occupancy:
    """Return the theoretical occupancy of a kernel.

    Args:
        gpu: The GPU.
        registers: Registers a thread, as the compiler reports them.
        shared_bytes: Static and dynamic shared memory of a block, without what the system reserves.
        threads: Threads of a block.
        shared_capacity: Shared memory configured on a multiprocessor, in bytes; by default the most
            that the GPU can give.

    Raises:
        ValueError: `threads` is not 1 to 1024, or a count is negative.
    """
    if not 1 <= threads <= 1024:
        raise ValueError(f"a block has 1 to 1024 threads, not {threads}")
    if registers < 0 or shared_bytes < 0:
        raise ValueError("registers and shared memory cannot be negative")
    warps = -(-threads // _WARP)
    limits: dict[Limit, int] = {
        "blocks": gpu.max_blocks_per_sm,
        "threads": gpu.max_threads_per_sm // _WARP // warps,
        "registers": _by_registers(gpu, registers, warps),
        "shared memory": _by_shared(gpu, shared_bytes, shared_capacity),
    }
    blocks = min(limits.values())
    return Occupancy(
        blocks_per_sm=blocks,
        fraction=blocks * warps / (gpu.max_threads_per_sm // _WARP),
        limit=next(name for name, value in limits.items() if value == blocks),
        limits=dict(limits),
    )


def allocated_registers(registers: int) -> int:
    """Return the registers that a thread occupies: the asked ones rounded up to the allocation step."""
    return -(-max(registers, 1) // _REGISTER_STEP) * _REGISTER_STEP


def compute_capability(gpu: Gpu) -> tuple[int, int]:
    """Return the compute capability, for example (9, 0) for `sm_90a`."""
    digits = re.sub(r"\D", "", gpu.architecture)
    return int(digits[:-1]), int(digits[-1])


def _by_registers(gpu: Gpu, registers: int, warps: int) -> int:
    if registers > _MAX_REGISTERS_PER_THREAD:
        return 0
    a_warp = allocated_registers(registers) * _WARP
    # a launch is refused as if every sub-partition had to hold the same number of the block's warps
    if a_warp * (-(-warps // _SCHEDULERS) * _SCHEDULERS) > gpu.registers_per_sm:
        return 0
    return gpu.registers_per_sm // _SCHEDULERS // a_warp * _SCHEDULERS // warps


def _by_shared(gpu: Gpu, shared_bytes: int, capacity: int | None) -> int:
    modern = compute_capability(gpu) >= (8, 0)
    step = 128 if modern else 256
    reserved = 1024 if modern else 0
    if shared_bytes > gpu.shared_bytes_per_block:
        return 0
    used = -(-(shared_bytes + reserved) // step) * step
    available = gpu.shared_bytes_per_sm if capacity is None else capacity
    return min(available // used, gpu.max_blocks_per_sm) if used else gpu.max_blocks_per_sm
