"""The values that an integer expression of a kernel can take, from constants, block shapes and loop bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelskill.skills.expression_types import ExpressionTypes, is_unsigned
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, span_of, strip_parentheses
from kernelskill.source.unit import SourceUnit

Range = tuple[int, int]
"""The lowest and the highest value, both included."""
_DEPTH = 16
_LARGEST = (1 << 31) - 1
_HANDLERS = {
    "identifier": "_name",
    "field_expression": "_field",
    "binary_expression": "_binary",
    "unary_expression": "_unary",
    "cast_expression": "_cast",
    "conditional_expression": "_choice",
}


@dataclass(frozen=True)
class ValueRanges:
    """Answers for one kernel or function; None is an honest "can't tell"."""

    unit: SourceUnit
    kernel: FunctionDef
    block: tuple[int | None, int | None, int | None] = (None, None, None)
    """The largest block of any launch."""
    bindings: Mapping[str, str] = field(default_factory=dict)
    """What template parameters stand for."""

    def constant(self, node: Node) -> int | None:
        """Return the value of an expression that has only one."""
        found = self.of(node)
        return found[0] if found is not None and found[0] == found[1] else None

    def _literal(self, node: Node) -> int | None:
        inner = strip_parentheses(node)
        bound = self.bindings.get(self.unit.text_of(inner), "") if inner.type == "identifier" else ""
        if bound.isdigit() and flow_of(self.unit, self.kernel).resolve(inner) is None:
            return int(bound)
        return self.unit.constants.value(node, local_constants(self.kernel, self.unit.syntax))

    def of(self, node: Node, depth: int = 0) -> Range | None:
        """Return the range of an expression; one that leaves 31 bits anywhere has none."""
        value = self._literal(node)
        if value is not None:
            return (value, value)
        node = strip_parentheses(node)
        handler = _HANDLERS.get(node.type)
        if handler is None or depth > _DEPTH:
            return None
        found: Range | None = getattr(self, handler)(node, depth + 1)
        if found is None or found[0] < -_LARGEST or found[1] > _LARGEST:
            return None
        return found

    def _field(self, node: Node, _depth: int) -> Range | None:
        base, _, axis = "".join(self.unit.text_of(node).split()).partition(".")
        size = self.block["xyz".index(axis)] if axis in ("x", "y", "z") else None
        if size is None or flow_of(self.unit, self.kernel).resolve(node.children[0]) is not None:
            return None
        return {"threadIdx": (0, size - 1), "blockDim": (1, size)}.get(base)

    def _name(self, node: Node, depth: int) -> Range | None:
        flow = flow_of(self.unit, self.kernel)
        declared = flow.resolve(node)
        if declared is None or declared.pointer_depth or isinstance(declared, ParameterDef):
            return None
        write = flow.reaching(node, declared)
        if write is not None and write.value is not None:
            found = self.of(write.value, depth)
            narrow = found is not None and (found[0] < 0 or found[1] > 127)
            return None if narrow and declared.base_type in _NARROW else found
        loop = self._loop_of(declared, node)
        return self._loop_range(loop, depth) if loop is not None else None

    def _loop_of(self, declared: Declared, node: Node) -> Loop | None:
        for loop in reversed(find_loops(self.unit, self.kernel)):
            if loop.declared is declared and loop.body_span.contains(span_of(node)):
                stepped = loop.step_statement is not None and not loop.body_span.contains(
                    span_of(loop.step_statement)
                )
                return loop if loop.is_counted and loop.kind is LoopKind.FOR and stepped else None
        return None

    def _loop_range(self, loop: Loop, depth: int) -> Range | None:
        start = self.of(loop.start, depth) if loop.start is not None else None
        bound = self.of(loop.bound, depth) if loop.bound is not None else None
        amount = (1, 1) if loop.step is None else self.of(loop.step, depth)
        if start is None or bound is None or amount is None:
            return None
        inclusive = "=" in loop.comparison and loop.comparison != "!="
        rising = loop.step_operator == "+" and amount[0] > 0
        rising = rising or (loop.step_operator in ("*", "<<") and start[0] > 0 and amount[0] > 0)
        falling = loop.step_operator == "-" and amount[0] > 0
        falling = falling or (loop.step_operator in ("/", ">>") and start[0] >= 0 and amount[0] > 0)
        if rising and loop.comparison in ("<", "<="):
            return (start[0], max(start[0], bound[1] - (not inclusive)))
        if falling and loop.comparison in (">", ">="):
            return (min(start[1], bound[0] + (not inclusive)), start[1])
        return None

    def _binary(self, node: Node, depth: int) -> Range | None:
        left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left_node is None or right_node is None:
            return None
        left, right = self.of(left_node, depth), self.of(right_node, depth)
        operator = self.unit.operator(node)
        if right is not None and right[0] == right[1] and operator in ("%", "&"):
            return self._reduced(operator, left_node, left, right[0])
        if left is None or right is None:
            return None
        if operator == "-" and left[0] < right[1] and self._is_unsigned(node):
            return None  # it may wrap around
        if operator in ("+", "-"):
            return _sum(left, right if operator == "+" else (-right[1], -right[0]))
        ends = [a * b for a in left for b in right]
        if operator == "*":
            return (min(ends), max(ends))
        exact = right[0] == right[1] and right[0] > 0 and left[0] >= 0
        if operator == "/" and exact:
            return (left[0] // right[0], left[1] // right[0])
        if operator in ("<<", ">>") and right[0] == right[1] and 0 <= right[0] < 31 and left[0] >= 0:
            shift = right[0]
            return (left[0] << shift, left[1] << shift) if operator == "<<" else _shifted(left, shift)
        return None

    def _reduced(self, operator: str, left_node: Node, left: Range | None, right: int) -> Range | None:
        """Return the range of a remainder or of a mask."""
        if operator == "&":
            return (0, right) if right >= 0 else None
        if right <= 0:
            return None
        if left is not None and left[0] >= 0:
            return (0, min(left[1], right - 1))
        return (0, right - 1) if self._is_unsigned(left_node) else (1 - right, right - 1)

    def _is_unsigned(self, node: Node) -> bool:
        kind = ExpressionTypes(self.unit, self.kernel).of(node)
        return kind is None or is_unsigned(kind)

    def _unary(self, node: Node, depth: int) -> Range | None:
        argument = node.child_by_field_name("argument")
        found = self.of(argument, depth) if argument is not None else None
        if found is None or self.unit.operator(node) not in ("-", "+"):
            return None
        if self.unit.operator(node) == "+":
            return found
        return None if self._is_unsigned(node) else (-found[1], -found[0])

    def _cast(self, node: Node, depth: int) -> Range | None:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        found = self.of(value, depth) if value is not None else None
        text = " ".join(self.unit.text_of(kind).split()) if kind is not None else ""
        return found if found is not None and found[0] >= 0 and text in _WHOLE else None

    def _choice(self, node: Node, depth: int) -> Range | None:
        sides = [node.child_by_field_name(name) for name in ("consequence", "alternative")]
        found = [self.of(side, depth) if side is not None else None for side in sides]
        first, second = found
        if first is None or second is None:
            return None
        return (min(first[0], second[0]), max(first[1], second[1]))


_WHOLE = frozenset(
    {"int", "unsigned", "unsigned int", "long", "long long", "size_t", "int64_t", "uint32_t", "int32_t"}
    | {"unsigned long", "unsigned long long", "uint64_t", "ptrdiff_t"}
)
_NARROW = frozenset({"char", "signed char", "unsigned char", "short", "unsigned short", "uint8_t", "int8_t"})


def _sum(left: Range, right: Range) -> Range:
    return (left[0] + right[0], left[1] + right[1])


def _shifted(value: Range, shift: int) -> Range:
    return (value[0] >> shift, value[1] >> shift)


def largest_block(entries: Sequence[KernelLaunch]) -> tuple[int | None, int | None, int | None]:
    """Return the largest block along each axis; None where a launch's is not constant."""
    found = []
    for axis in range(3):
        sizes = [entry.launch.block.values[axis] for entry in entries]
        known = [size for size in sizes if size is not None]
        found.append(max(known) if known and len(known) == len(sizes) else None)
    return (found[0], found[1], found[2])
