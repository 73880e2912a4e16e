"""Moves on independent points: flat and wide accesses, several points a thread, tiles that turn an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.access import footprint, load_sites
from kernelskill.algorithm.expression import Expression, Load, walk
from kernelskill.algorithm.flatten import flattened
from kernelskill.algorithm.integers import coefficient, value_of
from kernelskill.algorithm.lowering.staging import plan_tile, varying_counts
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.moves.plan import (
    Option,
    Plan,
    accumulations,
    axes_for,
    checked,
    first_that_fits,
    number,
    pair,
)
from kernelskill.algorithm.promotion import with_loops_as_axes
from kernelskill.algorithm.schedule import AxisPlan, Schedule, Staging
from kernelskill.algorithm.windows import with_even_windows


class VectorPoints:
    """Let each thread compute neighbouring points and move them by wide accesses."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered = (
            Option("vector", ("4", "2", "8", "16"), "neighbouring points of a thread"),
            Option("threads", ("256", "128", "512"), "threads of a block"),
        )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        # A thread that copies a whole row leaves its neighbours a row apart: the row's elements are points too.
        algorithm = flattened(with_loops_as_axes(plan.algorithm))
        if not algorithm.axes:
            raise IllegalMove("there is only one point")
        if accumulations(algorithm):
            raise IllegalMove("points accumulate over loops")
        width, threads = number(values["vector"]), number(values["threads"])
        last = algorithm.axes[-1].name
        plans = tuple(
            AxisPlan(axis.name, threads, width, width) if axis.name == last else AxisPlan(axis.name)
            for axis in algorithm.axes
        )
        result = checked(Plan(algorithm, Schedule(axes=plans)))
        if not _any_unit(algorithm, last):
            raise IllegalMove("no access runs along neighbouring elements")
        return result


def _any_unit(algorithm: Algorithm, axis: str) -> bool:
    for store in algorithm.stores:
        factor = coefficient(store.index, axis)
        if factor is None or value_of(factor) is None or not 1 <= (value_of(factor) or 0) <= 8:
            return False
        if store.loops or store.mode != "=":
            return False
    return True


