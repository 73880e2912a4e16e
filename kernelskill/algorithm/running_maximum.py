"""Sums that are rescaled whenever a running maximum grows, as in an online softmax."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Expression,
    Fold,
    Loop,
    Num,
    Reduce,
    Select,
    Sym,
    walk,
)
from kernelskill.algorithm.interpreting.literals import literal
from kernelskill.algorithm.interpreting.values import InterpretError
from kernelskill.algorithm.lifting.arithmetic import zero_of
from kernelskill.algorithm.lifting.recurrences import Step, recognise
from kernelskill.algorithm.lowering.zeros import is_zero
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.sampling import EXPONENTIALS, NAN, NotExact, Point, Real, same
from kernelskill.algorithm.simplifying import simplified

_ROUNDS = 60
_INFINITE = -math.inf


@dataclass(frozen=True)
class Rescaled:
    """A rescaled sum as a maximum and a sum."""

    maximum: Reduce
    maximum_name: str
    total: Reduce


@dataclass(frozen=True)
class _Parts:
    """The recurrence taken apart, its condition aside."""

    maximum: Sym
    total: Sym
    step: Expression
    """What the maximum is taken over."""
    largest: Expression
    """The maximum after a step."""
    update: Expression
    """The sum after a step."""
    mask: Expression | None
    """Condition under which a step does anything."""
    first: tuple[Expression, Expression]
    """What maximum and sum start with."""


def as_rescaled(fold: Fold, second: Loop) -> Rescaled | None:
    """Read a fold as a sum of exponentials against a running maximum; None where it is something else.

    Args:
        fold: Two states, one of them the maximum of what the steps give, the other one wanted.
        second: The fold's loop under another name, for the sum.

    With m the maximum and s the sum, a step must be `s f(m, m') + r(m', x)` with a factor that leads r at
    one maximum to r at a larger one: then the sum is that of r at the final maximum.
    """
    parts = _parts(fold)
    if parts is None or not _proven(parts):
        return None
    kind, loop = parts.total.kind, fold.loops[0]
    body = _against(parts, parts.maximum)
    if body is None:
        return None
    moved = {loop.name: second.symbol}
    step, masked = parts.step, body
    if parts.mask is not None:
        step = integers.selected(parts.mask, step, Num("-INFINITY", kind))
        masked = integers.selected(parts.mask, body, zero_of(kind))
    op = _operation(fold, parts)
    if op is None or (parts.mask is not None and not isinstance(parts.first[0], Num)):
        return None
    maximum = Reduce(op, (loop,), step, parts.first[0], kind)
    start = _start(parts, maximum)
    if start is None:
        return None
    placed = substitute(substitute(masked, moved), {parts.maximum.name: maximum})
    return Rescaled(maximum, parts.maximum.name, Reduce("+", (second,), placed, start, kind))


def _parts(fold: Fold) -> _Parts | None:
    if len(fold.states) != 2:
        return None
    mask, updates = _mask(fold)
    total = fold.index
    other = 1 - total
    maximum = _maximum(updates[other], fold.states[other], fold.initials[other])
    if maximum is None or updates[other].depends_on(fold.states[total].name):
        return None
    first = (fold.initials[other], fold.initials[total])
    return _Parts(
        fold.states[other], fold.states[total], maximum.body, updates[other], updates[total], mask, first
    )


def _maximum(update: Expression, state: Sym, initial: Expression) -> Step | None:
    step = recognise(update, state, initial)
    return step if step is not None and step.op in ("fmax", "max") and not step.loops else None


def _operation(fold: Fold, parts: _Parts) -> str | None:
    found = _maximum(parts.largest, parts.maximum, parts.first[0])
    return found.op if found is not None else None


def _mask(fold: Fold) -> tuple[Expression | None, tuple[Expression, ...]]:
    """Return the condition without which no state changes, None for no such, and the updates under it."""
    names = [state.name for state in fold.states]
    found: dict[Expression, None] = {}
    inner: list[Expression] = []
    for state, update in zip(fold.states, fold.updates, strict=True):
        if not isinstance(update, Select) or state not in (update.first, update.second):
            return None, fold.updates
        keeps = update.first == state
        inner.append(update.second if keeps else update.first)
        found[integers.negated(update.condition) if keeps else update.condition] = None
    mask = next(iter(found))
    return (mask, tuple(inner)) if len(found) == 1 and not mask.depends_on(*names) else (None, fold.updates)


# -- proof


@dataclass(frozen=True)
class _Trial:
    """One point at which the recurrence is looked at."""

    parts: _Parts
    point: Point

    def largest(self, before: Real, step: Real) -> Real:
        """Return the maximum after a step."""
        return self._at(self.parts.largest, before, step, Fraction(0))

    def total(self, before: Real, step: Real, total: Real) -> Real:
        """Return the sum after a step."""
        return self._at(self.parts.update, before, step, total)

    def _at(self, update: Expression, before: Real, step: Real, total: Real) -> Real:
        parts = self.parts
        given = {parts.step: step, parts.maximum: before, parts.total: total}
        return self.point.with_values(given).real(update)


def _proven(parts: _Parts) -> bool:
    """Whether the recurrence is a rescaled sum wherever it is looked at."""
    if not any(isinstance(node, Call) and node.function in EXPONENTIALS for node in walk(parts.update)):
        return False
    seed = random.Random(20)
    carried = frozenset({parts.maximum.name, parts.total.name})
    try:
        return all(_holds(parts, Point(carried, seed), seed, number) for number in range(_ROUNDS))
    except (NotExact, OverflowError, ZeroDivisionError):
        return False


def _holds(parts: _Parts, point: Point, seed: random.Random, number: int) -> bool:
    before = Fraction(seed.randint(-6, 6))
    step = before + (number % 3 - 1) * seed.randint(1, 6)
    total = Fraction(seed.randint(-9, 9))
    trial = _Trial(parts, point)
    return _is_step(trial, before, step, total, seed) and _is_special(trial, before, total)


def _is_step(trial: _Trial, before: Real, step: Real, total: Real, seed: random.Random) -> bool:
    """Whether a step is linear in the sum, and what it adds follows a growing maximum."""
    after = trial.largest(before, step)
    if after != max(before, step):
        return False
    added = trial.total(before, step, Fraction(0))
    factor = trial.total(before, step, Fraction(1)) - added
    if trial.total(before, step, total) != total * factor + added:
        return False
    later = after + seed.randint(0, 5)
    growth = trial.total(after, later, Fraction(1)) - trial.total(after, later, Fraction(0))
    whole = trial.total(before, later, Fraction(1)) - trial.total(before, later, Fraction(0))
    return added * growth == trial.total(later, step, Fraction(0)) and factor * growth == whole


def _is_special(trial: _Trial, before: Real, total: Real) -> bool:
    """Whether NaN stays, and -infinity adds nothing, also where the sum starts with it."""
    if not same(trial.total(before, NAN, total), NAN) or trial.largest(before, NAN) != before:
        return False
    nothing = trial.total(before, _INFINITE, Fraction(0))
    if not same(nothing, NAN) and (nothing != 0 or trial.total(before, _INFINITE, total) != total):
        return False
    first = trial.total(_INFINITE, before, Fraction(0))
    if first != trial.total(before, before, Fraction(0)):
        return False
    empty = trial.total(_INFINITE, _INFINITE, Fraction(0))
    # Infinite steps: NaN, or one that is taken as any other maximum.
    most = trial.total(before, math.inf, total)
    return (same(empty, NAN) or empty == 0) and (
        same(most, NAN) or most == trial.total(before, math.inf, Fraction(0))
    )


# -- the sum against the final maximum


def _against(parts: _Parts, maximum: Sym) -> Expression | None:
    """Return what a step adds where no step is above the maximum; None where that has no plain form.

    Where the recurrence has a form of its own for a step that becomes the maximum, such as 1 for what
    would be exp(0), that is kept if an infinite step makes a difference.
    """
    zero = zero_of(parts.total.kind)
    whole = substitute(parts.update, {parts.total.name: zero})
    plain = simplified(whole, parts.step, maximum)
    as_largest = simplified(whole, parts.step, maximum, grows=True)
    either = integers.selected(Binary("==", parts.step, maximum, "bool"), as_largest, plain)
    seed = random.Random(30)
    candidates = [plain, either]
    try:
        for number in range(_ROUNDS):
            point = Point(frozenset({maximum.name, parts.total.name}), seed)
            candidates = [
                form for form in candidates if _is_same_step(parts, whole, form, point, seed, number)
            ]
    except (NotExact, OverflowError):
        return None
    return candidates[0] if candidates else None


def _is_same_step(
    parts: _Parts, whole: Expression, form: Expression, point: Point, seed: random.Random, number: int
) -> bool:
    """Whether a form at the final maximum adds what the recurrence does, for any kind of step."""
    top = Fraction(seed.randint(-6, 6))
    steps: tuple[Real, ...] = (top, top - seed.randint(1, 6), NAN, _INFINITE)
    given: dict[Expression, Real] = {parts.step: steps[number % 4], parts.maximum: top}
    if not same(point.with_values(given).real(whole), point.with_values(given).real(form)):
        return False
    grown = point.with_values({parts.step: math.inf, parts.maximum: top}).real(whole)
    return same(grown, NAN) or grown == point.with_values(
        {parts.step: math.inf, parts.maximum: math.inf}
    ).real(form)


def _start(parts: _Parts, maximum: Reduce) -> Expression | None:
    """Return what the sum starts with at the final maximum."""
    largest, total = parts.first
    if is_zero(total) and _is_below_infinity(largest):
        return total
    function = _plain_factor(parts)
    if function is None or isinstance(largest, Num):
        return None
    kind = parts.total.kind
    grown = Call(function, (Binary("-", largest, maximum, kind),), kind)
    is_one = isinstance(total, Num) and total.text.rstrip("fF") in ("1", "1.", "1.0")
    return grown if is_one else Binary("*", total, grown, kind)


def _is_below_infinity(largest: Expression) -> bool:
    try:
        return isinstance(largest, Num) and float(literal(largest.text, largest.kind)) < math.inf
    except InterpretError:
        return False


def _plain_factor(parts: _Parts) -> str | None:
    """Return the exponential function that rescales by the maximum's growth itself; None for another factor."""
    found = {n.function for n in walk(parts.update) if isinstance(n, Call) and n.function in EXPONENTIALS}
    if len(found) != 1:
        return None
    function, kind = found.pop(), parts.total.kind
    wanted = Call(function, (Binary("-", parts.maximum, parts.step, kind),), kind)
    seed = random.Random(40)
    carried = frozenset({parts.maximum.name, parts.total.name})
    for _ in range(_ROUNDS):
        trial = _Trial(parts, Point(carried, seed))
        before = Fraction(seed.randint(-6, 6))
        step = before + seed.randint(1, 6)
        factor = trial.total(before, step, Fraction(1)) - trial.total(before, step, Fraction(0))
        given = {parts.maximum: before, parts.step: step}
        if factor != trial.point.with_values(given).real(wanted):
            return None
    return function
