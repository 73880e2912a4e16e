"""Compare arrays within a tolerance, safe against NaN. Decides nothing about candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelskill.schema.base import Record
from kernelskill.schema.task import Tolerance
from kernelskill.tasks.dtypes import is_complex, is_floating

Array = NDArray[Any]

CHUNK_ELEMENTS = 1 << 16
"""Elements compared at a time: temporaries stay in the cache of a core for outputs of any size."""

SMALLEST_SQUARES = 1e-290
"""Sums of squares below have lost digits."""

SAMPLE = 64

DEFAULT_TOLERANCES = {
    "float16": Tolerance(rtol=1e-2, atol=1e-3, scaled=True),
    "bfloat16": Tolerance(rtol=2e-2, atol=2e-3, scaled=True),
    "float32": Tolerance(rtol=1e-4, atol=1e-5, scaled=True),
    "complex64": Tolerance(rtol=1e-4, atol=1e-5, scaled=True),
    "float64": Tolerance(rtol=1e-10, atol=1e-12, scaled=True),
    "complex128": Tolerance(rtol=1e-10, atol=1e-12, scaled=True),
}
EXACT = Tolerance(rtol=0.0, atol=0.0)


class Comparison(Record):
    """What comparing one output with its expected values found."""

    ok: bool
    wrong: int
    """Elements outside the tolerance."""
    total: int
    """Elements compared; masked ones are not."""
    first_index: tuple[int, ...] | None = None
    """Where the first wrong element lies."""
    got: str = ""
    """The first wrong element as text."""
    expected: str = ""
    max_abs: float = 0.0
    """Largest absolute error among elements that are finite on both sides."""
    max_rel: float = 0.0
    nan_mismatch: int = 0
    """Elements that are NaN, or infinite, on one side only."""
    wrong_sample: tuple[int, ...] = ()
    """Flat indices of the first 64 wrong elements, for naming a pattern."""
    last_wrong: int | None = None


def default_tolerance(dtype: str) -> Tolerance:
    """Return the tolerance of an output whose element has this type; exact for integers and bool."""
    return DEFAULT_TOLERANCES.get(dtype, EXACT)


def compare(
    got: Array,
    expected: Array,
    tolerance: Tolerance,
    mask: Array | None = None,
    scale: float | None = None,
) -> Comparison:
    """Compare every element: right is |got - expected| <= atol + rtol * |expected|.

    NaN and infinities must stand at the same places. Integers are compared exactly unless the
    tolerance is not zero. Structured arrays are compared field by field.

    Args:
        got: Any shape; as many elements as `expected`.
        expected: May have a wider type than `got`.
        tolerance: With `scaled`, atol is multiplied by the root mean square of `expected`.
        mask: False where any value is right; the shape of `expected`.
        scale: The root mean square of `expected`, where it is known.
    """
    shape = expected.shape
    if got.size != expected.size:
        return Comparison(
            ok=False, wrong=expected.size, total=expected.size, got=str(got.shape), expected=str(shape)
        )
    if expected.dtype.names is not None:
        return _compare_fields(got, expected, tolerance, mask)
    flat_got, flat_expected = got.reshape(-1), expected.reshape(-1)
    flat_mask = None if mask is None else np.broadcast_to(mask, shape).reshape(-1)
    atol = tolerance.atol
    if tolerance.scaled and atol:
        atol *= root_mean_square(flat_expected, flat_mask) if scale is None else scale
    tally = _Tally(atol, tolerance.rtol)
    for start in range(0, flat_expected.size, CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        tally.add(start, flat_got[part], flat_expected[part], None if flat_mask is None else flat_mask[part])
    return tally.result(flat_got, flat_expected, shape)


def root_mean_square(expected: Array, mask: Array | None = None) -> float:
    """Return the root mean square of the finite, unmasked elements; 1.0 where there are none or all are 0."""
    total, count, largest = 0.0, 0, 0.0
    flat = expected.reshape(-1)
    flat_mask = None if mask is None else np.broadcast_to(mask, expected.shape).reshape(-1)
    for start in range(0, flat.size, CHUNK_ELEMENTS):
        chunk = slice(start, start + CHUNK_ELEMENTS)
        part = np.abs(_exact(flat[chunk])).astype(np.float64, copy=False)
        squares = _squares(part) if flat_mask is None else np.inf
        if not np.isfinite(squares):
            keep = np.isfinite(part)
            if flat_mask is not None:
                keep &= flat_mask[chunk].astype(bool)
            part = part[keep]
            squares = _squares(part)
        total += squares
        count += part.size
        largest = max(largest, float(part.max(initial=0.0)))
    if not largest:
        return 1.0
    if SMALLEST_SQUARES < total < np.inf:
        return float(np.sqrt(total / count))
    # The squares left the range of a double: taken again relative to the largest.
    exact = _exact(flat)
    relative = np.where(np.isfinite(exact), exact, 0.0) / largest
    return largest * root_mean_square(relative, flat_mask)


def _squares(part: Array) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.dot(part, part))


class _Tally:
    """Errors seen so far, chunk by chunk."""

    def __init__(self, atol: float, rtol: float) -> None:
        self.atol, self.rtol = atol, rtol
        self.total = self.wrong = self.nan_mismatch = 0
        self.max_abs = self.max_rel = 0.0
        self.sample: list[int] = []
        self.last: int | None = None
        self._scratch: list[Array] = []

    def add(self, start: int, got: Array, expected: Array, mask: Array | None) -> None:
        self.total += expected.size if mask is None else int(np.count_nonzero(mask))
        if mask is None and got.dtype == expected.dtype and np.array_equal(got, expected):
            return
        if is_floating(expected.dtype) or is_complex(expected.dtype):
            if mask is None and self._all_near(got, expected):
                return
            bad = self._add_floating(_exact(got), _exact(expected), mask)
        else:
            bad = self._add_integers(got, expected, mask)
        found = np.flatnonzero(bad)
        if found.size:
            self.wrong += found.size
            self.last = start + int(found[-1])
            room = SAMPLE - len(self.sample)
            self.sample.extend(start + int(index) for index in found[:room])

    def _all_near(self, got: Array, expected: Array) -> bool:
        """Whether every element is finite and near: the usual case, which needs no further look."""
        with np.errstate(all="ignore"):
            error, size, limit = self._errors(got, expected)
            np.multiply(size, self.rtol, out=limit)
            np.add(limit, self.atol, out=limit)
            largest = float(error.max(initial=0.0))
            if not np.isfinite(largest) or not np.less_equal(error, limit).all():
                return False
            nonzero = True if size.min(initial=np.inf) > 0 else size > 0
            np.divide(error, size, out=error, where=nonzero)
            self.max_abs = max(self.max_abs, largest)
            self.max_rel = max(self.max_rel, float(error.max(initial=0.0, where=nonzero)))
        return True

    def _errors(self, got: Array, expected: Array) -> tuple[Array, Array, Array]:
        """Return absolute errors, sizes of what is expected, and room for the limits.

        All in double precision, so that the error itself is not rounded away, and in memory that is used again:
        fresh memory for every chunk costs several threads more than the arithmetic does.
        """
        if not self._scratch:
            self._scratch = [np.empty(CHUNK_ELEMENTS) for _ in range(3)]
        error, size, limit = (array[: expected.size] for array in self._scratch)
        if is_complex(expected.dtype):
            return np.abs(_exact(got) - _exact(expected)), np.abs(_exact(expected)), limit
        np.copyto(error, got, casting="unsafe")
        np.copyto(size, expected, casting="unsafe")
        np.subtract(error, size, out=error)
        np.abs(error, out=error)
        np.abs(size, out=size)
        return error, size, limit

    def _add_floating(self, got: Array, expected: Array, mask: Array | None) -> Array:
        with np.errstate(all="ignore"):
            error = np.abs(got - expected)
            size = np.abs(expected)
            right = error <= self.atol + self.rtol * size
            finite = np.isfinite(got) & np.isfinite(expected)
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            bad: Array = ~np.where(finite, right, same)
            if mask is not None:
                keep = mask.astype(bool)
                bad &= keep
                finite = finite & keep
            error = np.where(finite, error, 0.0)
            self.max_abs = max(self.max_abs, float(error.max(initial=0.0)))
            relative = np.where(finite & (size > 0), error / size, 0.0)
            self.max_rel = max(self.max_rel, float(relative.max(initial=0.0)))
        self.nan_mismatch += int(np.count_nonzero(bad & ~(np.isfinite(got) & np.isfinite(expected))))
        return bad

    def _add_integers(self, got: Array, expected: Array, mask: Array | None) -> Array:
        if got.dtype == np.bool_ or expected.dtype == np.bool_:
            got, expected = got.astype(np.int64), expected.astype(np.int64)
        wide = np.uint64 if np.uint64 in (got.dtype, expected.dtype) else np.int64
        left, right = got.astype(wide), expected.astype(wide)
        high, low = np.maximum(left, right), np.minimum(left, right)
        error = high.astype(np.uint64) - low.astype(np.uint64)
        size = np.abs(right.astype(np.float64))
        bad = error > self.atol + self.rtol * size if self.atol or self.rtol else left != right
        if mask is not None:
            keep = mask.astype(bool)
            bad = bad & keep
            error = np.where(keep, error, 0)
        self.max_abs = max(self.max_abs, float(error.max(initial=0)))
        relative = np.where(size > 0, error / np.where(size > 0, size, 1.0), 0.0)
        self.max_rel = max(self.max_rel, float(relative.max(initial=0.0)))
        return np.asarray(bad)

    def result(self, got: Array, expected: Array, shape: tuple[int, ...]) -> Comparison:
        first = self.sample[0] if self.sample else None
        where = None if first is None else tuple(int(i) for i in np.unravel_index(first, shape))
        return Comparison(
            ok=self.wrong == 0,
            wrong=self.wrong,
            total=self.total,
            first_index=where,
            got="" if first is None else str(got[first]),
            expected="" if first is None else str(expected[first]),
            max_abs=self.max_abs,
            max_rel=self.max_rel,
            nan_mismatch=self.nan_mismatch,
            wrong_sample=tuple(self.sample),
            last_wrong=self.last,
        )


def _exact(values: Array) -> Array:
    """Return the values in double precision, so that the error itself is not rounded away."""
    wide: Array = values.astype(np.complex128 if is_complex(values.dtype) else np.float64, copy=False)
    return wide


def _compare_fields(got: Array, expected: Array, tolerance: Tolerance, mask: Array | None) -> Comparison:
    parts = []
    for name in expected.dtype.names or ():
        wanted = np.ascontiguousarray(expected[name])
        field_mask = mask
        if mask is not None and wanted.ndim > mask.ndim:
            field_mask = mask.reshape(mask.shape + (1,) * (wanted.ndim - mask.ndim))
        limit = tolerance if is_floating(wanted.dtype) or is_complex(wanted.dtype) else EXACT
        parts.append(compare(np.ascontiguousarray(got[name]), wanted, limit, field_mask))
    worst = next((part for part in parts if not part.ok), parts[0])
    return worst.model_copy(
        update={
            "wrong": sum(part.wrong for part in parts),
            "total": sum(part.total for part in parts),
            "max_abs": max(part.max_abs for part in parts),
            "max_rel": max(part.max_rel for part in parts),
            "nan_mismatch": sum(part.nan_mismatch for part in parts),
        }
    )
