"""Whether a value may be a product that the compiler would fuse with an addition, once it sees both.

A product that goes through memory is rounded. Kept in a register, it may become part of a fused
multiply-add, which rounds once less: a rewrite that claims to be exact must not let that happen.
"""

from __future__ import annotations

from kernelskill.skills.expression_types import PURE_FUNCTIONS, called_name, is_integer, plain_type
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.scopes import Write, flow_of
from kernelskill.source.syntax import Node, strip_parentheses
from kernelskill.source.unit import SourceUnit

_DEPTH = 8
_MEMORY = frozenset({"number_literal", "subscript_expression", "pointer_expression", "char_literal"})


def stores_product(unit: SourceUnit, kernel: KernelDef, change: Node, element_type: str) -> bool:
    """Whether what an assignment or update stores may be the rounded result of a multiplication."""
    if is_integer(plain_type(element_type)) or change.type == "update_expression":
        return False
    value = change.child_by_field_name("right")
    if change.type != "assignment_expression" or value is None:
        return True
    operator = unit.operator(change)
    if operator in ("+=", "-="):
        return False
    if operator == "/=":
        return strip_parentheses(value).type == "number_literal"
    return operator != "=" or may_be_product(unit, kernel, value)


def may_be_product(unit: SourceUnit, kernel: KernelDef, node: Node, depth: int = 0) -> bool:
    """Whether the last operation behind a value may be a multiplication; True where it can't be told."""
    node = strip_parentheses(node)
    if depth > _DEPTH:
        return True
    if node.type in _MEMORY:
        return False
    if node.type == "binary_expression":
        right = node.child_by_field_name("right")
        literal = right is not None and strip_parentheses(right).type == "number_literal"
        operator = unit.operator(node)
        return operator == "*" or (operator == "/" and literal)
    if node.type == "identifier":
        return _is_product_variable(unit, kernel, node, depth)
    if node.type == "call_expression":
        name = called_name(unit, node)
        return name not in PURE_FUNCTIONS or unit.function(name) is not None or unit.macro(name) is not None
    parts = {
        "conditional_expression": ("consequence", "alternative"),
        "unary_expression": ("argument",),
        "cast_expression": ("value",),
    }.get(node.type, ())
    inner = [node.child_by_field_name(part) for part in parts]
    return not inner or any(one is None or may_be_product(unit, kernel, one, depth + 1) for one in inner)


def _is_product_variable(unit: SourceUnit, kernel: KernelDef, node: Node, depth: int) -> bool:
    flow = flow_of(unit, kernel)
    declared = flow.resolve(node)
    if declared is None or declared.pointer_depth:
        return True
    if not isinstance(declared, ParameterDef) and not flow.writes_to(declared):
        return True
    return any(_writes_product(unit, kernel, write, depth) for write in flow.writes_to(declared))


def _writes_product(unit: SourceUnit, kernel: KernelDef, write: Write, depth: int) -> bool:
    if write.is_plain and write.value is not None:
        return may_be_product(unit, kernel, write.value, depth + 1)
    return write.operator not in ("+=", "-=", "++", "--")
