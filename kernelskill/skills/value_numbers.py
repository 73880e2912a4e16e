"""Number the values of expressions: equal numbers are certainly equal values."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_pure
from kernelskill.skills.text_changes import clean_text
from kernelskill.source.scopes import Write, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses

_COMMUTATIVE = frozenset({"+", "*"})
_DEPTH = 24


@dataclass(frozen=True)
class ValueNumbers:
    """Numbers the values of one function.

    A variable has the number of the value that its one reaching definition gave it. What reads memory,
    or a variable that several definitions reach, equals only itself within one expression.
    """

    types: ExpressionTypes
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _written: dict[int, int] = field(default_factory=dict)

    def of(self, node: Node, within: Node, depth: int = 0) -> int:
        """Return the number of a value.

        Args:
            node: The expression.
            within: The whole expression that it is part of, which has no side effects.
            depth: How many definitions were followed already.
        """
        node = strip_parentheses(node)
        write = self._definition(node)
        if write is not None:
            return self.written(write, depth)
        key = self._key(node, within, depth)
        return self._numbers.setdefault(key, len(self._numbers))

    def written(self, write: Write, depth: int = 0) -> int:
        """Return the number of the value that a definition gives its variable."""
        place = write.node.start_byte
        if place not in self._written:
            self._written[place] = self._of_write(write, depth)
        return self._written[place]

    def _of_write(self, write: Write, depth: int) -> int:
        value = write.value if write.is_plain else None
        target = write.node.child_by_field_name("left") or write.node.child_by_field_name("declarator")
        kind = self.types.of(target) if target is not None and target.type == "identifier" else None
        if value is not None and kind is not None and self.types.of(value) == kind and depth < _DEPTH:
            return self.of(value, value, depth + 1)
        return self._numbers.setdefault(("write", write.node.start_byte), len(self._numbers))

    def _key(self, node: Node, within: Node, depth: int) -> Hashable:
        unit = self.types.unit
        here = ("here", within.start_byte, clean_text(unit, node))
        if node.type == "number_literal":
            return ("literal", unit.text_of(node))
        if node.type == "identifier":
            flow = flow_of(unit, self.types.function)
            declared = flow.resolve(node) if unit.macro(unit.text_of(node)) is None else None
            entry = declared is not None and flow.is_entry_value(node, declared)
            return ("entry", declared.name_span.start) if declared is not None and entry else here
        if node.type == "field_expression":
            inner = node.child_by_field_name("argument")
            local = inner is not None and inner.type == "identifier" and "->" not in clean_text(unit, node)
            name = node.child_by_field_name("field")
            if not local or name is None or inner is None:
                return here
            return ("field", self.of(inner, within, depth), unit.text_of(name))
        if node.type in ("binary_expression", "unary_expression", "cast_expression", "call_expression"):
            return self._operation(node, within, depth) if is_pure(unit, node) else here
        return here

    def _operation(self, node: Node, within: Node, depth: int) -> Hashable:
        unit = self.types.unit
        if node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            parts = named(listed) if listed is not None else []
            return (called_name(unit, node), *(self.of(part, within, depth) for part in parts))
        if node.type == "cast_expression":
            value = node.child_by_field_name("value")
            return ("cast", self.types.of(node), self.of(value, within, depth) if value is not None else None)
        sides = [node.child_by_field_name(name) for name in ("left", "right", "argument")]
        numbers = [self.of(side, within, depth) for side in sides if side is not None]
        operator = unit.operator(node)
        return (operator, *(sorted(numbers) if operator in _COMMUTATIVE else numbers))

    def _definition(self, node: Node) -> Write | None:
        """Return the one write after which a variable is read."""
        unit = self.types.unit
        if node.type != "identifier" or unit.macro(unit.text_of(node)) is not None:
            return None
        flow = flow_of(unit, self.types.function)
        declared = flow.resolve(node)
        return flow.last_write(node, declared) if declared is not None else None
