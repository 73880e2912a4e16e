"""Moves on accumulations over operands that several points share: tiles, register blocks, pipelines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import cast

from kernelskill.algorithm.expression import Load, Loop
from kernelskill.algorithm.lowering.staging import plan_tile
from kernelskill.algorithm.lowering.tensor import SIDE, find_product
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import (
    Option,
    Plan,
    accumulations,
    checked,
    first_that_fits,
    loads_in,
    number,
    pair,
)
from kernelskill.algorithm.promotion import with_loops_as_axes
from kernelskill.algorithm.schedule import AxisPlan, Copy, LoopPlan, Schedule, Staging
from kernelskill.algorithm.usual import usual_length


def tiled_loop(algorithm: Algorithm) -> Loop:
    """Return the loop along which operands would be staged: the outermost one of the longest accumulation.

    Raises:
        IllegalMove: Nothing accumulates.
    """
    for reduction in accumulations(algorithm):
        loop = reduction.loops[0]
        bodies = reduction.children
        if any(loads_in(body, loop) for body in bodies):
            return loop
    raise IllegalMove("no loop accumulates over elements of memory")


def _is_shared(algorithm: Algorithm, schedule: Schedule, load: Load) -> bool:
    """Whether several points of a block read the element of a load."""
    wide = [plan.axis for plan in schedule.axes if plan.tile > 1]
    return any(not load.depends_on(axis) for axis in wide)


def stagings(algorithm: Algorithm, schedule: Schedule, loop: Loop) -> tuple[tuple[Staging, ...], str]:
    """Return the buffers that can be staged along a loop and are shared, and why others are not."""
    found: list[Staging] = []
    reasons: list[str] = []
    loads: dict[Load, None] = {}
    for reduction in accumulations(algorithm):
        if reduction.loops[0].name == loop.name:
            for child in reduction.children:
                loads.update(dict.fromkeys(loads_in(child, loop)))
    for buffer in dict.fromkeys(load.buffer for load in loads):
        own = [load for load in loads if load.buffer == buffer]
        if not all(_is_shared(algorithm, schedule, load) for load in own):
            reasons.append(f"no two points of a block read the same element of {buffer}")
            continue
        try:
            plan_tile(algorithm, schedule, Staging(buffer, loop.name))
        except IllegalMove as refused:
            reasons.append(refused.reason)
            continue
        found.append(Staging(buffer, loop.name))
    return tuple(found), "; ".join(reasons)


MOST_COVERED = 1.2
"""Points that blocks may cover for each that there is, at usual sizes, for their shape to come first."""


class ShareTiles:
    """Stage tiles of shared operands in shared memory, one point a thread."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        if plan.schedule.staged:
            raise IllegalMove("operands are staged already")
        tiled_loop(with_loops_as_axes(plan.algorithm))
        values = ("16", "32", "8")
        return first_that_fits(self, plan, (Option("tile", values, "points of a block along each axis"),))

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        side = number(values["tile"])
        algorithm = with_loops_as_axes(plan.algorithm)
        if plan.schedule.staged:
            raise IllegalMove("operands are staged already")
        if plan.schedule.lanes > 1:
            raise IllegalMove("several threads share each point's loop already")
        loop = tiled_loop(algorithm)
        if not algorithm.axes:
            raise IllegalMove("there is only one point")
        depth = side if len(algorithm.axes) > 1 else side * side
        schedule = Schedule(axes=_square(algorithm, side), loops=(LoopPlan(loop.name, depth),))
        found, reasons = stagings(algorithm, schedule, loop)
        if not found:
            raise IllegalMove(reasons or "nothing can be staged")
        return checked(Plan(algorithm, replace(schedule, staged=found)))


def _square(algorithm: Algorithm, side: int) -> tuple[AxisPlan, ...]:
    """Return plans with a square of threads along the last two axes; a line of as many where there is one."""
    count = len(algorithm.axes)
    plans = []
    for position, axis in enumerate(algorithm.axes):
        inner = position >= count - 2
        threads = (side if count > 1 else side * side) if inner else 1
        plans.append(AxisPlan(axis.name, threads))
    return tuple(plans)


