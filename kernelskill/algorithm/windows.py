"""Loops over the windows of points in one form: from zero, of one length for all points, taps beyond a border masked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Expression,
    Fold,
    Load,
    Loop,
    Reduce,
    Select,
    walk,
)
from kernelskill.algorithm.integers import add, conjunction, constant, selected, subtract, terms_of
from kernelskill.algorithm.interior import is_unsigned
from kernelskill.algorithm.lifting.recurrences import neutral_for
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.algorithm.types import is_integer


def with_even_windows(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm in which loops that begin at a point's own place have one length for all points.

    `for (i = max(2 * x - 1, 0); i < min(2 * x + 2, n); ++i)` is three steps of which some are left out.
    """
    axes = tuple(axis.name for axis in algorithm.axes)

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Reduce | Fold):
            return None
        fresh = _unclipped(node, axes)
        for position in range(len(fresh.loops)):
            fresh = _shifted(fresh, position, axes)
        return fresh

    return algorithm.mapped(lambda expression: rebuild(expression, change))


def _shifted(node: Reduce | Fold, position: int, axes: tuple[str, ...]) -> Reduce | Fold:
    """Let one loop begin at zero, where it begins at a place that moves with the points."""
    loop = node.loops[position]
    length = subtract(loop.upper, loop.lower)
    if not loop.lower.depends_on(*axes) or length.depends_on(*axes):
        return node
    moved = {loop.name: add(loop.symbol, loop.lower)}
    after = (
        Loop(each.name, substitute(each.lower, moved), substitute(each.upper, moved), each.kind)
        for each in node.loops[position + 1 :]
    )
    loops = (*node.loops[:position], Loop(loop.name, constant(0), length, loop.kind), *after)
    if isinstance(node, Reduce):
        return replace(node, loops=loops, body=substitute(node.body, moved))
    return replace(node, loops=loops, updates=tuple(substitute(each, moved) for each in node.updates))


def _unclipped(node: Reduce | Fold, axes: tuple[str, ...]) -> Reduce | Fold:
    """Let loops run over whole windows, and leave out the steps that lie beyond a fixed bound."""
    loops, tests = [], []
    for loop in node.loops:
        lower, above = _parted(loop.lower, "max", axes)
        upper, below = _parted(loop.upper, "min", axes)
        length = subtract(upper, lower)
        if not (above or below) or length.depends_on(*axes) or not lower.depends_on(*axes):
            loops.append(loop)
            continue
        loops.append(Loop(loop.name, lower, upper, loop.kind))
        tests += [Binary(">=", loop.symbol, each, "bool") for each in above]
        tests += [Binary("<", loop.symbol, each, "bool") for each in below]
    if not tests:
        return node
    test = conjunction(tests)
    if isinstance(node, Fold):
        updates = tuple(
            selected(test, update, state) for update, state in zip(node.updates, node.states, strict=True)
        )
        return replace(node, loops=tuple(loops), updates=updates)
    neutral = neutral_for(node.op, node.kind, node.initial)
    if neutral is None:
        return node
    return replace(node, loops=tuple(loops), body=selected(test, node.body, neutral))


def _parted(bound: Expression, clamp: str, axes: Iterable[str]) -> tuple[Expression, tuple[Expression, ...]]:
    """Return a bound without its clamp, and what it is clamped to."""
    whole = [atom for atom in terms_of(bound) if len(atom) == 1 and clamp_sides(atom[0], clamp) is not None]
    if len(whole) != 1 or terms_of(bound)[whole[0]] != 1 or any(isinstance(n, Load) for n in walk(bound)):
        return bound, ()
    sides = clamp_sides(whole[0][0], clamp)
    if sides is None or is_unsigned(bound):
        return bound, ()
    rest = subtract(bound, whole[0][0])
    moving = [add(side, rest) for side in sides if side.depends_on(*axes)]
    fixed = [add(side, rest) for side in sides if not side.depends_on(*axes)]
    return (moving[0], tuple(fixed)) if len(moving) == 1 and not rest.depends_on(*axes) else (bound, ())


def clamp_sides(value: Expression, clamp: str) -> tuple[Expression, Expression] | None:
    """Return the integers of which `max` or `min` takes one, written as a call or as a selection."""
    if isinstance(value, Call) and value.function == clamp and len(value.arguments) == 2:
        first, second = value.arguments
        return (first, second) if is_integer(value.type) else None
    if not isinstance(value, Select) or not isinstance(value.condition, Binary):
        return None
    test = value.condition
    if test.op not in ("<", "<=", ">", ">=") or not is_integer(test.left.type) or not is_integer(value.type):
        return None
    takes_left = (value.first, value.second) == (test.left, test.right)
    if not takes_left and (value.first, value.second) != (test.right, test.left):
        return None
    found = "max" if takes_left == (test.op[0] == ">") else "min"
    return (test.left, test.right) if found == clamp else None
