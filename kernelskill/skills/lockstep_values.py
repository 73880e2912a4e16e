"""Values of all threads of a block at once: known numbers, or which of a scan's elements are combined in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNKNOWN, NUMBER, PARTS, INFINITE = 0, 1, 2, 3
"""Kinds of a thread's value; of an infinite one the number is its sign."""
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]
_WORD = 64
_DISJOINT = frozenset("+*^")
_SIGNED = {"int": 32, "long": 64, "long long": 64}
_UNSIGNED = {"unsigned": 32, "unsigned long": 64, "unsigned long long": 64}


@dataclass(frozen=True, eq=False)
class Value:
    """One value a thread, or one an element of an array."""

    kind: NDArray[np.int8]
    number: Numbers
    parts: NDArray[np.uint64]
    """One row a value: the set of the elements that are combined in it."""

    @property
    def size(self) -> int:
        return len(self.kind)

    def at(self, places: Numbers) -> Value:
        """Return the values at some places."""
        return Value(self.kind[places], self.number[places], self.parts[places])

    def is_number(self, mask: Mask) -> bool:
        """Whether all threads of a mask have a known number."""
        return bool((self.kind[mask] == NUMBER).all())


def unknown(size: int) -> Value:
    """Return values of which nothing is known."""
    return Value(np.zeros(size, np.int8), np.zeros(size, np.int64), np.zeros((size, 0), np.uint64))


def numbers(values: Numbers) -> Value:
    """Return known numbers."""
    size = len(values)
    kind = np.full(size, NUMBER, np.int8)
    return Value(kind, values.astype(np.int64), np.zeros((size, 0), np.uint64))


def constant(size: int, value: int) -> Value:
    """Return one number for all."""
    return numbers(np.full(size, value, np.int64))


def infinite(size: int, sign: int) -> Value:
    """Return an infinity for all."""
    value = constant(size, sign)
    return Value(np.full(size, INFINITE, np.int8), value.number, value.parts)


