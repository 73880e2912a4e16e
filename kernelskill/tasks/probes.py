"""Wrong answers that a good test refuses. Pure array work; asks no candidate anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernelskill.tasks.arrays import Array
from kernelskill.tasks.dtypes import is_complex, is_floating

TAIL_SHARE = 100
"""The last 1/100 of an output is zeroed, at least one element."""


def probes(expected: Array, own: np.dtype[Any], inputs: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
    """Yield each probe's name and values, in the output's own type.

    Args:
        expected: What the reference gave.
        own: The output's own type.
        inputs: The inputs of the same call; those with as many elements of the same type are copied.
    """
    right = expected.astype(own)
    yield "zeros", np.zeros(expected.shape, own)
    for byte in (0xFF, 0x7B):
        raw = np.full(right.nbytes, byte, np.uint8)
        yield f"memory that was never written (0x{byte:02X})", raw.view(own).reshape(expected.shape)
    mean = _mean(expected, own)
    if mean is not None:
        yield "the mean everywhere", mean
    for name, array in inputs.items():
        if array.dtype == own and array.size == expected.size:
            yield f"a copy of input {name}", array.reshape(expected.shape)
    if right.size > 1:
        yield "the reference moved by one element", np.roll(right.reshape(-1), 1).reshape(expected.shape)
    tail = right.copy().reshape(-1)
    tail[tail.size - max(1, tail.size // TAIL_SHARE) :] = np.zeros((), own)
    yield "the reference with its last elements zeroed", tail.reshape(expected.shape)


def equals(probe: Array, expected: Array, mask: Array | None) -> bool:
    """Whether a probe is the reference itself wherever it counts."""
    right = expected.astype(probe.dtype)
    if mask is None:
        return bool(np.array_equal(_bits(probe), _bits(right)))
    keep = np.broadcast_to(mask, expected.shape)
    return bool(np.array_equal(_bits(probe[keep]), _bits(right[keep])))


def _bits(array: Array) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.names is None and (is_floating(flat.dtype) or is_complex(flat.dtype)):
        flat = flat + np.zeros((), flat.dtype)  # -0.0 is 0.0
    return flat.view(np.uint8)


def _mean(expected: Array, own: np.dtype[Any]) -> Array | None:
    if expected.dtype.names is not None or expected.size < 2 or expected.dtype.kind == "b":
        return None
    first = expected.reshape(-1)[0]
    if bool(np.all(expected == first)):
        return None
    wide = np.complex128 if is_complex(expected.dtype) else np.float64
    mean = expected.mean(dtype=wide) if expected.dtype.kind != "V" else expected.astype(wide).mean()
    return np.full(expected.shape, np.asarray(mean).astype(own), own)


def first_unusable(expected: Array, mask: Array | None) -> tuple[int, ...] | None:
    """Return where the reference is NaN or infinite though it counts, or None."""
    if expected.dtype.names is not None or not (is_floating(expected.dtype) or is_complex(expected.dtype)):
        return None
    bad = ~np.isfinite(expected)
    if mask is not None:
        bad &= np.broadcast_to(mask, expected.shape)
    if not bool(bad.any()):
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), expected.shape))
