"""Moves on points that read windows with borders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.access import footprint
from kernelskill.algorithm.expression import loads
from kernelskill.algorithm.lowering.loop_heads import is_short
from kernelskill.algorithm.lowering.staging import inner_loops
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import (
    Option,
    Plan,
    axes_for,
    checked,
    first_that_fits,
    number,
    pair,
)
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from kernelskill.algorithm.types import size_of
from kernelskill.algorithm.windows import with_even_windows

_POINTS = {
    1: ("4x8", "8x4", "4x4", "2x16", "4x1", "2x4", "8x1"),
    2: ("4x2", "2x8", "4x1", "8x1", "2x2", "2x1", "1x1"),
    4: ("4x4", "4x1", "2x4", "8x1", "2x1", "2x2", "4x2", "1x1"),
    8: ("4x1", "2x2", "4x2", "8x1", "2x1", "1x1"),
}
"""Rows and columns of a thread by the bytes of an element, the most promising first."""


class InnerPoints:
    """Let threads whose windows lie inside of all bounds compute several neighbouring points without tests."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered: tuple[Option, ...]
        if len(plan.algorithm.axes) == 1:
            offered = (
                Option("points", ("1x4", "1x2", "1x8", "1x1"), "points of a thread"),
                Option("threads", ("1x256", "1x128"), "threads of a block"),
            )
        else:
            size = size_of(plan.algorithm.stores[0].kind) if plan.algorithm.stores else 4
            points = _POINTS.get(size, _POINTS[4])
            offered = (
                Option("points", points, "points of a thread: rows x columns"),
                Option(
                    "threads",
                    ("8x32", "4x64", "16x16", "2x128", "4x32"),
                    "threads of a block: rows x columns",
                ),
            )
            if len(plan.algorithm.axes) > 2 and _overlaps_along(plan.algorithm, plan.algorithm.axes[-3].name):
                offered = (*offered, Option("planes", ("1", "2", "4", "8"), "planes of points of a thread"))
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        points, threads = pair(values["points"]), pair(values["threads"])
        algorithm = with_even_windows(plan.algorithm)
        axes = axes_for(algorithm, points, threads)
        together = points[1] if _are_neighbours(algorithm, points[1]) else 1
        shapes = {axes[-1].name: (threads[1], points[1], together)}
        if len(axes) > 1:
            shapes[axes[-2].name] = (threads[0], points[0], points[0])
        planes = number(values.get("planes", "1"))
        if planes > 1:
            if len(axes) < 3:
                raise IllegalMove("there are only rows and columns")
            shapes[axes[-3].name] = (1, planes, planes)
        plans = tuple(AxisPlan(axis.name, *shapes.get(axis.name, (1, 1, 1))) for axis in axes)
        return checked(Plan(algorithm, replace(Schedule(axes=plans), interior=True)))


def _overlaps_along(algorithm: Algorithm, axis: str) -> bool:
    """Whether a point reads elements beside its own along an axis."""
    counts = {each.name: 2 for each in algorithm.axes} | dict.fromkeys(inner_loops(algorithm), 2)
    for load in dict.fromkeys(node for each in algorithm.expressions for node in loads(each)):
        own = footprint(load.index, counts)
        for dimension in own.dimensions if own is not None else ():
            if axis in dimension.symbols and (dimension.offset or len(dimension.symbols) > 1):
                return True
    return False


def _are_neighbours(algorithm: Algorithm, columns: int) -> bool:
    """Whether a thread's columns lie side by side: as parts of a word, or as whole accesses of 16 bytes.

    Between the two, and in windows whose size is not known, threads side by side that read single elements read
    whole words together.
    """
    size = size_of(algorithm.stores[0].kind)
    if size == 1 or columns * size <= 4:
        return True
    return columns * size % 16 == 0 and all(is_short(loop) for loop in inner_loops(algorithm).values())
