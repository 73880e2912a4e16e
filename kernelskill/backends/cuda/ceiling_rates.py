"""Which rates are measured: the mode of `ceilings.cu`, its size on a GPU, and what one run of it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from kernelskill.hardware.ceilings import (
    FMA_FP32,
    FMA_FP64,
    GROUP_PRODUCTS,
    L2_READ,
    STREAM_COPY,
    WARP_PRODUCTS,
)
from kernelskill.schema.device import Gpu

THREADS = 256
_GROUP_THREADS = 128
_DEEP = 4
_LINKS = 8 * 32
"""Links of all chains of a thread in one round."""
_VECTOR = 16
_LEAST_STREAM = 1 << 30
_MOST_OF_MEMORY = 8
_GROUPS_PER_SM = 4


class Mode(IntEnum):
    """What the launcher does; in the order of `ceilings.cu`."""

    READ = 0
    READ_3_WRITE_1 = 1
    READ_2_WRITE_1 = 2
    COPY = 3
    READ_1_WRITE_2 = 4
    WRITE = 5
    L2_READ = 6
    FMA_FP32 = 7
    FMA_FP64 = 8
    FMA_HALF = 9
    SPECIAL = 10
    ATOMIC_SPREAD = 11
    ATOMIC_SAME = 12
    ATOMIC_SHARED = 13
    WARP_PRODUCTS = 14
    GROUP_PRODUCTS = 15
    LAUNCHES = 16


@dataclass(frozen=True)
class Shape:
    """Sizes of one call of the launcher."""

    elements: int
    """Of a slice for streams, of the whole array for the L2 and atomics."""
    blocks: int
    buffer_bytes: int


@dataclass(frozen=True)
class Rate:
    """One rate and how it is measured."""

    name: str
    mode: Mode
    unit: Literal["byte/s", "flop/s", "op/s"]
    meaning: str
    shape: Callable[[Gpu], Shape]
    amount: Callable[[Shape], float]
    """What one round does, in the unit of the rate."""
    rounds: int = 0
    """Rounds of the first try; 0 where the size alone says how long it takes."""
    flush_l2: bool = False
    needs: str = ""
    """Beginning of the only architectures that have it."""


def _stream(name: str, mode: Mode, reads: int, writes: int) -> Rate:
    slices = reads + writes

    def shape(gpu: Gpu) -> Shape:
        wanted = max(_LEAST_STREAM, 32 * gpu.l2_bytes)
        elements = min(wanted, gpu.memory_bytes // _MOST_OF_MEMORY) // slices // _VECTOR
        return Shape(elements=elements, blocks=1, buffer_bytes=elements * slices * _VECTOR)

    return Rate(
        name=name,
        mode=mode,
        unit="byte/s",
        meaning=f"device memory, {reads} read{'' if reads == 1 else 's'} to {writes} written, 16 bytes a lane",
        shape=shape,
        amount=lambda shape: float(shape.buffer_bytes),
        flush_l2=True,
    )


def _resident(gpu: Gpu) -> Shape:
    return Shape(elements=1, blocks=gpu.sm_count * (gpu.max_threads_per_sm // THREADS), buffer_bytes=4096)


def _in_l2(element_bytes: int) -> Callable[[Gpu], Shape]:
    def shape(gpu: Gpu) -> Shape:
        elements = max(1 << 20, gpu.l2_bytes // 4) // element_bytes
        blocks = _resident(gpu).blocks
        return Shape(elements=elements, blocks=blocks, buffer_bytes=elements * element_bytes)

    return shape


def _groups(gpu: Gpu) -> Shape:
    return Shape(elements=1, blocks=gpu.sm_count * _GROUPS_PER_SM, buffer_bytes=4096)


def _lanes(times: float) -> Callable[[Shape], float]:
    return lambda shape: shape.blocks * THREADS * times


RATES = (
    _stream("stream 1:0", Mode.READ, 1, 0),
    _stream("stream 3:1", Mode.READ_3_WRITE_1, 3, 1),
    _stream("stream 2:1", Mode.READ_2_WRITE_1, 2, 1),
    _stream(STREAM_COPY, Mode.COPY, 1, 1),
    _stream("stream 1:2", Mode.READ_1_WRITE_2, 1, 2),
    _stream("stream 0:1", Mode.WRITE, 0, 1),
    Rate(L2_READ, Mode.L2_READ, "byte/s", "reads past the L1 of a quarter of the L2, 16 bytes a lane",
         _in_l2(_VECTOR), _lanes(_DEEP * _VECTOR), rounds=64),
    Rate(FMA_FP32, Mode.FMA_FP32, "flop/s", "fused multiply-add, counted as two", _resident,
         _lanes(2 * _LINKS), rounds=64),
    Rate(FMA_FP64, Mode.FMA_FP64, "flop/s", "fused multiply-add, counted as two", _resident,
         _lanes(2 * _LINKS), rounds=8),
    Rate("FMA fp16 pairs", Mode.FMA_HALF, "flop/s", "fused multiply-add of two halves, counted as four", _resident,
         _lanes(4 * _LINKS), rounds=64),
    Rate("special functions", Mode.SPECIAL, "op/s", "ex2.approx", _resident, _lanes(_LINKS), rounds=16),
    Rate("atomics, spread", Mode.ATOMIC_SPREAD, "op/s", "32-bit additions in the L2, neighbours side by side",
         _in_l2(4), _lanes(_DEEP), rounds=16),
    Rate("atomics, one address", Mode.ATOMIC_SAME, "op/s", "32-bit additions of all lanes to one element", _resident,
         _lanes(_DEEP), rounds=4),
    Rate("atomics, shared memory", Mode.ATOMIC_SHARED, "op/s", "32-bit additions without conflicts", _resident,
         _lanes(_DEEP), rounds=64),
    Rate(WARP_PRODUCTS, Mode.WARP_PRODUCTS, "flop/s", "16 x 16 x 16 by a warp, sums in fp32", _resident,
         lambda shape: shape.blocks * (THREADS // 32) * _DEEP * 2.0 * 16**3, rounds=64),
    Rate(GROUP_PRODUCTS, Mode.GROUP_PRODUCTS, "flop/s", "64 x 128 x 16 by a warp group from shared memory, sums in fp32",
         _groups, lambda shape: shape.blocks * _DEEP * 2.0 * 64 * 128 * 16, rounds=64, needs="sm_90a"),
)  # fmt: skip
"""Everything that has a rate, in the order in which it is measured."""