class BlockPoints:
    """Let each thread compute a block of points from operands in registers."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        _require_tiles(plan)
        if len(plan.algorithm.axes) == 1:
            offered = (
                Option("points", ("1x4", "1x2", "1x8"), "points of a thread"),
                Option("threads", ("1x128", "1x64", "1x256"), "threads of a block"),
                Option("depth", ("128", "64", "256", "32"), "steps staged together"),
            )
        else:
            points, threads = _fitting(
                plan.algorithm, ("8x8", "8x16", "4x4", "8x4", "4x8"), ("16x16", "8x16", "16x8", "8x8")
            )
            offered = (
                Option("points", points, "points of a thread: rows x columns"),
                Option("threads", threads, "threads of a block: rows x columns"),
                Option("depth", ("8", "16", "32"), "steps staged together"),
            )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        _require_tiles(plan)
        _refuse_tensor(plan)
        algorithm, schedule = plan.algorithm, plan.schedule
        points, threads = pair(values["points"]), pair(values["threads"])
        depth = number(values["depth"])
        inner = [axis.name for axis in algorithm.axes][-2:]
        shapes = dict(zip(reversed(inner), ((threads[1], points[1]), (threads[0], points[0])), strict=False))
        if len(inner) == 1 and (points[0] > 1 or threads[0] > 1):
            raise IllegalMove("there is only one axis")
        plans = tuple(
            AxisPlan(old.axis, *shapes[old.axis]) if old.axis in shapes else old for old in schedule.axes
        )
        loop = schedule.staged[0].loop
        changed = replace(schedule, axes=plans).with_loop(LoopPlan(loop, depth))
        return checked(Plan(algorithm, changed))


def _fitting(
    algorithm: Algorithm, points: tuple[str, ...], threads: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return points and threads with those first whose blocks leave few threads idle at usual sizes."""
    sizes = [usual_length(algorithm, [axis.loop]) for axis in algorithm.axes[-2:]]
    if any(not size for size in sizes):
        return points, threads

    def rank(shape: tuple[str, str]) -> tuple[bool, int]:
        blocks = [p * t for p, t in zip(pair(shape[0]), pair(shape[1]), strict=True)]
        covered = math.prod(
            -(-size // block) * block for size, block in zip(sizes, blocks, strict=True) if size
        )
        wasteful = covered > MOST_COVERED * math.prod(size for size in sizes if size)
        return wasteful, points.index(shape[0]) + threads.index(shape[1])

    first = min(product(points, threads), key=rank)
    return tuple(dict.fromkeys((first[0], *points))), tuple(dict.fromkeys((first[1], *threads)))


class WideAccess:
    """Move neighbouring elements together, from global memory, in shared memory and back."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        _require_tiles(plan)
        return first_that_fits(self, plan, (Option("vector", ("4", "2"), "elements of one access"),))

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        _require_tiles(plan)
        _refuse_tensor(plan)
        width = number(values["vector"])
        changed = [
            replace(old, vector=width) if old.points % width == 0 else old for old in plan.schedule.axes
        ]
        if tuple(changed) == plan.schedule.axes:
            raise IllegalMove(f"no axis has a multiple of {width} points a thread")
        return checked(Plan(plan.algorithm, replace(plan.schedule, axes=tuple(changed))))


_TENSOR_TILES = ("128x128", "128x256", "256x128", "64x64", "128x64", "64x128", "32x32")


class UseTensorCores:
    """Multiply fragments of staged half-precision operands on tensor cores, sums in floats."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered = (
            Option("tile", _TENSOR_TILES, "points of a block: rows x columns"),
            Option("warps", ("2x4", "4x2", "2x2", "1x2"), "warps of a block: rows x columns"),
            Option("depth", ("32", "16", "64"), "steps staged together"),
        )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.lanes > 1 or plan.schedule.tensor:
            raise IllegalMove("points are scheduled otherwise already")
        algorithm = with_loops_as_axes(plan.algorithm)
        product = find_product(algorithm)
        tile, warps, depth = pair(values["tile"]), pair(values["warps"]), number(values["depth"])
        shapes = {product.row: (warps[0], tile[0]), product.col: (warps[1], tile[1])}
        for parts, points in shapes.values():
            if points % (parts * SIDE):
                raise IllegalMove(f"{parts} warps do not share {points} points in groups of {SIDE}")
        plans = tuple(
            AxisPlan(axis.name, shapes[axis.name][0], shapes[axis.name][1] // shapes[axis.name][0])
            if axis.name in shapes
            else AxisPlan(axis.name)
            for axis in algorithm.axes
        )
        loop = product.reduction.loops[0].name
        staged = tuple(
            Staging(buffer, loop) for buffer in dict.fromkeys((product.left.buffer, product.right.buffer))
        )
        schedule = Schedule(axes=plans, loops=(LoopPlan(loop, depth),), staged=staged, tensor=True)
        return checked(Plan(algorithm, schedule))


class OverlapCopies:
    """Fetch the next tile while the present one is used."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        _require_tiles(plan)
        # Tensor cores use a tile up before one fetched through registers is there; elsewhere a second tile,
        # or a deeper queue, costs shared memory and wins little.
        tensor = plan.schedule.tensor
        values = ("async", "double", "registers") if tensor else ("registers", "double", "async")
        return first_that_fits(
            self, plan, (Option("copy", values, "two tiles, asynchronous copies, or one tile and registers"),)
        )

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        _require_tiles(plan)
        copy = values["copy"]
        if copy not in ("double", "async", "registers"):
            raise IllegalMove(f"{copy!r} is no way to overlap copies")
        if plan.schedule.copy == copy:
            raise IllegalMove("copies are overlapped in this way already")
        return checked(Plan(plan.algorithm, replace(plan.schedule, copy=cast(Copy, copy))))


class WalkInBands:
    """Order the blocks so that those running together share operands in L2."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        _require_tiles(plan)
        return first_that_fits(self, plan, (Option("band", ("8", "4", "16"), "rows of blocks in a band"),))

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        _require_tiles(plan)
        if len(plan.algorithm.axes) < 2:
            raise IllegalMove("blocks stand in one row only")
        return checked(Plan(plan.algorithm, replace(plan.schedule, swizzle=number(values["band"]))))


def _require_tiles(plan: Plan) -> None:
    if not any(staging.loop for staging in plan.schedule.staged):
        raise IllegalMove("operands are not staged yet")


def _refuse_tensor(plan: Plan) -> None:
    if plan.schedule.tensor:
        raise IllegalMove("tensor cores hold the points already")
