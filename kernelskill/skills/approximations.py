"""The calls and divisions of a kernel that have a hardware approximation, by kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.device_code import editable_functions, units_of
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.literals import read_number
from kernelskill.source.syntax import Node, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

EXPONENTIALS = {
    "expf": "__expf",
    "exp10f": "__exp10f",
    "logf": "__logf",
    "log2f": "__log2f",
    "log10f": "__log10f",
    "powf": "__powf",
}
TRIGONOMETRY = {"sinf": "__sinf", "cosf": "__cosf", "tanf": "__tanf"}
KINDS = {
    "exponentials": "exponentials, logarithms and powers",
    "tanh": "hyperbolic tangents",
    "division": "divisions",
    "trigonometry": "sines, cosines and tangents",
}
"""Kinds of change with their names for people."""


@dataclass(frozen=True)
class Approximated:
    """One call or division that can be replaced."""

    kind: str
    node: Node
    name: str
    """What is called instead; empty for a division."""
    function: FunctionDef


def find_approximated(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Approximated]:
    """Return what can be replaced in a kernel and the device functions of its file that it reaches."""
    found: list[Approximated] = []
    for function in editable_functions(unit, kernel, context):
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        types = ExpressionTypes(unit, function, bindings)
        for node in walk(function.body) if function.body is not None else ():
            if not unit.is_locked(node):
                found.extend(_read(types, node, context))
    return found


def _read(types: ExpressionTypes, node: Node, context: SkillContext) -> Iterator[Approximated]:
    if node.type == "call_expression":
        yield from _call(types, node, context)
    elif node.type == "binary_expression" and types.unit.operator(node) == "/":
        if types.of(node) == "float" and not _is_folded(types.unit, node):
            yield Approximated("division", node, "", types.function)
    elif node.type == "assignment_expression" and types.unit.operator(node) == "/=":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        kinds = types.of(left), types.of(right)
        float_only = kinds[0] == "float" and (kinds[1] == "float" or is_integer(kinds[1]))
        if left is not None and float_only and is_pure(types.unit, left):
            yield Approximated("division", node, "", types.function)


def _call(types: ExpressionTypes, node: Node, context: SkillContext) -> Iterator[Approximated]:
    name = called_name(types.unit, node)
    single = name if name.endswith("f") and name != "erf" else f"{name}f"
    listed = node.child_by_field_name("arguments")
    if listed is None or is_defined(types.unit, name, context) or types.of(node) != "float":
        return
    if name != single and any(types.of(argument) != "float" for argument in named(listed)):
        return
    if single in EXPONENTIALS:
        yield Approximated("exponentials", node, EXPONENTIALS[single], types.function)
    elif single in TRIGONOMETRY:
        yield Approximated("trigonometry", node, TRIGONOMETRY[single], types.function)
    elif single == "tanhf":
        yield Approximated("tanh", node, "", types.function)


def is_defined(unit: SourceUnit, name: str, context: SkillContext) -> bool:
    """Whether the candidate itself defines a function or macro of that name."""
    return any(
        other.function(name) is not None or other.macro(name) is not None for other in units_of(unit, context)
    )


def _is_folded(unit: SourceUnit, node: Node) -> bool:
    """Whether both sides are literals: the compiler divides."""
    sides = [node.child_by_field_name("left"), node.child_by_field_name("right")]
    return all(
        side is not None and read_number(unit.text_of(strip_parentheses(side)).lstrip("-")) is not None
        for side in sides
    )
