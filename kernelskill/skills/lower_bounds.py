"""How small the value of a float expression of a kernel can be, however it is rounded; NaN apart.

The same rules as in `algorithm.lower_bounds`, on the syntax tree: for kernels that are not read as algorithms.
"""

from __future__ import annotations

import math

from kernelskill.algorithm.lower_bounds import SMALLEST_NORMAL
from kernelskill.skills.approximations import is_defined
from kernelskill.skills.expression_types import (
    ExpressionTypes,
    called_name,
    is_square,
    is_unsigned,
    visible_local,
)
from kernelskill.skills.literal_values import literal_value
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses

_FLOATS = ("float", "double")
_NONE = -math.inf
_NOT_NEGATIVE = frozenset(
    {"fabs", "fabsf", "exp", "expf", "exp2", "exp2f", "exp10", "exp10f", "sqrt", "sqrtf"}
)
_LARGER = frozenset({"fmax", "fmaxf", "max"})
_FUSED = frozenset({"fma", "fmaf", "__fmaf_rn"})
_DEPTH = 8


def is_never_subnormal(types: ExpressionTypes, node: Node, context: SkillContext) -> bool:
    """Whether a value is proved to be at least the smallest normal float, infinite or NaN."""
    return _bound(types, node, context, 0) >= SMALLEST_NORMAL


def _bound(types: ExpressionTypes, node: Node, context: SkillContext, depth: int) -> float:
    node, unit = strip_parentheses(node), types.unit
    number = _number(types, node)
    if number is not None:
        return number
    kind = types.of(node)
    if is_unsigned(kind):
        return 0.0
    if kind not in _FLOATS:
        return _NONE
    if node.type == "identifier":
        return _of_variable(types, node, context, depth) if depth < _DEPTH else _NONE
    if node.type == "call_expression":
        return _of_call(types, node, context, depth)
    if node.type == "conditional_expression":
        sides = [node.child_by_field_name(side) for side in ("consequence", "alternative")]
        return min(_NONE if side is None else _bound(types, side, context, depth) for side in sides)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or left is None or right is None:
        return _NONE
    return _of_operation(types, unit.operator(node), (left, right), context, depth)


def _number(types: ExpressionTypes, node: Node) -> float | None:
    """Return the value of a number, or of a macro with one definition that is one."""
    name = types.unit.text_of(node)
    if sum(macro.name == name for macro in types.unit.macros) > 1:
        return None
    return literal_value(types.unit, node)


def _of_operation(
    types: ExpressionTypes, operator: str, sides: tuple[Node, Node], context: SkillContext, depth: int
) -> float:
    if operator == "*" and is_square(types, *sides):
        return 0.0
    bounds = [_bound(types, side, context, depth) for side in sides]
    if min(bounds) < 0:
        return _NONE
    if operator == "+":
        return max(bounds)  # rounding keeps order: the sum is not below either
    return 0.0 if operator in ("*", "/") else _NONE


def _of_variable(types: ExpressionTypes, name: Node, context: SkillContext, depth: int) -> float:
    """Return the bound of what a local variable got last, or grew by."""
    flow = flow_of(types.unit, types.function)
    declared = flow.resolve(name)
    write = flow.last_write(name, declared) if declared is not None else None
    if write is None or visible_local(types.function, types.unit.text_of(name), name) is None:
        return _NONE
    if write.is_plain:
        return _NONE if write.value is None else _bound(types, write.value, context, depth + 1)
    if write.operator != "+=" or write.node.type != "assignment_expression":
        return _NONE
    left, right = (write.node.child_by_field_name(side) for side in ("left", "right"))
    if left is None or right is None:
        return _NONE
    return _of_operation(types, "+", (left, right), context, depth + 1)


def _of_call(types: ExpressionTypes, node: Node, context: SkillContext, depth: int) -> float:
    name, listed = called_name(types.unit, node), node.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    if is_defined(types.unit, name, context):
        return _NONE
    if name in _NOT_NEGATIVE:
        return 0.0
    if name in _LARGER and len(arguments) == 2:
        # Of NaN and a number it is the number: only what is never NaN is a bound by itself.
        numbers = [n for n in (_number(types, argument) for argument in arguments) if n is not None]
        return max(numbers) if numbers else min(_bound(types, a, context, depth) for a in arguments)
    if name in _FUSED and len(arguments) == 3 and is_square(types, arguments[0], arguments[1]):
        return max(0.0, bound) if (bound := _bound(types, arguments[2], context, depth)) >= 0 else _NONE
    return _NONE
