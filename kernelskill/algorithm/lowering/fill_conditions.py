"""Which elements of a tile may be filled where loads of one buffer are made under different conditions.

An element may be read where some point's load reads it, and also where it lies between two elements, in one
line of the tile, that a point reads: an array has no holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from kernelskill.algorithm.access import Footprint, LoadSite
from kernelskill.algorithm.expression import Binary, Expression, Sym, Unary
from kernelskill.algorithm.integers import (
    add,
    coefficient,
    compared,
    conjunction,
    conjuncts,
    constant,
    multiply,
    negated,
    subtract,
    value_of,
    without,
)
from kernelskill.algorithm.lowering.context import coordinate_symbol
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.types import is_integer

Offsets = tuple[int, ...]
_MOST_ALTERNATIVES = 4


@dataclass(frozen=True)
class _Interval:
    """All of `lower` at most, and at most all of `upper`."""

    lower: frozenset[Expression]
    upper: frozenset[Expression]

    def moved(self, least: int, most: int) -> _Interval:
        """Return the union of the interval moved by everything from `least` to `most`, where it isn't empty."""
        return _Interval(
            frozenset(add(each, constant(least)) for each in self.lower),
            frozenset(add(each, constant(most)) for each in self.upper),
        )

    def tightened(self) -> _Interval:
        """Leave out the bounds that others imply."""
        return _Interval(
            frozenset(e for e in self.lower if not any(o != e and _at_least(o, e) for o in self.lower)),
            frozenset(e for e in self.upper if not any(o != e and _at_least(e, o) for o in self.upper)),
        )

    def implies(self, other: _Interval) -> bool:
        """Whether everything in it lies in another one."""
        return all(any(_at_least(own, each) for own in self.lower) for each in other.lower) and all(
            any(_at_least(each, own) for own in self.upper) for each in other.upper
        )


def _at_least(greater: Expression, smaller: Expression) -> bool:
    difference = value_of(subtract(greater, smaller))
    return difference is not None and difference >= 0


@dataclass(frozen=True)
class _Box:
    """Coordinates that some loads read."""

    intervals: tuple[_Interval, ...]
    needed: frozenset[Expression] = frozenset()
    """What must hold besides, whatever the coordinates."""

    def implies(self, other: _Box) -> bool:
        return self.needed >= other.needed and all(
            own.implies(each) for own, each in zip(self.intervals, other.intervals, strict=True)
        )


def united_conditions(
    algorithm: Algorithm, sites: Sequence[LoadSite], prints: Sequence[Footprint], counts: Mapping[str, int]
) -> tuple[Expression, ...] | None:
    """Return the conditions, over `coordinate_symbol`s, under which an element may be read.

    None where they are not bounds of single axes, or where they would be too long.
    """
    axes = [_axis_of(dimension.coefficients) for dimension in prints[0].dimensions]
    names = {axis.name for axis in algorithm.axes}
    if any(axis is not None and axis not in names for axis in axes) or None in axes:
        return None
    symbols = [axis for axis in axes if axis is not None]
    boxes = _boxes(algorithm, _groups(sites, prints), symbols, counts)
    if boxes is None:
        return None
    boxes = list(dict.fromkeys(boxes))
    kept = [
        box
        for position, box in enumerate(boxes)
        if not any(
            box.implies(other) and (not other.implies(box) or number < position)
            for number, other in enumerate(boxes)
            if number != position
        )
    ]
    if len(kept) > _MOST_ALTERNATIVES:
        return None
    texts = [_conditions(box) for box in kept]
    if len(texts) == 1:
        return texts[0]
    either: Expression = conjunction(texts[0])
    for each in texts[1:]:
        either = Binary("||", either, conjunction(each), "bool")
    return (either,)


def _axis_of(coefficients: tuple[tuple[str, int], ...]) -> str | None:
    return coefficients[0][0] if len(coefficients) == 1 and coefficients[0][1] == 1 else None


def _groups(
    sites: Sequence[LoadSite], prints: Sequence[Footprint]
) -> dict[frozenset[Expression], set[Offsets]]:
    """Return, for every set of conditions of a point, where its loads lie relative to the point."""
    found: dict[frozenset[Expression], set[Offsets]] = {}
    for site, own in zip(sites, prints, strict=True):
        conditions = frozenset(part for test in site.conditions for part in conjuncts(test))
        found.setdefault(conditions, set()).add(tuple(dimension.offset for dimension in own.dimensions))
    for offsets in found.values():
        _fill_lines(offsets)
    _merge_complements(found)
    return found


def _fill_lines(offsets: set[Offsets]) -> None:
    """Add what lies between two offsets that differ in one dimension only."""
    while True:
        between = {
            (*one[:d], place, *one[d + 1 :])
            for one, other in product(offsets, offsets)
            for d in range(len(one))
            if one[:d] == other[:d] and one[d + 1 :] == other[d + 1 :]
            for place in range(one[d] + 1, other[d])
        }
        if between <= offsets:
            return
        offsets |= between


def _merge_complements(groups: dict[frozenset[Expression], set[Offsets]]) -> None:
    """Read what a point reads under a condition and under its opposite as read in any case."""
    for conditions, offsets in list(groups.items()):
        for other, places in list(groups.items()):
            common = conditions & other
            own = conditions - common
            if len(own) != 1 or not other - common:
                continue
            (test,) = own
            if frozenset(conjuncts(negated(test))) == other - common and offsets & places:
                groups.setdefault(common, set()).update(offsets & places)


