"""Moves on points that run long loops: several threads share each point's loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.accumulate import accumulated
from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, walk
from kernelskill.algorithm.flatten import flattened
from kernelskill.algorithm.fused_sums import with_singles_first
from kernelskill.algorithm.integers import coefficient, constant, exact_division, multiply, subtract, value_of
from kernelskill.algorithm.model import Algorithm, IllegalMove, Store
from kernelskill.algorithm.moves.plan import (
    Option,
    Plan,
    accumulations,
    checked,
    first_that_fits,
    loads_in,
    number,
)
from kernelskill.algorithm.picks import as_pick
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.running import without_running
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from kernelskill.algorithm.types import WIDEST_BYTES, size_of
from kernelskill.algorithm.usual import nearest_first, usual_length

GOOD_TURNS = 4
"""Turns of a lane along a row of usual length: enough loads in flight, and few enough to keep in registers."""
MOST_LANES = 256
"""Lanes of a row that come first, however long rows usually are."""


class ShareRows:
    """Let a group of neighbouring threads share each point's loops and combine by shuffles."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        # Who gives each row a block has few long rows.
        few = _has_a_block_each(plan.algorithm)
        lanes = tuple(("512 256 1024 128 32" if few else "32 256 128 512 64 16 8").split())
        widths = _widths(plan.algorithm)
        length = _row_length(plan.algorithm)
        if length is not None and not few:
            lanes = nearest_first(lanes, min(MOST_LANES, length / (GOOD_TURNS * int(widths[0]))))
        offered: tuple[Option, ...] = (
            Option("lanes", lanes, "threads that share a row"),
            Option("threads", ("256", "128", "512"), "threads of a block, at least the lanes"),
            Option("vector", widths, "neighbouring steps that a lane takes together"),
        )
        if _rows_share_loads(plan.algorithm):
            offered += (Option("points", ("1", "2", "4", "8"), "rows that a lane takes together"),)
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        lanes, threads, points = (number(values.get(name, "1")) for name in ("lanes", "threads", "points"))
        algorithm = with_singles_first(without_running(plan.algorithm))
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        if lanes & (lanes - 1) or lanes < 2:
            raise IllegalMove("the number of lanes must be a power of two")
        _check_loops(algorithm)
        rows = max(1, threads // lanes) if lanes < threads else 1
        plans = []
        for position, axis in enumerate(algorithm.axes):
            is_last = position == len(algorithm.axes) - 1
            plans.append(AxisPlan(axis.name, rows, points) if is_last else AxisPlan(axis.name))
        schedule = Schedule(axes=tuple(plans), lanes=lanes, lane_vector=number(values["vector"]))
        if not plans:
            raise IllegalMove("there is only one point")
        _check_order(algorithm)
        return checked(Plan(algorithm, schedule))


class ShareColumns:
    """Let several rows of threads share each point's loops; neighbouring threads stay neighbouring points."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered = (
            Option("lanes", ("32", "64", "16", "8", "4"), "rows of threads that share a column"),
            Option("threads", ("16", "32", "8", "64", "128"), "neighbouring points of a block"),
        )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        lanes, threads = number(values["lanes"]), number(values["threads"])
        algorithm = with_singles_first(without_running(plan.algorithm))
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        if not algorithm.axes:
            raise IllegalMove("there is only one point")
        if any(store.loops for store in algorithm.stores):
            raise IllegalMove("points write along loops")
        _check_loops(algorithm)
        last = algorithm.axes[-1].name
        plans = tuple(AxisPlan(a.name, threads if a.name == last else 1) for a in algorithm.axes)
        return checked(Plan(algorithm, Schedule(axes=plans, lanes=lanes, lanes_outer=True)))


class KeepRows:
    """Keep what a lane reads of a row in registers from one loop to the next."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        meaning = "groups of steps that a lane keeps; longer rows are read again"
        chunks: tuple[str, ...] = ("4", "8", "2", "1", "16")
        length = _row_length(plan.algorithm)
        if length is not None:
            needed = -(-length // (plan.schedule.lanes * plan.schedule.lane_vector))
            enough = sorted((value for value in chunks if int(value) >= needed), key=int)
            chunks = (*enough, *(value for value in chunks if value not in enough))
        return first_that_fits(self, plan, (Option("chunks", chunks, meaning),))

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.lanes == 1 or plan.schedule.lanes_outer:
            raise IllegalMove("rows are not shared by lanes yet")
        if plan.schedule.keep:
            raise IllegalMove("rows are kept already")
        if any(each.points > 1 for each in plan.schedule.axes):
            raise IllegalMove("a lane takes several rows together")
        return checked(Plan(plan.algorithm, replace(plan.schedule, keep=number(values["chunks"]))))


class SumInBlocks:
    """Accumulate what all points add to one element in registers, lanes and blocks before the atomic."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        offered = (
            Option("threads", ("256", "512", "128"), "threads of a block"),
            Option("vector", ("4", "2", "1"), "neighbouring points that a thread takes together"),
            Option("blocks", ("1024", "512", "2048"), "most blocks"),
        )
        return first_that_fits(self, plan, offered)

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        if plan.schedule.staged or plan.schedule.lanes > 1:
            raise IllegalMove("points are scheduled otherwise already")
        algorithm = with_singles_first(accumulated(flattened(plan.algorithm)))
        threads = number(values["threads"])
        if threads & (threads - 1) or threads < 32:
            raise IllegalMove("the number of threads must be a power of two, 32 at least")
        if any(store.kind == "bool" for store in algorithm.stores):
            raise IllegalMove("flags are not accumulated")
        schedule = Schedule(
            axes=tuple(AxisPlan(axis.name) for axis in algorithm.axes),
            lanes=threads,
            lane_vector=number(values["vector"]),
            splits=number(values["blocks"]),
        )
        return checked(Plan(algorithm, schedule))


def _walked(algorithm: Algorithm) -> list[tuple[Load, Loop]]:
    """Return the loads that move with the loops along rows."""
    found = ((each, loop) for each in accumulations(algorithm) for loop in each.loops)
    return [(load, loop) for each, loop in found for load in loads_in(each, loop)]


def _row_length(algorithm: Algorithm) -> int | None:
    """Return the usual length of the loops along rows; None where it is unknown."""
    length = usual_length(algorithm, [loop for each in accumulations(algorithm) for loop in each.loops])
    return length if length else None


def _rows_share_loads(algorithm: Algorithm) -> bool:
    """Whether neighbouring rows read the same elements in their loops."""
    last = algorithm.axes[-1].name if algorithm.axes else ""
    return any(last and not load.depends_on(last) for load, _ in _walked(algorithm))


def _widths(algorithm: Algorithm) -> tuple[str, ...]:
    """Return how many steps a lane may take together, best first: one, where a step moves a whole wide access."""
    for load, loop in _walked(algorithm):
        factor = coefficient(load.index, loop.name)
        step = value_of(factor) if factor is not None else None
        if step is not None and abs(step) * size_of(load.kind) >= WIDEST_BYTES:
            return ("1", "2", "4")
    return ("4", "1", "2")


def _has_a_block_each(algorithm: Algorithm) -> bool:
    """Whether every point has a block of its own in the user's mapping."""
    bindings = [axis.binding for axis in algorithm.axes]
    return bool(bindings) and all(b is not None and b.source == "block" for b in bindings)


def _check_loops(algorithm: Algorithm) -> None:
    found = accumulations(algorithm)
    if not found:
        raise IllegalMove("no loop accumulates")
    if any(isinstance(reduction, Fold) and as_pick(reduction) is None for reduction in found):
        raise IllegalMove("a loop carries more than one associative accumulator")
    written = {store.buffer for store in algorithm.stores}
    outside = {
        node
        for expression in algorithm.expressions
        for node in walk(expression)
        if isinstance(node, Load) and node.buffer in written and not _within_reduction(algorithm, node)
    }
    for load in outside:
        if not any(load.index == store.index for store in algorithm.stores if store.buffer == load.buffer):
            raise IllegalMove(f"{load.buffer} is read and written at different elements")


def _check_order(algorithm: Algorithm) -> None:
    """Refuse to spread stores along loops over threads where two stores of a point may meet."""
    for position, second in enumerate(algorithm.stores):
        for first in algorithm.stores[:position]:
            if first.buffer != second.buffer or not (first.loops or second.loops):
                continue
            if not _never_meet(first, second):
                raise IllegalMove(f"two stores of a point to {first.buffer} may meet")


def _never_meet(first: Store, second: Store) -> bool:
    """Whether two stores along equal loops, or one of them without a loop, go to different elements."""
    if len(first.loops) > 1 or [_range(e) for e in first.loops] != [_range(e) for e in second.loops]:
        return False
    loop = first.loops[0]
    index = substitute(second.index, {second.loops[0].name: loop.symbol})
    distance, factor = subtract(index, first.index), coefficient(index, loop.name)
    if factor is None or distance.depends_on(loop.name) or value_of(factor) == 0:
        return False
    steps, rest = exact_division(distance, factor)
    known = value_of(rest)
    if known is not None and known != 0 and value_of(factor) is not None:
        return True
    if known != 0:
        return False
    extent = subtract(loop.upper, loop.lower)
    beyond = [value_of(subtract(each, extent)) for each in (steps, multiply(steps, constant(-1)))]
    return any(each is not None and each >= 0 for each in beyond)


def _range(loop: Loop) -> tuple[Expression, Expression]:
    """Return the range of a loop."""
    return loop.lower, loop.upper


def _within_reduction(algorithm: Algorithm, load: Load) -> bool:
    return any(load in set(walk(reduction)) for reduction in accumulations(algorithm))
