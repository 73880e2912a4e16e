"""Values of C in numpy: conversions and operators in the precision and width of their own types.

A value is an array of one element a lane, or of no dimension where all lanes agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelskill.algorithm.expression import COMPARISONS
from kernelskill.algorithm.types import is_integer, is_signed, joined, numpy_type, promoted, size_of

Value = NDArray[Any]

_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)


class InterpretError(Exception):
    """An algorithm does what a kernel may not: reads outside a buffer, wraps, divides by zero, races."""


def dtype_of(kind: str) -> np.dtype[Any]:
    """Return the numpy type of a canonical type, bfloat16 included.

    Raises:
        InterpretError: The type is unknown.
    """
    if kind == "bfloat16":
        return _BFLOAT16
    try:
        return numpy_type(kind)
    except KeyError:
        raise InterpretError(f"no values of type {kind!r}") from None


def is_floating(value: Value) -> bool:
    """Whether the elements are floating-point numbers."""
    return value.dtype.kind == "f" or value.dtype == _BFLOAT16


def convert(value: Value, kind: str) -> Value:
    """Return a value in another type, as a cast on the device gives it.

    Floats become integers towards zero, at the ends of the range where they lie outside it.
    """
    target = dtype_of(kind)
    if value.dtype == target:
        return value
    if kind == "bool":
        return np.asarray(value != 0)
    if is_floating(value) and is_integer(kind):
        return _truncated(value, kind)
    return value.astype(target)


def _truncated(value: Value, kind: str) -> Value:
    """Return floats as integers. Narrow types are cut from 32 bits, as the device does."""
    target = dtype_of(kind)
    if size_of(kind) < 4:
        return _truncated(value, "int" if is_signed(kind) else "unsigned").astype(target)
    limits = np.iinfo(target)
    wide = np.trunc(value.astype(np.float64))
    inside = (wide > limits.min) & (wide < float(limits.max) + 1)
    result = np.where(inside, wide, 0).astype(target)
    result = np.where(wide >= float(limits.max) + 1, limits.max, result)
    result = np.where(wide <= limits.min, limits.min, result)
    if size_of(kind) == 8:
        result = np.where(np.isnan(wide), np.array(1 << 63, np.uint64).astype(target), result)
    return np.asarray(result, target)


def checked(value: NDArray[np.int64], kind: str, text: Callable[[], str]) -> Value:
    """Return integers of arithmetic that was taken not to wrap in their type.

    Raises:
        InterpretError: One does not fit, so that the type of the user would have wrapped or overflowed.
    """
    if kind == "bool":
        return np.asarray(value != 0)
    target = dtype_of(kind)
    limits = np.iinfo(target)
    low, high = int(limits.min), min(int(limits.max), np.iinfo(np.int64).max)
    if value.size and (value.min() < low or value.max() > high):
        wrong = value.min() if value.min() < low else value.max()
        raise InterpretError(f"{text()} is {wrong}, outside {kind}; a polynomial may not wrap")
    return value.astype(target)


def binary(op: str, left: Value, right: Value, kinds: tuple[str, str], kind: str) -> Value:
    """Return the result of an operator; `kinds` are the types of the operands.

    Raises:
        InterpretError: Division of an integer by zero.
    """
    if op in ("<<", ">>"):
        work = promoted(kinds[0])
        shift = convert(right, "unsigned long long" if not is_signed(promoted(kinds[1])) else "long long")
        bits = 8 * size_of(work)
        limited = np.minimum(shift, bits).astype(dtype_of(work))
        return convert(np.asarray(_SHIFTS[op](convert(left, work), limited)), kind)
    work = joined(*kinds)
    a, b = convert(left, work), convert(right, work)
    if op in COMPARISONS:
        return np.asarray(_COMPARE[op](a, b))
    if op in ("/", "%") and is_integer(work):
        return convert(_divided(op, a, b), kind)
    try:
        result = _ARITHMETIC[op](a, b)
    except KeyError:
        raise InterpretError(f"no operator {op!r} on {work}") from None
    return convert(np.asarray(result, dtype_of(work)), kind)


def unary(op: str, operand: Value, kind: str) -> Value:
    """Return `-x`, `~x` or `!x`."""
    if op == "!":
        return convert(np.asarray(operand == 0), kind)
    value = convert(operand, kind)
    if op == "-":
        return np.asarray(np.negative(value), value.dtype)
    if op == "~":
        return np.asarray(np.invert(value), value.dtype)
    if op == "+":
        return value
    raise InterpretError(f"no operator {op!r}")


def fmax(a: Value, b: Value) -> Value:
    """Return the greater, the number where one is NaN, and +0 of two zeros: `fmaxf` of the device."""
    tied = np.where(np.signbit(a), b, a)
    return np.asarray(np.where(a == b, tied, np.fmax(a, b)), a.dtype)


def fmin(a: Value, b: Value) -> Value:
    """Return the smaller, the number where one is NaN, and -0 of two zeros: `fminf` of the device."""
    tied = np.where(np.signbit(a), a, b)
    return np.asarray(np.where(a == b, tied, np.fmin(a, b)), a.dtype)


def fused(a: Value, b: Value, c: Value, kind: str) -> Value:
    """Return `a * b + c` with a single rounding to the type."""
    first, second, third = (convert(v, kind).astype(np.float64) for v in (a, b, c))
    if kind != "double":
        return convert(_odd_sum(first * second, third), kind)
    high, low = _exact_product(first, second)
    summed, small = _exact_sum(third, low)
    total, rest = _exact_sum(high, summed)
    plain = np.asarray(first * second + third)
    exact = np.asarray(total + _odd_sum(small, rest))
    return np.where(np.isfinite(plain) & np.isfinite(exact), exact, plain)


def _divided(op: str, a: Value, b: Value) -> Value:
    if np.any(b == 0):
        raise InterpretError(f"integer {op} by zero")
    rest = np.fmod(a, b)
    return np.asarray(rest if op == "%" else (a - rest) // b, a.dtype)


def _exact_sum(a: Value, b: Value) -> tuple[Value, Value]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _exact_product(a: Value, b: Value) -> tuple[Value, Value]:
    def halves(value: Value) -> tuple[Value, Value]:
        spread = value * 134217729.0  # 2**27 + 1 cuts a double into two factors of 26 bits
        high = spread - (spread - value)
        return high, value - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _odd_sum(a: Value, b: Value) -> Value:
    """Return a sum of doubles rounded to odd, so that a second rounding is as good as one alone."""
    total, error = (np.asarray(part) for part in _exact_sum(a, b))
    is_even = (total.view(np.uint64) & np.uint64(1)) == 0
    moves = np.isfinite(total) & np.isfinite(error) & (error != 0) & is_even
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where(moves, np.nextafter(total, towards), total)


_SHIFTS: dict[str, Callable[..., Any]] = {"<<": np.left_shift, ">>": np.right_shift}
_COMPARE: dict[str, Callable[..., Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}
