"""Tell whether two expressions are the same computation: by the variables that their names mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.source.definitions import FunctionDef
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, strip_parentheses
from kernelskill.source.unit import SourceUnit

_COMMUTATIVE = frozenset({"+", "*"})
_DEPTH = 16


@dataclass(frozen=True)
class Canonical:
    """Writes expressions of one function in a form that compares equal for equal computations.

    Parentheses, comments and white space don't count, nor does the order of the operands of one sum or
    product of two: that changes no bit.
    """

    unit: SourceUnit
    function: FunctionDef
    placeholders: Mapping[int, str] = field(default_factory=dict)
    """By the id of a declaration: what stands for it, such as one sign for the counters of two loops."""
    inlined: Mapping[int, Node] = field(default_factory=dict)
    """By the id of a declaration: the value to read instead of its name."""

    def of(self, node: Node, depth: int = 0) -> str:
        """Return the form of an expression."""
        node = strip_parentheses(node)
        if node.type == "identifier":
            return self._name(node, depth)
        if not node.children:
            return self.unit.text_of(node)
        if node.type == "binary_expression":
            return self._binary(node, depth)
        if node.type == "call_expression":
            return self._call(node, depth)
        parts = [self.of(child, depth) for child in node.children if child.type != "comment"]
        return f"({node.type} {' '.join(parts)})"

    def _name(self, node: Node, depth: int) -> str:
        declared = flow_of(self.unit, self.function).resolve(node)
        if declared is None:
            return self.unit.text_of(node)
        if id(declared) in self.placeholders:
            return self.placeholders[id(declared)]
        if id(declared) in self.inlined and depth < _DEPTH:
            return self.of(self.inlined[id(declared)], depth + 1)
        return f"{declared.name}@{declared.name_span.start}"

    def _binary(self, node: Node, depth: int) -> str:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        if left is None or right is None:
            return self.unit.text_of(node)
        sides = [self.of(left, depth), self.of(right, depth)]
        if operator in _COMMUTATIVE:
            sides.sort()
        return f"({operator} {' '.join(sides)})"

    def _call(self, node: Node, depth: int) -> str:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or listed is None:
            return self.unit.text_of(node)
        name = self.unit.text_of(function).removeprefix("::").removeprefix("std::")
        arguments = [self.of(child, depth) for child in listed.named_children if child.type != "comment"]
        return f"{name}({', '.join(arguments)})"
