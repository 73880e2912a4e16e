"""How small the value of a float expression can be, whatever it is computed from and however it is rounded."""

from __future__ import annotations

import math

import numpy as np

from kernelskill.algorithm.expression import Binary, Call, Cast, Expression, Num, Poly, Reduce, Select
from kernelskill.algorithm.integers import value_of
from kernelskill.algorithm.types import is_float, is_integer, is_signed

SMALLEST_NORMAL = 2.0**-126
"""Of a float."""
_NONE = -math.inf
_NEVER_NEGATIVE = frozenset(
    f"{name}{suffix}"
    for name in ("fabs", "exp", "exp2", "exp10", "sqrt", "cosh", "abs")
    for suffix in ("", "f")
)


def is_never_subnormal(expression: Expression) -> bool:
    """Whether a float is proved to be a normal number of at least 2^-126, infinite or NaN."""
    return expression.type == "float" and lower_bound(expression) >= SMALLEST_NORMAL


def lower_bound(expression: Expression) -> float:
    """Return what a value never falls below unless it is NaN; minus infinity where that is not known.

    Rounding to nearest keeps order, and so it does not take a sum of parts that are not negative below any of them,
    whether products are rounded before they are added or not. Products and quotients may vanish.
    """
    match expression:
        case Num() | Poly():
            number = _number(expression)
            if number is not None:
                return number if is_integer(expression.type) else _rounded(number, expression.type)
        case Cast():
            return _rounded(lower_bound(expression.operand), expression.kind)
        case Binary():
            return _of_operation(expression)
        case Call():
            return _of_call(expression)
        case Select():
            return _of_choice(expression)
        case Reduce() if expression.op == "+" and is_float(expression.kind):
            first = lower_bound(expression.initial)
            return first if min(first, lower_bound(expression.body)) >= 0 else _NONE
    return 0.0 if is_integer(expression.type) and not is_signed(expression.type) else _NONE


def _of_operation(node: Binary) -> float:
    if not is_float(node.kind):
        return 0.0 if is_integer(node.kind) and not is_signed(node.kind) else _NONE
    left, right = lower_bound(node.left), lower_bound(node.right)
    if node.op == "+" and min(left, right) >= 0:
        return max(left, right)
    if node.op == "*" and (node.left == node.right or min(left, right) >= 0):
        return 0.0
    return 0.0 if node.op == "/" and min(left, right) >= 0 else _NONE


def _of_choice(node: Select) -> float:
    sides, condition = (node.first, node.second), node.condition
    if isinstance(condition, Binary) and sides in _larger_first(condition):
        numbers = [lower_bound(side) for side in sides if _number(side) is not None]
        if numbers:
            return max(numbers)
    return min(map(lower_bound, sides))


def _larger_first(condition: Binary) -> tuple[tuple[Expression, Expression], ...]:
    """Return what is compared, the side first that is larger where the comparison holds."""
    if condition.op in (">", ">="):
        return ((condition.left, condition.right),)
    return ((condition.right, condition.left),) if condition.op in ("<", "<=") else ()


def _of_call(node: Call) -> float:
    name = node.function.removeprefix("std::").removeprefix("::")
    sides = node.arguments
    if name in ("fmax", "fmaxf", "max") and len(sides) == 2 and is_float(node.kind):
        # Of NaN and a number it is the number: only what is never NaN is a bound by itself.
        numbers = [lower_bound(side) for side in sides if _number(side) is not None]
        return max(numbers) if numbers else min(map(lower_bound, sides))
    if name in ("fma", "fmaf", "__fmaf_rn") and len(sides) == 3:
        product = Binary("*", sides[0], sides[1], node.kind)
        return _of_operation(Binary("+", product, sides[2], node.kind))
    return 0.0 if name in _NEVER_NEGATIVE and is_float(node.kind) else _NONE


def _number(expression: Expression) -> float | None:
    """Return the value of a literal or an integer constant; None of anything else, NaN and names among it."""
    if isinstance(expression, Cast):
        return _number(expression.operand) if is_float(expression.kind) else None
    if not isinstance(expression, Num):
        return value_of(expression)
    try:
        number = float(expression.text.rstrip("fFlL").replace("'", ""))
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _rounded(bound: float, kind: str) -> float:
    """Return a bound of what is converted to a type, which may wrap, overflow or vanish there."""
    if is_integer(kind):
        return _NONE if is_signed(kind) else 0.0
    if kind == "double" or not math.isfinite(bound):
        return bound
    if kind == "float":
        return float(np.float32(bound))
    return 0.0 if bound >= 0 else _NONE
