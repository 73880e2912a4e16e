"""Which windows the points of one thread hold in registers, and which of their rows wide accesses read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from kernelskill.algorithm.access import Footprint, certain_loads, footprint
from kernelskill.algorithm.expression import Expression, Fold, Load, Reduce, Sym, loads, walk
from kernelskill.algorithm.integers import constant, subtract, terms_of, value_of
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.lowering.loop_heads import is_short
from kernelskill.algorithm.lowering.staging import inner_loops, row_strides
from kernelskill.algorithm.lowering.window import Row, Window
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import size_of

_MOST_TAPS = 64
"""Steps of loops that are looked at one by one."""
_MOST_ELEMENTS = 160
"""Elements of one window: each takes a register."""
_MOST_BYTES = 16
"""Bytes of one access."""


@dataclass(frozen=True)
class _Tap:
    """A load at one step of the loops round it."""

    load: Load
    """As it stands in the loop."""
    footprint: Footprint
    steps: Mapping[str, int]
    is_certain: bool
    """Whether it is made in any case."""


def plan_windows(context: Context, values: Sequence[Expression]) -> list[Window]:
    """Return the windows of buffers that values of inner points read, where wide accesses serve them.

    Rows hold what is read in any case, and what lies between two such elements.
    """
    plans = [text.plan for text in context.register_axes]
    if not plans or any(plan.vector != plan.points for plan in plans):
        return []
    counts = {name: text.plan.points for name, text in context.axes.items()}
    for name, loop in inner_loops(context.algorithm).items():
        length = value_of(subtract(loop.upper, loop.lower))
        if is_short(loop) and length:
            counts[name] = length
    groups: dict[tuple[object, ...], list[_Tap]] = {}
    unknown: set[str] = set()
    for load, steps, is_certain in _loads_at_steps(values):
        own = footprint(load.index, counts)
        if steps is None:
            unknown.add(load.buffer)
        elif own is not None and not _is_moving(context, own, steps):
            groups.setdefault(_key(context, load, own), []).append(_Tap(load, own, steps, is_certain))
    found = (_window(context, g, counts) for g in groups.values() if g[0].load.buffer not in unknown)
    return [window for window in found if window is not None]


def _loads_at_steps(values: Sequence[Expression]) -> Iterator[tuple[Load, dict[str, int] | None, bool]]:
    """Yield every load with the step at which it is made, None where that is not known, and whether it is in any case."""
    for value in values:
        certain = certain_loads(value)
        yield from ((load, {}, load in certain) for load in _outside_loops(value))
        for node in _outermost_loops(value):
            starts, bodies = _parts(node)
            yield from ((load, {}, load in certain_loads(start)) for start in starts for load in loads(start))
            if any(isinstance(each, Reduce | Fold) for part in (*starts, *bodies) for each in walk(part)):
                yield from ((load, None, False) for part in (*starts, *bodies) for load in loads(part))
                continue
            places = _places(node)
            if not places:
                yield from ((load, None, False) for body in bodies for load in loads(body))
            for place in places:
                at: dict[str, Expression] = {name: constant(number) for name, number in place.items()}
                for body in bodies:
                    there = substitute(body, at)
                    made, certain_there = set(loads(there)), certain_loads(there)
                    moved = {load: substitute(load, at) for load in loads(body)}
                    yield from (
                        (load, place, now in certain_there) for load, now in moved.items() if now in made
                    )


def _parts(node: Reduce | Fold) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """Return what a loop starts with and what its steps evaluate."""
    if isinstance(node, Reduce):
        return (node.initial,), (node.body,)
    return node.initials, node.updates


def _outside_loops(value: Expression) -> Iterator[Load]:
    if isinstance(value, Reduce | Fold):
        return
    if isinstance(value, Load):
        yield value
    for child in value.children:
        yield from _outside_loops(child)


def _outermost_loops(value: Expression) -> Iterator[Reduce | Fold]:
    if isinstance(value, Reduce | Fold):
        yield value
        return
    for child in value.children:
        yield from _outermost_loops(child)


def _places(node: Reduce | Fold) -> list[dict[str, int]]:
    """Return the steps of loops that are written out; none where they are not known or too many."""
    ranges = [(value_of(loop.lower), value_of(loop.upper)) for loop in node.loops]
    steps = [range(low, high) for low, high in ranges if low is not None and high is not None]
    are_short = len(steps) == len(ranges) and all(is_short(loop) for loop in node.loops)
    if not are_short or prod(map(len, steps)) > _MOST_TAPS:
        return []
    names = [loop.name for loop in node.loops]
    return [dict(zip(names, place, strict=True)) for place in product(*steps)]


def _is_moving(context: Context, own: Footprint, steps: Mapping[str, int]) -> bool:
    """Whether a footprint begins at a place that other loops, or memory, choose."""
    axes = set(context.axes)
    fixed = {parameter.name for parameter in context.algorithm.parameters}
    atoms = [
        node for part in (own.base, *(d.stride for d in own.dimensions)) for m in terms_of(part) for node in m
    ]
    return not own.symbols <= axes | set(steps) or not all(
        isinstance(a, Sym) and a.name in fixed for a in atoms
    )


def _key(context: Context, load: Load, own: Footprint) -> tuple[object, ...]:
    """Return what is equal for loads that differ by fixed numbers of elements along each dimension."""
    shape = tuple(
        (d.stride, tuple((name, factor) for name, factor in d.coefficients if name in context.axes))
        for d in own.dimensions
    )
    return load.buffer, load.kind, own.base, shape


def _window(context: Context, taps: Sequence[_Tap], counts: Mapping[str, int]) -> Window | None:
    """Return the window of loads that differ by fixed distances; None where no access of it is wide."""
    first = taps[0]
    access = _access(context, first)
    if access is None:
        return None
    touched = [(tap, _elements(context, tap)) for tap in taps]
    columns: dict[Row, list[int]] = {}
    for tap, elements in touched:
        for row, column in elements if tap.is_certain else ():
            columns.setdefault(row, []).append(column)
    stretches = {row: range(min(held), max(held) + 1) for row, held in sorted(columns.items())}
    outside = [tap for tap, elements in touched if not all(_holds(stretches, *each) for each in elements)]
    if any(tap.steps for tap in outside):
        return None  # loops that share their steps call loads of one another alike
    window = Window(
        name="",
        buffer=first.load.buffer,
        kind=first.load.kind,
        loads=frozenset(tap.load for tap in taps) - {tap.load for tap in outside},
        footprint=first.footprint,
        counts=tuple(counts.items()),
        stretches=tuple(stretches.items()),
        width=access[0],
        phase=access[1],
    )
    if not window.loads or not any(window.aligned_part(stretch) for stretch in stretches.values()):
        return None
    most = _MOST_ELEMENTS * (2 if context.schedule.halves else 1)
    return window if prod(len(window.span(d)) for d in window.dimensions) <= most else None


def _holds(stretches: Mapping[Row, range], row: Row, column: int) -> bool:
    return column in stretches.get(row, ())


def _elements(context: Context, tap: _Tap) -> set[tuple[Row, int]]:
    """Return rows and columns of the elements that the thread's points read, from the first point on."""
    own, unit = tap.footprint, tap.footprint.unit()
    moving = [text for text in context.register_axes if text.axis.name in own.symbols]
    found = set()
    for place in product(*(range(text.plan.points) for text in moving)):
        at = dict(tap.steps) | {text.axis.name: n for text, n in zip(moving, place, strict=True)}
        coordinates = [
            sum(f * at.get(name, 0) for name, f in d.coefficients) + d.offset for d in own.dimensions
        ]
        column = coordinates.pop(unit if unit is not None else -1)
        found.add((tuple(coordinates), column))
    return found


def _access(context: Context, tap: _Tap) -> tuple[int, int] | None:
    """Return the elements of one wide access, and those from an aligned one to column 0; None where none is wide."""
    own, unit = tap.footprint, tap.footprint.unit()
    if unit is None:
        return None
    moving = [
        (context.axes[name], factor)
        for name, factor in own.dimensions[unit].coefficients
        if name in context.axes
    ]
    lows = [value_of(text.axis.lower) for text, _ in moving]
    if not any(text.plan.points > 1 for text, _ in moving) or None in lows:
        return None
    fixed = [factor for stride in row_strides(own, unit) for m, factor in terms_of(stride).items() if not m]
    steps = [factor * text.plan.points for text, factor in moving] + fixed
    width = next(w for w in (16, 8, 4, 2, 1) if w * size_of(tap.load.kind) <= _MOST_BYTES)
    while width > 1 and any(step % width for step in steps):
        width //= 2
    phase = sum(factor * (low or 0) for (_, factor), low in zip(moving, lows, strict=True))
    return (width, phase) if width > 1 else None
