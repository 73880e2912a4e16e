"""The launcher that the self-test of the `cuda` backend runs: its modes, its signature, its data."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kernelskill.schema.task import ElementType, Parameter, Signature

SOURCE = Path(__file__).with_name("selftest.cu")
Floats = npt.NDArray[np.float32]


class Mode(IntEnum):
    """What the launcher does; in the order of `selftest.cu`."""

    SCALE_ADD = 0
    OVERRUN = 1
    FAR_AWAY = 2
    ENDLESS = 3
    TRAP = 4
    COUNT = 5
    STREAMS = 6
    GRAPH = 7
    SHARED = 8
    COOPERATIVE = 9
    CLUSTER = 10
    COPY = 11
    MANY = 12
    TEMPORARY = 13
    TINY = 14
    CONSTANT = 15
    READS_BACK = 16
    FAILS = 17


def selftest_signature() -> Signature:
    """Return the launcher's signature."""
    real = ElementType(name="float", dtype="float32", size_bytes=4)
    whole = ElementType(name="int", dtype="int32", size_bytes=4)
    return Signature(
        symbol="selftest",
        parameters=(
            Parameter(name="x", kind="pointer", element=real, is_const=True, declared="const float*"),
            Parameter(name="y", kind="pointer", element=real, declared="float*"),
            Parameter(name="n", kind="scalar", element=whole, declared="int"),
            Parameter(name="mode", kind="scalar", element=whole, declared="int"),
        ),
        returns="int",
    )


def ramp(size: int) -> Floats:
    """Return 0 to 1020, again and again: small whole numbers, so that sums are exact."""
    return (np.arange(size, dtype=np.int64) % 1021).astype(np.float32)