def _boxes(
    algorithm: Algorithm,
    groups: Mapping[frozenset[Expression], set[Offsets]],
    axes: Sequence[str],
    counts: Mapping[str, int],
) -> list[_Box] | None:
    found: list[_Box] = []
    for conditions, offsets in groups.items():
        for alternative in _alternatives(conditions):
            points = _points(algorithm, alternative, axes, counts)
            if points is None:
                return None
            found += [_moved(points, least, most) for least, most in _blocks(offsets)]
    return found


def _alternatives(conditions: Iterable[Expression]) -> Iterator[tuple[Expression, ...]]:
    """Yield conjunctions of which one must hold."""
    choices = []
    for test in conditions:
        if isinstance(test, Binary) and test.op == "||":
            choices.append(tuple((negated(part),) for part in conjuncts(negated(test))))
        elif isinstance(test, Unary) and test.op == "!":
            choices.append(tuple((negated(part),) for part in conjuncts(test.operand)))
        else:
            choices.append(((test,),))
    for chosen in product(*choices):
        yield tuple(part for parts in chosen for part in parts)


def _points(
    algorithm: Algorithm, conditions: Iterable[Expression], axes: Sequence[str], counts: Mapping[str, int]
) -> _Box | None:
    """Return the points for which conditions hold as a box over the axes of the dimensions."""
    ranges = {axis.name: axis for axis in algorithm.axes}
    lower = {name: {ranges[name].lower} for name in axes}
    upper = {name: {add(ranges[name].upper, constant(-1))} for name in axes}
    needed: set[Expression] = set()
    for test in conditions:
        if not test.depends_on(*counts):
            needed.add(test)
            continue
        bound = _bound(test, axes)
        if bound is None:
            return None
        name, is_lower, limit, unequal = bound
        if limit.depends_on(*counts):
            return None
        if unequal and is_lower is None:
            first, last = ranges[name].lower, add(ranges[name].upper, constant(-1))
            if limit == first:
                is_lower, limit = True, add(limit, constant(1))
            elif limit == last:
                is_lower, limit = False, add(limit, constant(-1))
            else:
                return None
        if is_lower in (True, None):
            lower[name].add(limit)
        if is_lower in (False, None):
            upper[name].add(limit)
    intervals = tuple(_Interval(frozenset(lower[name]), frozenset(upper[name])).tightened() for name in axes)
    return _Box(intervals, frozenset(needed))


def _bound(test: Expression, axes: Sequence[str]) -> tuple[str, bool | None, Expression, bool] | None:
    """Read a comparison as a bound of one axis.

    Returns:
        The axis, whether it is a lower bound (None for both), the bound itself, and whether it is excluded.
    """
    if not isinstance(test, Binary) or not (is_integer(test.left.type) and is_integer(test.right.type)):
        return None
    difference = subtract(test.left, test.right)
    used = [name for name in axes if difference.depends_on(name)]
    factor = coefficient(difference, used[0]) if len(used) == 1 else None
    sign = value_of(factor) if factor is not None else None
    if sign not in (1, -1):
        return None
    # sign * axis + rest OP 0
    limit = multiply(constant(-sign), without(difference, used[0]))
    op = test.op if sign == 1 else {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(test.op, test.op)
    match op:
        case "<":
            return used[0], False, add(limit, constant(-1)), False
        case "<=":
            return used[0], False, limit, False
        case ">":
            return used[0], True, add(limit, constant(1)), False
        case ">=":
            return used[0], True, limit, False
        case "==" | "!=":
            return used[0], None, limit, op == "!="
        case _:
            return None


def _blocks(offsets: set[Offsets]) -> list[tuple[Offsets, Offsets]]:
    """Return boxes of offsets, least and greatest, that together are all of them."""
    least = tuple(map(min, zip(*offsets, strict=True)))
    most = tuple(map(max, zip(*offsets, strict=True)))
    size = 1
    for low, high in zip(least, most, strict=True):
        size *= high - low + 1
    if size == len(offsets):
        return [(least, most)]
    lines: dict[tuple[Offsets, Offsets], None] = {}
    for one in sorted(offsets):
        for d in range(len(one)):
            low = high = one[d]
            while (*one[:d], low - 1, *one[d + 1 :]) in offsets:
                low -= 1
            while (*one[:d], high + 1, *one[d + 1 :]) in offsets:
                high += 1
            if high > low or len(one) == 1:
                lines[(*one[:d], low, *one[d + 1 :]), (*one[:d], high, *one[d + 1 :])] = None
    covered = {place for low, high in lines for place in product(*_spans(low, high))}
    return [*lines, *((one, one) for one in sorted(offsets - covered))]


def _spans(low: Offsets, high: Offsets) -> list[range]:
    return [range(a, b + 1) for a, b in zip(low, high, strict=True)]


def _moved(points: _Box, least: Offsets, most: Offsets) -> _Box:
    """Return the coordinates that points read at all offsets between two."""
    needed = set(points.needed)
    intervals = []
    for interval, low, high in zip(points.intervals, least, most, strict=True):
        intervals.append(interval.moved(low, high))
        if low != high:
            needed |= {compared("<=", a, b) for a in interval.lower for b in interval.upper}
    needed = {test for test in needed if value_of(test) != 1}
    return replace(points, intervals=tuple(intervals), needed=frozenset(needed))


def _conditions(box: _Box) -> tuple[Expression, ...]:
    found: list[Expression] = sorted(box.needed, key=lambda test: test.key)
    for position, interval in enumerate(box.intervals):
        coordinate = Sym(coordinate_symbol(position))
        for limit in sorted(interval.lower, key=lambda each: each.key):
            found.append(Binary(">=", coordinate, limit, "bool"))
        for limit in sorted(interval.upper, key=lambda each: each.key):
            found.append(Binary("<", coordinate, add(limit, constant(1)), "bool"))
    return tuple(found)
