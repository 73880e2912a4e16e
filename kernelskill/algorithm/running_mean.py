"""Means that move with every value, with the squares round them: Welford's method."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Fold, Loop, Num, Poly, Reduce, Sym
from kernelskill.algorithm.interpreting.literals import literal
from kernelskill.algorithm.interpreting.values import InterpretError
from kernelskill.algorithm.lifting.arithmetic import convert, number
from kernelskill.algorithm.lowering.zeros import is_zero
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.sampling import NAN, NotExact, Point, Real, same

_ROUNDS = 40


@dataclass(frozen=True)
class RunningMean:
    """A state of the method as reductions."""

    value: Expression
    inside: Expression
    """The value where it is known that the loop ran."""
    names: tuple[tuple[Expression, str], ...]


@dataclass(frozen=True)
class _Roles:
    """Which state is what; positions in the fold."""

    mean: int
    step: Expression
    counts: tuple[int, ...]
    squares: int | None


def as_running_mean(fold: Fold, second: Loop) -> RunningMean | None:
    """Read a fold as a running mean, with its squares or a count; None where it is something else.

    Args:
        fold: The recurrence.
        second: Its loop under another name, for the squares.

    After n values x the mean must be what `(mean * (n - 1) + x) / n` is, and the squares must grow by
    `(x - mean before) * (x - mean after)`.
    """
    counts = tuple(p for p in range(len(fold.states)) if _is_count(fold, p))
    rest = [p for p in range(len(fold.states)) if p not in counts]
    if not rest or len(rest) > 2:
        return None
    for mean in rest:
        squares = next((p for p in rest if p != mean), None)
        for step in _candidates(fold, mean):
            roles = _Roles(mean, step, counts, squares)
            if _starts(fold, roles) and _proven(fold, roles):
                return _form(fold, roles, second)
    return None


def _form(fold: Fold, roles: _Roles, second: Loop) -> RunningMean | None:
    kind, loop = fold.type, fold.loops[0]
    runs = integers.compared("<", loop.lower, loop.upper)
    count = convert(integers.subtract(loop.upper, loop.lower), kind)
    names = [state.name for state in fold.states]
    if fold.index in roles.counts:
        start = fold.initials[fold.index]
        total = count if is_zero(start) else Binary("+", count, start, kind)
        return RunningMean(integers.selected(runs, total, start), total, ())
    summed = Reduce("+", (loop,), roles.step, number(0, kind), kind)
    mean = Binary("/", summed, count, kind)
    if fold.index == roles.mean:
        value = integers.selected(runs, mean, fold.initials[roles.mean])
        return RunningMean(value, mean, ((summed, f"{names[roles.mean]}_sum"),))
    distance = Binary("-", substitute(roles.step, {loop.name: second.symbol}), mean, kind)
    body = Binary("*", distance, distance, kind)
    squares = Reduce("+", (second,), body, fold.initials[fold.index], kind)
    return RunningMean(squares, squares, ((squares, names[fold.index]), (summed, f"{names[roles.mean]}_sum")))


def _is_count(fold: Fold, position: int) -> bool:
    """Whether a state counts the steps from a number on."""
    state, update = fold.states[position], fold.updates[position]
    return (
        _exact(fold.initials[position]) is not None
        and isinstance(update, Binary)
        and update.op == "+"
        and any(
            own == state and isinstance(one, Num) and _exact(one) == 1
            for own, one in ((update.left, update.right), (update.right, update.left))
        )
    )


def _exact(expression: Expression) -> Fraction | None:
    """Return the value of a small whole number."""
    try:
        value = float(literal(expression.text, "double")) if isinstance(expression, Num) else None
    except InterpretError:
        return None
    return Fraction(value) if value is not None and abs(value) <= 1 and value.is_integer() else None


def _candidates(fold: Fold, mean: int) -> Iterator[Expression]:
    """Yield what the mean may be taken of: the largest parts of its update that no state is in."""
    names = [state.name for state in fold.states]
    found: dict[Expression, None] = {}

    def visit(node: Expression) -> None:
        if node.depends_on(*names):
            for child in node.children:
                visit(child)
        elif not isinstance(node, Num | Poly) and node.type == fold.type:
            found[node] = None

    visit(fold.updates[mean])
    yield from found


def _starts(fold: Fold, roles: _Roles) -> bool:
    """Whether the mean starts with a number; the first value replaces it."""
    start = fold.initials[roles.mean]
    return _exact(start) is not None and fold.states[roles.mean].kind == fold.type


# -- proof


def _proven(fold: Fold, roles: _Roles) -> bool:
    seed = random.Random(10)
    carried = frozenset(state.name for state in fold.states)
    try:
        return all(_holds(fold, roles, Point(carried, seed), seed, number) for number in range(_ROUNDS))
    except (NotExact, OverflowError, ZeroDivisionError):
        return False


def _holds(fold: Fold, roles: _Roles, point: Point, seed: random.Random, number: int) -> bool:
    """Whether a step is one of the method at one point."""
    done, loop = Fraction(number % 7), fold.loops[0]
    given: dict[Expression, Real] = {Sym(loop.name): point.real(loop.lower) + done}
    for position in roles.counts:
        given[fold.states[position]] = done + (_exact(fold.initials[position]) or 0)
    mean, squares = Fraction(seed.randint(-9, 9)), Fraction(seed.randint(-9, 9))
    given[fold.states[roles.mean]] = mean
    if roles.squares is not None:
        given[fold.states[roles.squares]] = squares

    def after(position: int, step: Real) -> Real:
        return point.with_values({**given, roles.step: step}).real(fold.updates[position])

    step = Fraction(seed.randint(-9, 9))
    moved = after(roles.mean, step)
    if moved != (mean * done + step) / (done + 1) or not same(after(roles.mean, NAN), NAN):
        return False
    if roles.squares is None:
        return True
    grown = after(roles.squares, step)
    return grown == squares + (step - mean) * (step - moved) and same(after(roles.squares, NAN), NAN)
