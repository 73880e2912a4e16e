"""Tell which calls do nothing but compute a value."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.source.expansion import parse_expression
from kernelskill.source.intrinsics import PURE_FUNCTIONS
from kernelskill.source.syntax import named, walk
from kernelskill.source.unit import SourceUnit

_CASTS = ("static_cast", "reinterpret_cast", "const_cast")
_DEPTH = 8


def called_name(unit: SourceUnit, call: Node) -> str:
    """Return the name that a call names, without template arguments and namespaces."""
    function = call.child_by_field_name("function")
    text = unit.text_of(function).split("<")[0] if function is not None else ""
    return text.removeprefix("std::").removeprefix("::")


def is_pure_call(unit: SourceUnit, call: Node, depth: int = 0) -> bool:
    """Whether a call certainly only computes a value from its arguments and memory."""
    name = called_name(unit, call)
    if name in PURE_FUNCTIONS or name in _CASTS:
        return True
    macro = unit.macro(name)
    if macro is not None:
        return macro.is_function_like and _is_plain_macro(unit, macro.value)
    target = unit.function(name)
    if target is None or target.body is None or depth > _DEPTH or target.is_opaque:
        return False
    return _is_pure_body(unit, target.body, {p.name for p in target.parameters}, depth)


def _is_pure_body(unit: SourceUnit, body: Node, parameters: set[str], depth: int) -> bool:
    for node in walk(body):
        if node.type in ("gnu_asm_expression", "lambda_expression", "goto_statement"):
            return False
        if node.type == "call_expression" and not is_pure_call(unit, node, depth + 1):
            return False
        target: Node | None = None
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression":
            target = node.child_by_field_name("argument")
        if target is not None and not _is_own_scalar(unit, body, target):
            return False
    return True


def _is_own_scalar(unit: SourceUnit, body: Node, target: Node) -> bool:
    """Whether an assignment goes to a variable that the body declares itself."""
    if target.type != "identifier":
        return False
    name = unit.text_of(target)
    for node in walk(body):
        if node.type == "declaration":
            for declared in node.children_by_field_name("declarator"):
                inner = declared.child_by_field_name("declarator") or declared
                if inner.type == "identifier" and unit.text_of(inner) == name:
                    return True
    return False


def _is_plain_macro(unit: SourceUnit, value: str) -> bool:
    parsed = parse_expression(f"({value})")
    if parsed is None:
        return False
    syntax, node = parsed
    for entry in walk(node):
        if entry.type in ("assignment_expression", "update_expression"):
            return False
        if entry.type == "call_expression":
            function = entry.child_by_field_name("function")
            name = syntax.text_of(function).split("<")[0] if function is not None else ""
            if name not in PURE_FUNCTIONS and name not in _CASTS:
                return False
    return bool(named(node)) or node.child_count == 0