def single_parts(size: int, first: int) -> Value:
    """Return values of one element each, numbered from `first`."""
    parts = np.zeros((size, (first + size + _WORD - 1) // _WORD), np.uint64)
    ids = first + np.arange(size)
    parts[np.arange(size), ids // _WORD] = np.uint64(1) << (ids % _WORD).astype(np.uint64)
    return Value(np.full(size, PARTS, np.int8), np.zeros(size, np.int64), parts)


def running_parts(size: int, first: int) -> Value:
    """Return what an inclusive scan of `size` elements, numbered from `first`, makes of them."""
    single = single_parts(size, first)
    return Value(single.kind, single.number, np.bitwise_or.accumulate(single.parts, axis=0))


def _widened(left: Value, right: Value) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    width = max(left.parts.shape[1], right.parts.shape[1])
    return rows_of(left, width), rows_of(right, width)


def rows_of(value: Value, width: int) -> NDArray[np.uint64]:
    """Return the sets of values as rows of so many words at least."""
    rows, words = value.parts.shape
    if words >= width:
        return value.parts
    wide = np.zeros((rows, width), np.uint64)
    wide[:, :words] = value.parts
    return wide


def select(mask: Mask, left: Value, right: Value) -> Value:
    """Return `left` where the mask is set, else `right`."""
    first, second = _widened(left, right)
    return Value(
        np.where(mask, left.kind, right.kind),
        np.where(mask, left.number, right.number),
        np.where(mask[:, None], first, second),
    )


def is_same(left: Value, right: Value) -> Mask:
    """Whether values are known and equal, one by one."""
    first, second = _widened(left, right)
    kinds = (left.kind == right.kind) & (left.kind != UNKNOWN)
    same_parts = (first == second).all(axis=1)
    same = np.where(left.kind == PARTS, same_parts, left.number == right.number)
    return np.asarray(kinds & same)


def is_neutral(value: Value, operator: str, kind: str) -> Mask:
    """Whether values change nothing when they are combined by an operator on a type."""
    if operator in ("max", "min"):
        found = _lowest(kind) if operator == "max" else _highest(kind)
        if found is None:
            sign = -1 if operator == "max" else 1
            is_float = kind in ("float", "double")
            return np.asarray((value.kind == INFINITE) & (value.number == sign) & is_float)
        return np.asarray((value.kind == NUMBER) & (value.number == found))
    neutral = {"+": 0, "|": 0, "^": 0, "*": 1}.get(operator)
    if neutral is not None:
        return np.asarray((value.kind == NUMBER) & (value.number == neutral))
    ones = _highest(kind) if kind in _UNSIGNED else -1
    return np.asarray((value.kind == NUMBER) & (value.number == (ones if ones is not None else -1)))


def _lowest(kind: str) -> int | None:
    if kind in _UNSIGNED:
        return 0
    return -(1 << (_SIGNED[kind] - 1)) if kind in _SIGNED else None


def _highest(kind: str) -> int | None:
    if kind in _UNSIGNED:
        return (1 << _UNSIGNED[kind]) - 1 if _UNSIGNED[kind] == 32 else -1
    return (1 << (_SIGNED[kind] - 1)) - 1 if kind in _SIGNED else None


def combined(left: Value, right: Value, operator: str, kind: str) -> Value:
    """Return elements combined by an operator; unknown where that is no combination of different elements."""
    first, second = _widened(left, right)
    both = (left.kind == PARTS) & (right.kind == PARTS)
    if operator in _DISJOINT:
        both &= ~(first & second).any(axis=1)
    only_left = (left.kind == PARTS) & is_neutral(right, operator, kind)
    only_right = (right.kind == PARTS) & is_neutral(left, operator, kind)
    known = both | only_left | only_right
    parts = np.where(both[:, None], first | second, np.where(only_left[:, None], first, second))
    return Value(np.where(known, PARTS, UNKNOWN).astype(np.int8), np.zeros(left.size, np.int64), parts)


def wrapped(values: Numbers, kind: str | None) -> tuple[Numbers, Mask]:
    """Return numbers as a type holds them, and which of them are certain."""
    if kind == "unsigned":
        return values & 0xFFFFFFFF, np.abs(values) < (1 << 62)
    fits = (values >= -(1 << 31)) & (values < (1 << 31))
    if kind in ("long", "long long"):
        fits = np.abs(values) < (1 << 62)
    if kind in ("unsigned long", "unsigned long long"):
        fits = (values >= 0) & (values < (1 << 62))
    if kind is None:
        fits &= values >= 0
    return values, np.asarray(fits)


def _truncated(left: Numbers, right: Numbers) -> Numbers:
    safe = np.where(right == 0, 1, right)
    quotient = np.abs(left) // np.abs(safe)
    return np.asarray(np.where((left < 0) == (safe < 0), quotient, -quotient))


ARITHMETIC: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: np.where((np.abs(a) < 1 << 31) & (np.abs(b) < 1 << 31), a * b, 1 << 62),
    "/": _truncated,
    "%": lambda a, b: a - _truncated(a, b) * b,
    "<<": lambda a, b: np.where((b >= 0) & (b < 31), a << np.clip(b, 0, 30), 1 << 62),
    ">>": lambda a, b: a >> np.clip(b, 0, 62),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
COMPARING: dict[str, Callable[[Numbers, Numbers], Mask]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def computed(operator: str, left: Value, right: Value, kind: str | None) -> Value:
    """Return the result of C arithmetic in a type; unknown where an operand is, or it leaves the type."""
    known = (left.kind == NUMBER) & (right.kind == NUMBER)
    if operator in ("/", "%"):
        known &= right.number != 0
    if operator in ("<<", ">>"):
        known &= (right.number >= 0) & (right.number < 31)
    result, fits = wrapped(ARITHMETIC[operator](left.number, right.number), kind)
    return Value(
        np.where(known & fits, NUMBER, UNKNOWN).astype(np.int8), result, np.zeros((left.size, 0), np.uint64)
    )


def compared(operator: str, left: Value, right: Value, kind: str | None) -> Value:
    """Return the result of a comparison in a type."""
    known = (left.kind == NUMBER) & (right.kind == NUMBER)
    first, second = left.number, right.number
    if kind == "unsigned":
        first, second = first & 0xFFFFFFFF, second & 0xFFFFFFFF
    elif kind not in ("int", "long", "long long", "bool"):
        known &= (first >= 0) & (second >= 0)
    result = COMPARING[operator](first, second).astype(np.int64)
    return Value(
        np.where(known, NUMBER, UNKNOWN).astype(np.int8), result, np.zeros((left.size, 0), np.uint64)
    )
