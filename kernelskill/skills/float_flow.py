"""Whether the value of an expression only ever meets float: what holds it may then be float as well."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.expression_types import (
    FLOAT_FUNCTIONS,
    GENERIC_FUNCTIONS,
    ExpressionTypes,
    called_name,
    is_integer,
    plain_type,
)
from kernelskill.source.literals import read_number
from kernelskill.source.syntax import Node, named

_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})


class FloatTypes(ExpressionTypes):
    """Types as they are once every double literal is a float."""

    def _literal(self, node: Node) -> str | None:
        kind = super()._literal(node)
        return "float" if kind == "double" else kind

    def _identifier(self, node: Node) -> str | None:
        kind = super()._identifier(node)
        macro = self.unit.macro(self.unit.text_of(node))
        return "float" if macro is not None and kind == "double" else kind


@dataclass(frozen=True)
class FloatFlow:
    """Decides for one value by climbing the expression that it stands in."""

    types: FloatTypes
    exact: bool
    """Whether float holds the value exactly, so that it may be compared."""

    def accepts(self, value: Node) -> bool:
        """Whether the value only ever meets float, and never becomes a decision."""
        node, parent = value, value.parent
        while parent is not None:
            step = self._step(node, parent)
            if step is None:
                return False
            if step == "end":
                return True
            node, parent = parent, parent.parent
        return False

    def _step(self, node: Node, parent: Node) -> str | None:
        """Return `open` to climb on, `end` to accept, None to decline."""
        kind = parent.type
        if kind == "argument_list":
            return self._argument(node, parent)
        if kind in ("parenthesized_expression", "unary_expression", "initializer_list"):
            return "open"
        if kind == "binary_expression":
            return self._binary(node, parent)
        if kind == "conditional_expression":
            return self._conditional(node, parent)
        if kind == "call_expression":
            return self._call(parent)
        if kind == "cast_expression":
            return "end" if self.types.of(parent) == "float" else None
        if kind == "assignment_expression":
            target = self.types.of(parent.child_by_field_name("left"))
            return "end" if target == "float" else None
        if kind == "init_declarator":
            name = parent.child_by_field_name("declarator")
            plain = name is not None and name.type == "identifier"
            return "end" if plain and name is not None and self.types.of(name) == "float" else None
        if kind == "return_statement":
            return "end" if plain_type(self.types.function.return_type) == "float" else None
        return None

    def _binary(self, node: Node, parent: Node) -> str | None:
        left, right = parent.child_by_field_name("left"), parent.child_by_field_name("right")
        other = self.types.of(right if left == node else left)
        operator = self.types.unit.operator(parent)
        if operator in _COMPARISONS:
            bare = read_number(self.types.unit.text_of(node).strip("()+- ")) is not None
            return "end" if bare and self.exact and other == "float" else None
        if operator not in _ARITHMETIC:
            return None
        return "open" if other == "float" or is_integer(other) else None

    def _conditional(self, node: Node, parent: Node) -> str | None:
        if parent.child_by_field_name("condition") == node:
            return None
        return "open" if self.types.of(parent) == "float" else None

    def _argument(self, node: Node, listed: Node) -> str | None:
        """Decide at a function of the user's by its parameter; climb through any other call."""
        call = listed.parent
        own = self.types.unit.function(called_name(self.types.unit, call)) if call is not None else None
        if own is None:
            return "open"
        position = named(listed).index(node)
        if position >= len(own.parameters):
            return None
        return "end" if plain_type(own.parameters[position].type_text) == "float" else None

    def _call(self, parent: Node) -> str | None:
        name = called_name(self.types.unit, parent)
        if name in FLOAT_FUNCTIONS:
            return "open"
        known = (
            name in GENERIC_FUNCTIONS
            or name in ("float", "static_cast<float>")
            or name in self.types.bindings
        )
        return "open" if known and self.types.of(parent) == "float" else None
