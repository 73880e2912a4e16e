"""Values of two points in the halves of one word: what is computed, and between which bounds it lies.

A word stands for a pair of values (a, b) under a bias: it is `(a + bias) + (b + bias) * 65536` modulo 2^32. Sums and
multiples of words are right under that reading whatever their halves hold in between. Comparing halves, or moving
bits, needs values that fit in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.model import IllegalMove
from kernelskill.computed import computed

SIGNED = 0x8000
"""Bias of values that may be negative: halves are in the order of the values."""
BITS = 16
_HIGHEST = (1 << BITS) - 1


@dataclass(frozen=True)
class Half:
    """Base of all values."""

    @property
    def low(self) -> int:
        """The smallest value that may occur."""
        raise NotImplementedError

    @property
    def high(self) -> int:
        """The largest value that may occur."""
        raise NotImplementedError

    @property
    def bias(self) -> int:
        """The bias under which the value comes without further work."""
        return 0 if self.low >= 0 else SIGNED


@dataclass(frozen=True)
class Tap(Half):
    """A byte of a window in registers."""

    window: str
    places: tuple[Expression, ...]
    """Subscripts, over the points of the thread."""
    most: int = 255

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return self.most


@dataclass(frozen=True)
class Uniform(Half):
    """A value that is the same for all points, held between two bounds."""

    expression: Expression
    least: int
    most: int

    @property
    def low(self) -> int:
        return self.least

    @property
    def high(self) -> int:
        return self.most


@dataclass(frozen=True)
class Linear(Half):
    """A sum of multiples of other values and a number."""

    terms: tuple[tuple[Half, int], ...]
    number: int = 0

    @computed
    def low(self) -> int:
        return self.number + sum(f * (v.low if f > 0 else v.high) for v, f in self.terms)

    @computed
    def high(self) -> int:
        return self.number + sum(f * (v.high if f > 0 else v.low) for v, f in self.terms)


@dataclass(frozen=True)
class Extreme(Half):
    """The larger or the smaller of two values."""

    op: Literal["max", "min"]
    left: Half
    right: Half

    @computed
    def low(self) -> int:
        return (max if self.op == "max" else min)(self.left.low, self.right.low)

    @computed
    def high(self) -> int:
        return (max if self.op == "max" else min)(self.left.high, self.right.high)

    @property
    def bias(self) -> int:
        return 0 if min(self.left.low, self.right.low) >= 0 else SIGNED


@dataclass(frozen=True)
class Magnitude(Half):
    """The absolute value."""

    value: Half

    @property
    def low(self) -> int:
        return max(0, self.value.low, -self.value.high)

    @property
    def high(self) -> int:
        return max(self.value.high, -self.value.low)

    @property
    def bias(self) -> int:
        return SIGNED


@dataclass(frozen=True)
class Bits(Half):
    """`&`, `|` or `^` of values that are not negative."""

    op: str
    left: Half
    right: Half

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        if self.op == "&":
            return min(self.left.high, self.right.high)
        return int((1 << max(self.left.high, self.right.high).bit_length()) - 1)


@dataclass(frozen=True)
class Shifted(Half):
    """A value that is not negative, shifted right."""

    value: Half
    count: int

    @property
    def low(self) -> int:
        return self.value.low >> self.count

    @property
    def high(self) -> int:
        return self.value.high >> self.count


@dataclass(frozen=True)
class Flag:
    """Base of all conditions: in a word, the highest bit of each half."""


@dataclass(frozen=True)
class NotNegative(Flag):
    """Whether a value is zero or more."""

    value: Half


@dataclass(frozen=True)
class Equal(Flag):
    """Whether two values that are not negative are the same."""

    left: Half
    right: Half


@dataclass(frozen=True)
class Both(Flag):
    """`&` or `|` of two conditions."""

    op: Literal["&", "|"]
    left: Flag
    right: Flag


@dataclass(frozen=True)
class Not(Flag):
    """The opposite."""

    flag: Flag


@dataclass(frozen=True)
class Truth(Half):
    """One where a condition holds, else zero."""

    flag: Flag

    @property
    def low(self) -> int:
        return 0

    @property
    def high(self) -> int:
        return 1


@dataclass(frozen=True)
class Chosen(Half):
    """One of two values."""

    flag: Flag
    first: Half
    second: Half

    @computed
    def low(self) -> int:
        return min(self.first.low, self.second.low)

    @computed
    def high(self) -> int:
        return max(self.first.high, self.second.high)


BYTES = {"unsigned char": 255, "bool": 1}
"""Types of one byte whose bits are the value, with the largest."""


def number(value: int) -> Linear:
    """Return a constant."""
    return Linear((), value)


def total(parts: Iterable[tuple[Half, int]], constant: int = 0) -> Half:
    """Return a sum of multiples in its one form; a single value is that value itself."""
    found: dict[Half, int] = {}
    for value, factor in parts:
        if isinstance(value, Linear):
            constant += factor * value.number
            for term, own in value.terms:
                found[term] = found.get(term, 0) + factor * own
        else:
            found[value] = found.get(value, 0) + factor
    kept = {value: factor for value, factor in found.items() if factor}
    if constant == 0 and list(kept.values()) == [1]:
        return next(iter(kept))
    return Linear(tuple(kept.items()), constant)


def require_halves(value: Half, what: str = "a value") -> None:
    """Refuse a value that two halves of a word cannot hold.

    Raises:
        IllegalMove: It needs more than 16 bits.
    """
    if value.low < -SIGNED or value.high > (_HIGHEST if value.low >= 0 else SIGNED - 1):
        raise IllegalMove(f"{what} may be anything from {value.low} to {value.high}: more than {BITS} bits")


def require_signed(value: Half, what: str = "a value") -> None:
    """Refuse a value that does not fit in 16 bits with a sign.

    Raises:
        IllegalMove: It does not.
    """
    if value.low < -SIGNED or value.high >= SIGNED:
        raise IllegalMove(
            f"{what} may be anything from {value.low} to {value.high}: more than {BITS} bits with a sign"
        )


def spread(value: int) -> int:
    """Return the word both of whose halves hold a number, as sums of words take it."""
    return value * 0x10001 % (1 << 32)