class CoarsenPoints:
    """Let each thread compute several points, so that what they share is read and computed once."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered: tuple[Option, ...]
        if len(with_loops_as_axes(plan.algorithm).axes) == 1:
            offered = (
                Option("points", ("1x4", "1x2", "1x8"), "points of a thread"),
                Option("threads", ("1x256", "1x128"), "threads of a block"),
            )
        else:
            offered = (
                Option("points", ("4x1", "2x1", "2x4", "4x4", "8x1", "1x4"), "points of a thread"),
                Option("threads", ("4x64", "8x32", "16x16", "2x128"), "threads of a block"),
            )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        schedule = plan.schedule
        if any(staging.loop for staging in schedule.staged) or schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        points, threads = pair(values["points"]), pair(values["threads"])
        parallel = plan.algorithm
        if not schedule.staged and not accumulations(parallel):
            parallel = with_loops_as_axes(parallel)
        algorithm = with_even_windows(parallel)
        axes = axes_for(algorithm, points, threads)
        shapes = {axes[-1].name: (threads[1], points[1])}
        if len(axes) > 1:
            shapes[axes[-2].name] = (threads[0], points[0])
        plans = tuple(AxisPlan(axis.name, *shapes.get(axis.name, (1, 1))) for axis in axes)
        return checked(Plan(algorithm, Schedule(axes=plans, staged=schedule.staged)))


class TurnTiles:
    """Read a tile along its own order and write it along another, through shared memory."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered = (
            Option("tile", ("32", "64"), "points of a block along each axis"),
            Option("rows", ("8", "4", "16"), "rows of threads"),
        )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        side, rows = number(values["tile"]), number(values["rows"])
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        algorithm = plan.algorithm
        if accumulations(algorithm):
            raise IllegalMove("points accumulate over loops")
        fast = _unit_axis(algorithm, algorithm.stores[0].index)
        turned = {
            load.buffer: axis
            for load in _loads(algorithm)
            if (axis := _unit_axis(algorithm, load.index)) not in (None, fast)
        }
        if fast is None or not turned:
            raise IllegalMove("reads and writes run along the same axis")
        slow = next(iter(turned.values()))
        assert slow is not None
        others = [axis for axis in algorithm.axes if axis.name not in (fast, slow)]
        ordered = (*others, algorithm.axis(slow), algorithm.axis(fast))
        algorithm = replace(algorithm, axes=ordered)
        if side % 32 or side % rows:
            raise IllegalMove(f"{rows} rows of threads do not divide {side}")
        plans = (
            *(AxisPlan(axis.name) for axis in others),
            AxisPlan(slow, rows, side // rows),
            AxisPlan(fast, min(side, 32), side // min(side, 32)),
        )
        staged = tuple(Staging(buffer) for buffer, axis in turned.items() if axis == slow)
        return checked(Plan(algorithm, Schedule(axes=plans, staged=staged)))


def _loads(algorithm: Algorithm) -> list[Load]:
    return list(dict.fromkeys(n for e in algorithm.expressions for n in walk(e) if isinstance(n, Load)))


def _unit_axis(algorithm: Algorithm, index: Expression) -> str | None:

    for axis in algorithm.axes:
        factor = coefficient(index, axis.name)
        if factor is not None and value_of(factor) == 1:
            return axis.name
    return None


class HaloTiles:
    """Stage the window of inputs that a block's points overlap on in shared memory."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered: tuple[Option, ...]
        if len(plan.algorithm.axes) == 1:
            offered = (
                Option("points", ("1x1", "1x2", "1x4"), "points of a thread"),
                Option("threads", ("1x256", "1x128", "1x512"), "threads of a block"),
            )
        else:
            offered = (
                Option("points", ("1x1", "2x1", "4x1", "4x2"), "points of a thread: rows x columns"),
                Option("threads", ("8x32", "16x16", "4x64", "16x32"), "threads of a block: rows x columns"),
            )
        if len(plan.algorithm.axes) > 2:
            offered = (*offered, Option("planes", ("1", "4", "2"), "planes of points of a thread"))
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        coarse = CoarsenPoints().apply(plan, values)
        algorithm, base = coarse.algorithm, coarse.schedule
        planes = number(values.get("planes", "1"))
        if planes > 1:
            if len(algorithm.axes) < 3:
                raise IllegalMove("there are only rows and columns")
            base = base.with_axis(AxisPlan(algorithm.axes[-3].name, 1, planes))
        found, reasons = [], []
        for buffer in dict.fromkeys(load.buffer for load in _loads(algorithm)):
            if not _overlaps(algorithm, base, buffer):
                continue
            try:
                plan_tile(algorithm, base, Staging(buffer))
                found.append(Staging(buffer))
            except IllegalMove as refused:
                reasons.append(refused.reason)
        if not found:
            raise IllegalMove("; ".join(reasons) or "no points read overlapping windows")
        return checked(Plan(algorithm, replace(base, staged=tuple(found))))


def _overlaps(algorithm: Algorithm, schedule: Schedule, buffer: str) -> bool:
    """Whether neighbouring points of a block read the same elements of a buffer."""
    counts = varying_counts(algorithm, schedule, "")
    sites = [
        site.load
        for store in algorithm.stores
        for expression in store.expressions
        for site in load_sites(expression)
        if site.load.buffer == buffer
    ]
    prints = [footprint(load.index, counts) for load in dict.fromkeys(sites)]
    known = [each for each in prints if each is not None]
    if len(known) > 1:
        return True
    axes = {plan.axis for plan in schedule.axes}
    for each in known:
        for dimension in each.dimensions:
            if dimension.symbols & axes and dimension.symbols - axes:
                return True
        if any(not each.symbols & {plan.axis} for plan in schedule.axes if plan.tile > 1):
            return bool(each.symbols)
    return False
