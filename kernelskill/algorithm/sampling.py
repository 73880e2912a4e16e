"""Expressions as functions of real numbers, exactly, at points drawn at random.

Two expressions that agree at many such points are taken for the same function: how one recurrence may be
spelled is not listed anywhere. Whatever is not arithmetic, and whatever a recurrence does not carry, is
an unknown number of its own: what holds for every number holds for the one meant.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction

from kernelskill.algorithm.expression import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Expression,
    Num,
    Poly,
    Select,
    Unary,
)
from kernelskill.algorithm.interpreting.literals import literal
from kernelskill.algorithm.interpreting.values import InterpretError
from kernelskill.algorithm.types import is_float, is_integer

Real = Fraction | float
"""An exact number; of floats only the infinities and NaN."""
EXPONENTIALS = {
    "expf": 3,
    "exp": 3,
    "__expf": 3,
    "exp2f": 2,
    "exp2": 2,
    "exp10f": 10,
    "exp10": 10,
    "__exp10f": 10,
}
"""Exponential functions -> the number that stands for the base: E(a) E(b) = E(a + b) is all that is used."""
NAN = math.nan
_EXACT = 4
"""Largest whole number that a literal keeps; other literals are unknowns."""
_MOST = 9
"""Unknowns are drawn from -9 .. 9, without 0."""
_ARITHMETIC = frozenset({"+", "-", "*", "/"})


class NotExact(Exception):
    """An expression has no exact value at a point."""


class Point:
    """Values of symbols and expressions; those that are not given are drawn when they are met."""

    def __init__(
        self, carried: frozenset[str], seed: random.Random, given: Mapping[Expression, Real] | None = None
    ) -> None:
        self._given = dict(given or {})
        self._unknowns: dict[Expression, Real | bool] = {}
        self._carried = carried
        self._seed = seed

    def with_values(self, given: Mapping[Expression, Real]) -> Point:
        """Return the point with other values of some; unknowns are the same."""
        moved = Point(self._carried, self._seed, {**self._given, **given})
        moved._unknowns = self._unknowns
        return moved

    def real(self, node: Expression) -> Real:
        """Return the value of a number.

        Raises:
            NotExact: It has none.
        """
        value = self._value(node)
        if isinstance(value, bool):
            raise NotExact(str(node.type))
        return value

    def _test(self, node: Expression) -> bool:
        value = self._value(node)
        return value if isinstance(value, bool) else value != 0

    def _value(self, node: Expression) -> Real | bool:
        if node in self._given:
            return self._given[node]
        if isinstance(node, Num):
            return self._literal(node)
        if isinstance(node, Poly):
            return self._polynomial(node)
        if _is_arithmetic(node) or node.depends_on(*self._carried):
            return self._computed(node)
        return self._drawn(node)

    def _drawn(self, node: Expression) -> Real | bool:
        """Return the value of an unknown."""
        if node not in self._unknowns:
            size, flag = Fraction(self._seed.randint(1, _MOST)), self._seed.random() < 0.5
            self._unknowns[node] = flag if node.type == "bool" else size if flag else -size
        return self._unknowns[node]

    def _literal(self, node: Num) -> Real | bool:
        try:
            value = float(literal(node.text, "double"))
        except InterpretError:
            return self._drawn(node)
        if math.isnan(value) or math.isinf(value):
            return value
        if value.is_integer() and abs(value) <= _EXACT:
            return Fraction(value)
        size = abs(Fraction(self._drawn(node)))
        return size if value > 0 else -size

    def _polynomial(self, node: Poly) -> Real:
        total: Real = Fraction(0)
        for monomial, factor in node.terms:
            term: Real = Fraction(factor)
            for atom in monomial:
                term = term * self.real(atom)
            total = total + term
        return total

    def _computed(self, node: Expression) -> Real | bool:
        match node:
            case Binary() if node.op in COMPARISONS:
                return _compared(node.op, self.real(node.left), self.real(node.right))
            case Binary() if node.op in LOGICAL:
                first = self._test(node.left)
                return self._test(node.right) if first == (node.op == "&&") else first
            case Binary() if node.op in _ARITHMETIC and is_float(node.kind):
                return _arithmetic(node.op, self.real(node.left), self.real(node.right))
            case Unary(op="-") if is_float(node.kind):
                return -self.real(node.operand)
            case Unary(op="!"):
                return not self._test(node.operand)
            case Select():
                return self._value(node.first if self._test(node.condition) else node.second)
            case Cast() if is_integer(node.operand.type) and is_float(node.kind):
                return self.real(node.operand)
            case Call():
                return self._call(node)
        raise NotExact(type(node).__name__)

    def _call(self, node: Call) -> Real:
        values = [self.real(argument) for argument in node.arguments]
        name = node.function
        if name in EXPONENTIALS and len(values) == 1:
            return _power(EXPONENTIALS[name], values[0])
        if name in ("fmaxf", "fmax", "fminf", "fmin") and len(values) == 2:
            return _extremum(max if name.startswith("fmax") else min, values[0], values[1])
        if name in ("fmaf", "fma", "__fmaf_rn", "__fma_rn"):
            return _arithmetic("+", _arithmetic("*", values[0], values[1]), values[2])
        if name in ("fdividef", "__fdividef", "__fdiv_rn"):
            return _arithmetic("/", values[0], values[1])
        raise NotExact(name)


def _is_arithmetic(node: Expression) -> bool:
    """Whether a value is computed from its operands even where all of them are unknowns."""
    if isinstance(node, Cast):
        return is_integer(node.operand.type) and is_float(node.kind)
    if isinstance(node, Unary):
        return node.op == "-" and is_float(node.kind)
    return isinstance(node, Binary) and node.op in _ARITHMETIC and is_float(node.kind)


def _compared(op: str, left: Real, right: Real) -> bool:
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
    }[op]


def _arithmetic(op: str, left: Real, right: Real) -> Real:
    if op == "/":
        if right == 0:
            raise NotExact("division by zero")
        result = left / right
    else:
        result = {"+": left + right, "-": left - right, "*": left * right}[op]
    return Fraction(result) if isinstance(result, float) and math.isfinite(result) else result


def _extremum(choose: Callable[[Real, Real], Real], left: Real, right: Real) -> Real:
    if left != left:
        return right
    return left if right != right else choose(left, right)


def _power(base: int, exponent: Real) -> Real:
    if isinstance(exponent, float):
        return exponent if exponent != exponent or exponent > 0 else Fraction(0)
    if exponent.denominator != 1 or abs(exponent) > 10_000:
        raise NotExact("an exponent is no small whole number")
    return Fraction(base) ** int(exponent)


def same(first: Real, second: Real) -> bool:
    """Whether two values are equal, or both NaN."""
    return first == second or (first != first and second != second)
