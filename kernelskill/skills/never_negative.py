"""Tell that a value is never minus infinity or negative zero, where roots and powers differ."""

from __future__ import annotations

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
_POSITIVE_FUNCTIONS = frozenset({"fabs", "fabsf", "exp", "expf", "__expf", "exp2f", "exp2"})
_LARGER = frozenset({"fmax", "fmaxf", "max"})
_FUSED = frozenset({"fma", "fmaf", "__fmaf_rn"})
_DEPTH = 8


def is_never_negative(types: ExpressionTypes, node: Node, context: SkillContext, depth: int = 0) -> bool:
    """Whether a value is never minus infinity or negative zero; definitions of variables are followed."""
    node, unit = strip_parentheses(node), types.unit
    if is_unsigned(types.of(node)):
        return True
    if (value := literal_value(unit, node)) is not None:
        return value > 0
    if node.type == "identifier":
        return depth < _DEPTH and types.of(node) in _FLOATS and _holds(types, node, context, depth)
    if node.type == "call_expression":
        return _is_never_negative_call(types, node, context, depth)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or left is None or right is None:
        return False
    operator = unit.operator(node)
    if operator == "*" and is_square(types, left, right):
        return True
    # A sum with one positive zero is no negative zero; minus infinity would need one in a term.
    sides = (left, right) if operator in ("+", "*", "/") else ()
    return bool(sides) and all(is_never_negative(types, side, context, depth) for side in sides)


def _holds(types: ExpressionTypes, name: Node, context: SkillContext, depth: int) -> bool:
    """Whether a local variable got such a value, or grew by one."""
    flow = flow_of(types.unit, types.function)
    declared = flow.resolve(name)
    write = flow.last_write(name, declared) if declared is not None else None
    if write is None or visible_local(types.function, types.unit.text_of(name), name) is None:
        return False
    sides = [write.value] if write.is_plain else []
    if write.operator in ("+=", "*=", "/=") and write.node.type == "assignment_expression":
        sides = [write.node.child_by_field_name(side) for side in ("left", "right")]
    given = [side for side in sides if side is not None]
    return bool(given) and all(is_never_negative(types, side, context, depth + 1) for side in given)


def _is_never_negative_call(types: ExpressionTypes, node: Node, context: SkillContext, depth: int) -> bool:
    name, listed = called_name(types.unit, node), node.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    if is_defined(types.unit, name, context):
        return False
    if name in _POSITIVE_FUNCTIONS:
        return True
    if name in _LARGER and len(arguments) == 2:
        # Of a positive and a negative zero either may be taken, so that one side alone must be above zero.
        above = any((literal_value(types.unit, argument) or 0) > 0 for argument in arguments)
        return above or all(is_never_negative(types, argument, context, depth) for argument in arguments)
    if name in _FUSED and len(arguments) == 3:
        square = is_square(types, arguments[0], arguments[1])
        return square and is_never_negative(types, arguments[2], context, depth)
    return False
