"""What a kernel computes for points whose windows lie inside of all bounds.

Taps that are guarded, clamped or wrapped at the border are plain accesses everywhere else. Tests of integers that move
with the points are assumed to come out as they do where memory is read; what must hold for that is returned as lower
bounds, each for the points and steps where it is hardest to meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Expression,
    Load,
    Select,
    Sym,
    Unary,
    walk,
)
from kernelskill.algorithm.integers import (
    Ranges,
    add,
    coefficient,
    constant,
    multiply,
    negated,
    subtract,
    terms_of,
    value_of,
    without,
)
from kernelskill.algorithm.model import Algorithm, IllegalMove, Store
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_integer

_MOST_TESTS = 16


@dataclass(frozen=True)
class Span:
    """The points of a thread along one axis: from a first one to one a fixed distance behind it."""

    first: Expression
    distance: int


@dataclass(frozen=True)
class Interior:
    """An algorithm for inner points, and the values that must not be negative for it."""

    algorithm: Algorithm
    tests: tuple[Expression, ...]


def interior_of(algorithm: Algorithm, spans: Mapping[str, Span]) -> Interior:
    """Return what is computed where windows lie inside.

    Args:
        algorithm: Any kernel.
        spans: Axis to the points of a thread along it.

    Raises:
        IllegalMove: No access is guarded, clamped or wrapped by bounds that move with the points.
    """
    found = _Assumptions(algorithm, spans)
    stores = sorted(algorithm.stores, key=lambda store: -_reads(store))
    for store in stores:
        for guard in store.guard:
            found.assume(guard, True)
    for store in stores:
        for expression in store.expressions:
            found.read(expression)
    changed = algorithm.mapped(found.simplified)
    if not found.facts:
        raise IllegalMove("no access is guarded, clamped or wrapped at a border")
    kept = []
    for store in changed.stores:
        left = tuple(each for each in store.guard if value_of(each) != 1)
        if not any(value_of(each) == 0 for each in left):
            kept.append(replace(store, guard=left))
    if not kept:
        raise IllegalMove("nothing is stored inside of the bounds")
    tests = _hardest(found.tests)
    if len(tests) > _MOST_TESTS:
        raise IllegalMove(f"whether a point lies inside takes {len(tests)} tests")
    return Interior(replace(changed, stores=tuple(kept)), tests)


def _reads(store: Store) -> int:
    return sum(isinstance(node, Load) for expression in store.expressions for node in walk(expression))


def _hardest(tests: Iterable[Expression]) -> tuple[Expression, ...]:
    """Leave out what follows from another test at a fixed distance, and what is known."""
    kept: list[Expression] = []
    for test in tests:
        known = value_of(test)
        if known is not None and known >= 0:
            continue
        distances = [value_of(subtract(test, other)) for other in kept]
        if any(distance is not None and distance >= 0 for distance in distances):
            continue
        kept = [k for k, d in zip(kept, distances, strict=True) if d is None or d >= 0]
        kept.append(test)
    return tuple(kept)


@dataclass
class _Assumptions:
    algorithm: Algorithm
    spans: Mapping[str, Span]
    facts: list[Expression] = field(default_factory=list)
    """Values that are not negative for inner points, over axes and loops."""
    tests: list[Expression] = field(default_factory=list)
    """The same at the first or last point and step, over `Span.first`."""
    _done: dict[Expression, Expression] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ranges: Ranges = self.algorithm.ranges
        for name, span in self.spans.items():
            if span.distance == 0:
                continue
            # Points beyond the end are no inner points.
            axis = self.algorithm.axis(name)
            last = add(span.first, constant(span.distance + 1))
            self.tests.append(subtract(axis.upper, last))

    def read(self, expression: Expression) -> None:
        """Assume what an expression's tests give where it reads memory, from the root down."""
        if isinstance(expression, Select):
            self._choose(expression)
            known = value_of(self._rebuilt(expression.condition))
            sides = (expression.first, expression.second)
            for child in sides if known is None else sides[known == 0 :][:1]:
                self.read(child)
            self.read(expression.condition)
            return
        if isinstance(expression, Binary) and expression.op == "%" and is_integer(expression.type):
            self._unwrapped(expression)
        for child in expression.children:
            self.read(child)

    def simplified(self, expression: Expression) -> Expression:
        """Return an expression as it is for inner points."""
        if expression not in self._done:
            self._done[expression] = self._rebuilt(expression)
        return self._done[expression]

    def _rebuilt(self, expression: Expression) -> Expression:
        return rebuild(expression, self._inner)

    def _choose(self, node: Select) -> None:
        """Assume the side that reads memory, or moves with the points where neither does."""
        weights = [sum(isinstance(n, Load) for n in walk(side)) for side in (node.first, node.second)]
        if weights[0] == weights[1]:
            weights = [int(self._moves(side)) for side in (node.first, node.second)]
        if weights[0] != weights[1]:
            self.assume(node.condition, weights[0] > weights[1])

    def _moves(self, expression: Expression) -> bool:
        return is_integer(expression.type) and expression.depends_on(*self.spans)

    def assume(self, condition: Expression, wanted: bool) -> None:
        """Assume the parts of a condition that are bounds of points."""
        if isinstance(condition, Unary) and condition.op == "!":
            self.assume(condition.operand, not wanted)
            return
        if not isinstance(condition, Binary):
            return
        if condition.op == ("&&" if wanted else "||"):
            self.assume(condition.left, wanted)
            self.assume(condition.right, wanted)
            return
        if not (is_integer(condition.left.type) and is_integer(condition.right.type)):
            return
        test = condition if wanted else negated(condition)
        if not isinstance(test, Binary) or self._truth(condition) is not None:
            return
        if self._holds_signs(condition.left, condition.right):
            self._hold(self._fact(test))

    def _holds_signs(self, *sides: Expression) -> bool:
        """Assume that what is compared as unsigned is not negative; False where that is not known."""
        if not any(is_unsigned(side) for side in sides):
            return True
        return all(_is_not_negative(side) or self._follows(side) or self._hold(side) for side in sides)

    def _fact(self, test: Binary) -> Expression | None:
        """Return what is not negative where a comparison holds; None where it bounds nothing."""
        difference = subtract(test.left, test.right)
        match test.op:
            case "<":
                return subtract(constant(-1), difference)
            case "<=":
                return subtract(constant(0), difference)
            case ">":
                return add(difference, constant(-1))
            case ">=":
                return difference
            case "!=":
                return self._apart(difference)
        return None

    def _apart(self, difference: Expression) -> Expression | None:
        """Return on which side of a value the inner points lie that are not equal to it."""
        names = [name for name in self.spans if difference.depends_on(name)]
        factor = coefficient(difference, names[0]) if len(names) == 1 else None
        sign = value_of(factor) if factor is not None else None
        if sign not in (1, -1):
            return None
        excluded = multiply(constant(-sign), without(difference, names[0]))
        axis, point = self.algorithm.axis(names[0]), Sym(names[0])
        above = value_of(subtract(excluded, axis.lower))
        below = value_of(subtract(axis.upper, excluded))
        if above is not None and above >= 0:
            return add(subtract(point, excluded), constant(-1))
        if below is not None and below >= 1:
            return add(subtract(excluded, point), constant(-1))
        return None

    def _hold(self, fact: Expression | None) -> bool:
        """Assume that a value is not negative; False where its least value is not known."""
        if fact is None or not fact.depends_on(*self.spans):
            return False
        if self._follows(fact):
            return True
        least = self._least(fact)
        if least is None or (value_of(least) is not None and (value_of(least) or 0) < 0):
            return False
        self.facts.append(fact)
        self.tests.append(least)
        return True

    def _follows(self, fact: Expression) -> bool:
        known = (value_of(subtract(fact, other)) for other in self.facts)
        return any(distance is not None and distance >= 0 for distance in known)

    def _least(self, value: Expression) -> Expression | None:
        """Return the least value over the points of a thread and all steps of loops, over `Span.first`."""
        for name in self._innermost_first(value):
            factor = coefficient(value, name)
            sign = value_of(factor) if factor is not None else None
            if factor is None or sign is None:
                return None
            value = without(value, name)
            if name in self.spans:
                span = self.spans[name]
                end = span.first if sign > 0 else add(span.first, constant(span.distance))
            else:
                low, high = self._ranges[name]
                end = _beyond(low, "max") if sign > 0 else add(_beyond(high, "min"), constant(-1))
            value = add(value, multiply(factor, end))
        reads = any(isinstance(node, Load | Select) for node in walk(value))
        left_over = set(self._ranges) - {s for span in self.spans.values() for s in span.first.symbols}
        return None if reads or value.depends_on(*left_over) else value

    def _innermost_first(self, value: Expression) -> Iterable[str]:
        """Yield the loops and axes of a value, loops before what their ranges depend on."""
        seen: set[str] = set()
        current = {name for name in self._ranges if value.depends_on(name)}
        while current - seen:
            open_names = sorted(current - seen)
            inner = [
                name
                for name in open_names
                if not any(
                    bound.depends_on(name)
                    for other in open_names
                    if other != name and other not in self.spans
                    for bound in self._ranges[other]
                )
            ]
            name = next(
                (each for each in inner if each not in self.spans), inner[0] if inner else open_names[0]
            )
            seen.add(name)
            yield name
            if name not in self.spans:
                for bound in self._ranges[name]:
                    current |= {each for each in self._ranges if bound.depends_on(each)}

    def _unwrapped(self, node: Binary) -> Expression | None:
        """Return a remainder as the dividend less a fixed number of divisors, under the assumption of its range."""
        dividend, divisor = node.left, node.right
        axes = [self.algorithm.axis(name) for name in self.spans if dividend.depends_on(name)]
        if len(axes) != 1 or len(terms_of(divisor)) != 1:
            return None
        # A remainder by anything but the length of the axis is no border.
        if value_of(subtract(divisor, subtract(axes[0].upper, axes[0].lower))) != 0:
            return None
        ((monomial, factor),) = terms_of(divisor).items()
        turns = (2 * terms_of(dividend).get(monomial, 0) + factor) // (2 * factor)
        if factor < 0 or turns < 0:
            return None
        result = subtract(dividend, multiply(constant(turns), divisor))
        above = add(subtract(divisor, result), constant(-1))
        before = list(self.facts), list(self.tests)
        # What is left lies between 0 and the divisor, so the dividend is not negative and nothing is rounded up.
        if self._hold(result) and self._hold(above):
            return result
        self.facts, self.tests = before
        return None

    def _truth(self, condition: Binary) -> bool | None:
        """Return what a comparison gives for inner points, where that is known."""
        if not (is_integer(condition.left.type) and is_integer(condition.right.type)):
            return None
        if condition.op in ("==", "!="):
            difference = subtract(condition.left, condition.right)
            sides = (difference, multiply(constant(-1), difference))
            apart = any(self._follows(add(side, constant(-1))) for side in sides)
            return (condition.op == "!=") if apart else None
        signs = (condition.left, condition.right) if is_unsigned(condition.left, condition.right) else ()
        if not all(_is_not_negative(side) or self._follows(side) for side in signs):
            return None
        for test, outcome in ((condition, True), (negated(condition), False)):
            fact = self._fact(test) if isinstance(test, Binary) else None
            if fact is not None and self._follows(fact):
                return outcome
        return None

    def _inner(self, node: Expression) -> Expression | None:
        if isinstance(node, Binary) and node.op in _NEGATABLE:
            truth = self._truth(node)
            return constant(int(truth), "bool") if truth is not None else None
        if isinstance(node, Binary) and node.op == "%" and is_integer(node.type):
            return self._unwrapped(node)
        if isinstance(node, Call) and node.function in ("min", "max") and is_integer(node.type):
            return self._unclamped(node)
        if isinstance(node, Select):
            known = len(self.facts)
            self._choose(node)
            return self._rebuilt(node) if len(self.facts) > known else None
        return None

    def _unclamped(self, node: Call) -> Expression | None:
        """Return the side of a clamp that moves with the points."""
        moving = [side for side in node.arguments if self._moves(side)]
        if len(node.arguments) != 2 or len(moving) != 1:
            return None
        fixed = next(side for side in node.arguments if side is not moving[0])
        sides = (moving[0], fixed) if node.function == "max" else (fixed, moving[0])
        return moving[0] if self._holds_signs(*node.arguments) and self._hold(subtract(*sides)) else None


_NEGATABLE = frozenset({"<", "<=", ">", ">=", "==", "!="})


def is_unsigned(*expressions: Expression) -> bool:
    """Whether a comparison of values may be one of unsigned numbers, for which -1 is large."""
    return any(n.type.startswith("unsigned") for e in expressions for n in walk(e) if is_integer(n.type))


def _is_not_negative(value: Expression) -> bool:
    """Whether a value is a sum of unsigned parameters and positive constants."""
    return all(
        factor > 0 and all(isinstance(atom, Sym) and atom.kind.startswith("unsigned") for atom in monomial)
        for monomial, factor in terms_of(value).items()
    )


def _beyond(bound: Expression, clamp: str) -> Expression:
    """Return a bound of a loop without a clamp that only narrows the loop."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Call) and node.function == clamp and len(node.arguments) == 2:
            first, second = node.arguments
            return second if value_of(first) is not None else first if value_of(second) is not None else None
        return None

    return rebuild(bound, change)
