"""Sums and extremes that neighbouring points have in common: of a row, or of a column, of their windows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from kernelskill.algorithm.expression import Sym
from kernelskill.algorithm.halves.model import Half, Tap
from kernelskill.algorithm.integers import subtract, value_of

Offsets = tuple[int, int]
"""Where an element lies, from a point's own: row and column."""


@dataclass(frozen=True)
class Pattern:
    """A few elements along a row or a column; the first has the offset zero and a positive factor."""

    op: str
    """`+`, `max` or `min`: how they are joined."""
    window: str
    along: int
    """0: elements of a column, one below the other; 1: of a row."""
    parts: tuple[tuple[int, int], ...]
    """Offsets along that direction, with factors."""


@dataclass(frozen=True)
class Shared:
    """A pattern at one place of a point's window."""

    pattern: Pattern
    at: Offsets


Term = tuple[Half | Shared, int]
Terms = tuple[Term, ...]
"""A sum: values with their factors."""


@dataclass(frozen=True)
class Grid:
    """The points of a thread, along rows and along words of a row."""

    symbols: tuple[str, str]
    sizes: tuple[int, int]

    def offsets(self, tap: Half | Shared) -> Offsets | None:
        """Return where a tap lies from a point's own place; None where the window moves otherwise."""
        if not isinstance(tap, Tap) or len(tap.places) != 2:
            return None
        found = [
            value_of(subtract(place, Sym(name))) for place, name in zip(tap.places, self.symbols, strict=True)
        ]
        row, column = found
        return None if row is None or column is None else (row, column)


def share_sums(sums: Iterable[Terms], grid: Grid, op: str = "+") -> dict[frozenset[Term], Terms]:
    """Return the sums that cost less with what points have in common, by their terms; or largest and smallest values.

    Each is taken apart into its rows, or into its columns. Arithmetic on words has no order that matters.
    """
    found: dict[frozenset[Term], Terms] = {}
    known: set[Pattern] = set()
    for terms in sums:
        places = {grid.offsets(tap): (tap, factor) for tap, factor in terms}
        windows = {tap.window for tap, _ in terms if isinstance(tap, Tap)}
        if None in places or len(windows) != 1 or len(terms) < 3:
            continue
        (window,) = windows
        factors = {at: factor for at, (_, factor) in places.items() if at is not None}
        best, least = None, float(_cost([factor for _, factor in terms], is_last=True))
        for along in (0, 1):
            parts = _parted(op, window, along, factors)
            price = _price(parts, known, grid, along)
            if price < least:
                best, least = parts, price
        if best is not None:
            found[frozenset(terms)] = tuple((_tap_or_shared(each, places), f) for each, f in best)
            known |= {each.pattern for each, _ in best}
    return found


def _tap_or_shared(each: Shared, places: Mapping[Offsets | None, Term]) -> Tap | Shared:
    """Return a pattern of one element as that element."""
    if len(each.pattern.parts) > 1:
        return each
    tap, _ = places[each.at]
    assert isinstance(tap, Tap)
    return tap


def _parted(op: str, window: str, along: int, factors: Mapping[Offsets, int]) -> list[tuple[Shared, int]]:
    """Take a sum apart; patterns that occur once, at one place, stay single elements."""
    lines: dict[int, dict[int, int]] = {}
    for at, factor in factors.items():
        lines.setdefault(at[1 - along], {})[at[along]] = factor
    found: list[tuple[Shared, int]] = []
    for line, held in sorted(lines.items()):
        first = min(held)
        scale = gcd(*held.values()) * (1 if held[first] > 0 else -1)
        parts = tuple((at - first, factor // scale) for at, factor in sorted(held.items()))
        place = (first, line) if along == 0 else (line, first)
        found.append((Shared(Pattern(op, window, along, parts), place), scale))
    uses: dict[Pattern, int] = {}
    for each, _ in found:
        uses[each.pattern] = uses.get(each.pattern, 0) + 1
    parted: list[tuple[Shared, int]] = []
    for each, scale in found:
        if uses[each.pattern] > 1:
            parted.append((each, scale))
            continue
        for offset, factor in each.pattern.parts:
            row, column = each.at
            place = (row + offset, column) if along == 0 else (row, column + offset)
            parted.append((Shared(Pattern(op, window, along, ((0, 1),)), place), scale * factor))
    return parted


def _price(parts: list[tuple[Shared, int]], known: set[Pattern], grid: Grid, along: int) -> float:
    """Return the instructions of a sum and its part of what is shared, a pair of points."""
    patterns = {each.pattern for each, _ in parts if len(each.pattern.parts) > 1} - known
    price = float(_cost([factor for _, factor in parts], is_last=True))
    for pattern in patterns:
        places = sorted(each.at[1 - along] for each, _ in parts if each.pattern == pattern)
        size = grid.sizes[1 - along]
        extra = sum(min(later - earlier, size) for earlier, later in pairwise(places))
        price += _cost([factor for _, factor in pattern.parts]) * (size + extra) / size
    return price


def _cost(factors: Iterable[int], *, is_last: bool = False) -> int:
    """Return the instructions of a sum: three are added at once, and a multiple is added by one.

    Two that are added last come with whatever is done to the sum.
    """
    listed = list(factors)
    ones = sum(1 for factor in listed if abs(factor) == 1)
    if is_last and len(listed) == 2 == ones:
        return 0
    return len(listed) - ones + max(ones, 1) // 2
