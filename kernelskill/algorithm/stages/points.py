"""The stages that make something of finished results: every element a point of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Expression, Load, Loop, walk
from kernelskill.algorithm.flatten import flattened
from kernelskill.algorithm.integers import coefficient, stride_order, value_of
from kernelskill.algorithm.model import Algorithm, Axis, IllegalMove, Store
from kernelskill.algorithm.moves.plan import accumulations
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from kernelskill.algorithm.stages.model import Stage


@dataclass(frozen=True)
class PointShape:
    """How the threads of a block stand in the kernels of points."""

    rows: int
    columns: int
    vector: int


def point_stages(algorithm: Algorithm, shape: PointShape) -> tuple[Stage, ...]:
    """Return a stage for the stores of each range of loops, the loops as axes.

    Args:
        algorithm: What is left to store, in an order that stages keep.
        shape: Of the blocks.

    Raises:
        IllegalMove: A stage would read what another point or an earlier stage wrote.
    """
    families: dict[tuple[tuple[Expression, Expression], ...], list[Store]] = {}
    for store in algorithm.stores:
        ranges = tuple((loop.lower, loop.upper) for loop in store.loops)
        families.setdefault(ranges, []).append(store)
    stages: list[Stage] = []
    written: set[str] = set()
    for number, stores in enumerate(families.values()):
        made = _as_points(algorithm, stores)
        _check_reads(made, written)
        written |= {store.buffer for store in stores}
        name = algorithm.kernel if number == 0 else f"{algorithm.kernel}_{number + 1}"
        stage = _scheduled(replace(made, kernel=name), shape)
        stages.append(replace(stage, loops=stores[0].loops))
    return tuple(stages)


def _as_points(algorithm: Algorithm, stores: Sequence[Store]) -> Algorithm:
    """Return an algorithm of some stores with their loops as axes."""
    loops = stores[0].loops
    for loop in loops:
        _check_range(algorithm, loop)
    alike = [_over(store, loops) for store in stores]
    axes = [*algorithm.axes, *(Axis(loop.name, loop.lower, loop.upper, kind=loop.kind) for loop in loops)]
    axes.sort(key=lambda axis: stride_order(alike[0].index, axis.name))
    return flattened(replace(algorithm, axes=tuple(axes), stores=tuple(alike)))


def _over(store: Store, loops: tuple[Loop, ...]) -> Store:
    """Return a store without its loops, their variables called as those of another."""
    table: dict[str, Expression] = {
        mine.name: loop.symbol
        for mine, loop in zip(store.loops, loops, strict=True)
        if mine.name != loop.name
    }
    return replace(
        store,
        index=substitute(store.index, table),
        value=substitute(store.value, table),
        guard=tuple(substitute(each, table) for each in store.guard),
        loops=(),
    )


def _check_range(algorithm: Algorithm, loop: Loop) -> None:
    for bound in (loop.lower, loop.upper):
        if bound.depends_on(*algorithm.ranges) or any(isinstance(node, Load) for node in walk(bound)):
            raise IllegalMove("what is stored runs along a range that differs from point to point")


def _check_reads(algorithm: Algorithm, earlier: set[str]) -> None:
    own = {store.buffer: store.index for store in algorithm.stores}
    for expression in algorithm.expressions:
        for load in (node for node in walk(expression) if isinstance(node, Load)):
            if load.buffer in earlier or (load.buffer in own and load.index != own[load.buffer]):
                raise IllegalMove(f"{load.buffer} is read again after a part of it was written")


def _scheduled(algorithm: Algorithm, shape: PointShape) -> Stage:
    axes = algorithm.axes
    if not axes:
        return Stage(algorithm, Schedule(), "what is left")
    together = 1 if accumulations(algorithm) or not _is_side_by_side(algorithm) else shape.vector
    columns, rows = (shape.columns, shape.rows) if len(axes) > 1 else (shape.columns * shape.rows, 1)
    plans = [AxisPlan(axis.name) for axis in axes]
    plans[-1] = AxisPlan(axes[-1].name, columns, together, together)
    if len(axes) > 1:
        plans[-2] = AxisPlan(axes[-2].name, rows)
    return Stage(algorithm, Schedule(axes=tuple(plans)), "every element by itself")


def _is_side_by_side(algorithm: Algorithm) -> bool:
    """Whether neighbouring points of the innermost axis store neighbouring elements."""
    last = algorithm.axes[-1].name
    factors = [coefficient(store.index, last) for store in algorithm.stores]
    return all(factor is not None and value_of(factor) == 1 for factor in factors)
