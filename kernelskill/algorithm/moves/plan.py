"""A move: one legal change of how an algorithm is scheduled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kernelskill.algorithm.code_size import require_short
from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Reduce
from kernelskill.algorithm.lowering.hoisting import hoistable
from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.model import Algorithm, Axis, IllegalMove
from kernelskill.algorithm.schedule import Schedule
from kernelskill.algorithm.stages.model import Stages


@dataclass(frozen=True)
class Plan:
    """An algorithm with its schedule."""

    algorithm: Algorithm
    schedule: Schedule
    stages: Stages | None = None
    """The kernels that stand in for one; algorithm and schedule are then what they were made from."""


@dataclass(frozen=True)
class Option:
    """One parameter of a move with the values that make sense now, the most promising first."""

    name: str
    values: tuple[str, ...]
    meaning: str = ""


class Move(Protocol):
    """One kind of change. Both methods raise `IllegalMove` with the reason where it does not apply."""

    def options(self, plan: Plan) -> tuple[Option, ...]:
        """Return the parameters of the move on a plan."""
        ...

    def apply(self, plan: Plan, values: Mapping[str, str]) -> Plan:
        """Return the changed plan."""
        ...


def checked(plan: Plan) -> Plan:
    """Return a plan that can be lowered.

    Raises:
        IllegalMove: It cannot, with the reason.
    """
    require_short(plan.algorithm, plan.schedule)
    names = {parameter.name: parameter.name for parameter in plan.algorithm.parameters}
    emitted = emit(plan.algorithm, plan.schedule, LaunchFacts(names))
    if emitted.threads > 1024:
        raise IllegalMove(f"{emitted.threads} threads a block are more than 1024")
    return plan


def first_that_fits(move: Move, plan: Plan, options: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return options of which at least the first values make a plan that can be lowered.

    Raises:
        IllegalMove: Not even these do.
    """
    move.apply(plan, {option.name: option.values[0] for option in options})
    return options


def accumulations(algorithm: Algorithm) -> tuple[Reduce | Fold, ...]:
    """Return the reductions that run once a point, in the order in which they are needed."""
    found: dict[Reduce | Fold, None] = {}
    for store in algorithm.stores:
        for expression in store.expressions:
            found.update(dict.fromkeys(hoistable(expression)))
    return tuple(found)


def loads_in(expression: Expression, loop: Loop) -> tuple[Load, ...]:
    """Return the loads that move with a loop."""
    found: dict[Load, None] = {}

    def visit(node: Expression) -> None:
        if isinstance(node, Load) and node.depends_on(loop.name):
            found[node] = None
        for child in node.children:
            visit(child)

    visit(expression)
    return tuple(found)


def axes_for(algorithm: Algorithm, points: tuple[int, int], threads: tuple[int, int]) -> tuple[Axis, ...]:
    """Return the axes along which blocks of points can be laid: rows x columns on the last two.

    Raises:
        IllegalMove: There are too few.
    """
    axes = algorithm.axes
    if not axes:
        raise IllegalMove("there is only one point")
    if len(axes) == 1 and (points[0] > 1 or threads[0] > 1):
        raise IllegalMove("there is only one axis")
    return axes


def pair(text: str) -> tuple[int, int]:
    """Return the two numbers of a value such as `16x8`.

    Raises:
        IllegalMove: It is not of that form.
    """
    first, cross, second = text.partition("x")
    if not (cross and first.isdigit() and second.isdigit()):
        raise IllegalMove(f"{text!r} is not of the form ROWSxCOLUMNS")
    return int(first), int(second)


def number(text: str) -> int:
    """Return a positive number.

    Raises:
        IllegalMove: It is not one.
    """
    if not text.isdigit() or int(text) < 1:
        raise IllegalMove(f"{text!r} is not a positive number")
    return int(text)
