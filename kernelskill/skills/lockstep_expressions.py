"""Evaluate expressions of a kernel for all threads of a block at once, around one shared array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.expression_types import (
    PURE_FUNCTIONS,
    ExpressionTypes,
    called_name,
    common_type,
    plain_type,
)
from kernelskill.skills.lockstep_memory import Elements, Read
from kernelskill.skills.lockstep_values import Mask, Numbers, Value
from kernelskill.skills.row_accumulators import Way, plain_text
from kernelskill.source.declarations import ParameterDef, Storage, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses
from kernelskill.source.unit import SourceUnit

_SIGNS = frozenset("+*&|^")
_GROUPS = 16
"""Most groups of elements that are told apart."""
_LARGEST, _LEAST = frozenset({"max", "fmaxf", "fmax"}), frozenset({"min", "fminf", "fmin"})
_LIMITS = {
    "INT_MIN": -(1 << 31),
    "INT_MAX": (1 << 31) - 1,
    "UINT_MAX": (1 << 32) - 1,
    "LLONG_MIN": -(1 << 63),
    "LLONG_MAX": (1 << 63) - 1,
}


class Unclear(Exception):
    """A piece of code does something that can't be followed; the text names it."""


@dataclass(eq=False)
class Block(Elements):
    """The state of a block: its variables, the elements of one shared array, and who touched them."""

    unit: SourceUnit = field(repr=False)
    kernel: KernelDef = field(repr=False)
    size: int
    array: VariableDef
    extents: tuple[int, ...]
    kind: str
    """Plain type of the array's elements."""
    bindings: Mapping[str, str]
    scalars: dict[int, Value] = field(default_factory=dict)
    names: dict[int, Declared] = field(default_factory=dict)
    way: Way | None = None
    is_strict: bool = False
    """Whether what can't be followed is an error; else it is only not known."""
    symbols: int = 0
    variables: dict[int, int] = field(default_factory=dict)
    """First element of the group that a variable's values make, by declaration."""
    reads: list[Read] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.types = ExpressionTypes(self.unit, self.kernel, self.bindings)
        self.flow = flow_of(self.unit, self.kernel)
        self.locals = local_constants(self.kernel, self.unit.syntax)
        self.begin(self.size, int(np.prod(self.extents)))

    def new_group(self, size: int) -> int:
        """Return the number of the first of some new elements."""
        first = self.symbols
        self.symbols += size
        return first

    def no_value(self) -> Value:
        return values.unknown(self.size)

    def number(self, number: int) -> Value:
        """Return one number for all threads; unknown where it is too large to count with."""
        return values.constant(self.size, number) if abs(number) < 1 << 63 else self.no_value()

    def unclear(self, node: Node, what: str) -> Value:
        """Return what is known where nothing can be told.

        Raises:
            Unclear: Everything has to be followed here.
        """
        if self.is_strict:
            raise Unclear(f"line {self.unit.line_of(node)}: {what}")
        return self.no_value()

    # Expressions

    def value(self, node: Node, mask: Mask) -> Value:
        """Return an expression's values for the threads of a mask."""
        node = strip_parentheses(node)
        number = self.unit.constants.value(node, self.locals)
        if number is not None:
            return self.number(number)
        handler = _EXPRESSIONS.get(node.type)
        if handler is None:
            return self.unclear(node, f"{self.unit.text_of(node)!r} can't be followed")
        return handler(self, node, mask)

    def _identifier(self, node: Node, mask: Mask) -> Value:
        name, declared = self.unit.text_of(node), self.flow.resolve(node)
        if declared is None:
            bound = self.bindings.get(name, "")
            if bound.isdigit():
                return values.constant(self.size, int(bound))
            if name in _LIMITS:
                return values.constant(self.size, _LIMITS[name])
            if name in ("INFINITY", "CUDART_INF_F", "HUGE_VALF", "CUDART_INF"):
                return values.infinite(self.size, 1)
            return values.constant(self.size, 32) if name == "warpSize" else self.no_value()
        if isinstance(declared, ParameterDef) or self.is_plain(declared):
            self.names[id(declared)] = declared
            found = self.scalars.get(id(declared))
            if found is None:
                found = self.no_value()
            return self._grouped(declared, found, node, mask) if self.is_strict else found
        return self.no_value()

    def _grouped(self, declared: Declared, found: Value, node: Node, mask: Mask) -> Value:
        """Make a variable's unknown values the elements of a group."""
        is_known = bool((found.kind[mask] != values.UNKNOWN).all())
        if is_known or self.types.of_name(declared.name, node) != self.kind:
            return found
        if (found.kind != values.UNKNOWN).any() or id(declared) in self.variables:
            return self.unclear(node, f"{declared.name!r} can't be followed")
        return self.group_of(declared)

    def group_of(self, declared: Declared) -> Value:
        """Take a variable's values for the elements of a new group."""
        first = self.new_group(self.size)
        self.names[id(declared)] = declared
        self.variables[id(declared)] = first
        self.scalars[id(declared)] = values.single_parts(self.size, first)
        return self.scalars[id(declared)]

    def take_group(self, declared: Declared) -> None:
        """Take a variable's values for those of a group, where they are of the array's type and not known."""
        is_free = not (self.scalars[id(declared)].kind != values.UNKNOWN).any()
        kind = (
            plain_type(self.bindings.get(declared.base_type, declared.base_type))
            if is_free and isinstance(declared, VariableDef)
            else ""
        )
        if kind == self.kind and self.symbols < _GROUPS * self.size:
            self.group_of(declared)

    def variable_of(self, value: Value) -> int | None:
        """Return the variable, by its declaration, whose group values are."""
        for key, first in self.variables.items():
            if values.is_same(value, values.single_parts(self.size, first)).all():
                return key
        return None

    def is_plain(self, declared: Declared) -> bool:
        """Whether a variable is a thread's own and holds one value."""
        return (
            isinstance(declared, VariableDef)
            and declared.storage is Storage.LOCAL
            and not (declared.is_reference or declared.dimensions or declared.pointer_depth)
        )

    def _field(self, node: Node, mask: Mask) -> Value:
        base, _, axis = "".join(self.unit.text_of(node).split()).partition(".")
        if base == "threadIdx" and axis in "xyz":
            return values.numbers(self.threads if axis == "x" else self.threads * 0)
        if base == "blockDim" and axis in "xyz":
            return values.constant(self.size, self.size if axis == "x" else 1)
        return self.no_value()

    def _number(self, node: Node, mask: Mask) -> Value:
        text = self.unit.text_of(node).rstrip("fF")
        try:
            number = float(text)
        except ValueError:
            return self.no_value()
        return self.number(int(number)) if number.is_integer() else self.no_value()

    def _unary(self, node: Node, mask: Mask) -> Value:
        argument, operator = node.child_by_field_name("argument"), self.unit.operator(node)
        if argument is None:
            return self.no_value()
        inner = self.value(argument, mask)
        if operator == "+":
            return inner
        if operator == "-":
            if (inner.kind == values.INFINITE).all():
                return Value(inner.kind, -inner.number, inner.parts)
            zero = values.constant(self.size, 0)
            return values.computed("-", zero, inner, self.types.of(node))
        if operator == "!":
            return values.compared("==", inner, values.constant(self.size, 0), "int")
        ones = values.constant(self.size, -1)
        return values.computed("^", inner, ones, self.types.of(node)) if operator == "~" else self.no_value()

    def _binary(self, node: Node, mask: Mask) -> Value:
        operator = self.unit.operator(node)
        left_node, right_node = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left_node is None or right_node is None:
            return self.no_value()
        left = self.value(left_node, mask)
        if operator in ("&&", "||"):
            return self._both(operator, left, right_node, mask)
        right = self.value(right_node, mask)
        if operator in values.COMPARING:
            kind = common_type(self.types.of(left_node), self.types.of(right_node))
            return values.compared(operator, left, right, kind)
        if operator in _SIGNS and self._has_parts(left, right, mask):
            return self.combine(node, left, right, Way(operator, f"{{a}} {operator}= {{b}};"), mask)
        if operator not in values.ARITHMETIC:
            return self.no_value()
        return values.computed(operator, left, right, self.types.of(node))

    def _both(self, operator: str, left: Value, right_node: Node, mask: Mask) -> Value:
        """Return `a && b` or `a || b`; the second is looked at where the first does not decide."""
        decides = (left.kind == values.NUMBER) & ((left.number != 0) == (operator == "||"))
        right = self.value(right_node, mask & ~decides)
        decided = values.constant(self.size, int(operator == "||"))
        truth = values.compared("!=", right, values.constant(self.size, 0), "int")
        known = left.kind == values.NUMBER
        sure = (truth.kind == values.NUMBER) & ((truth.number != 0) == (operator == "||"))
        open_ = values.select(known | sure, truth, self.no_value())
        return values.select(decides, decided, open_)

    @staticmethod
    def _has_parts(left: Value, right: Value, mask: Mask) -> bool:
        return bool(((left.kind == values.PARTS) | (right.kind == values.PARTS))[mask].any())

    def combine(self, node: Node, left: Value, right: Value, way: Way, mask: Mask) -> Value:
        """Return two values combined in a way, which must be the same all through the scan."""
        if not self.is_strict:
            return self.no_value()
        if self.way is not None and self.way.operator != way.operator:
            raise Unclear(f"line {self.unit.line_of(node)} combines by another operator")
        self.way = self.way or way
        if self.types.of(node) not in (self.kind, None):
            raise Unclear(f"line {self.unit.line_of(node)} combines in another type than {self.kind}")
        result = values.combined(left, right, way.operator, self.kind)
        if (result.kind[mask] == values.UNKNOWN).any():
            raise Unclear(
                f"line {self.unit.line_of(node)} combines what is no part of a scan, or a part twice"
            )
        return result

    def _conditional(self, node: Node, mask: Mask) -> Value:
        test, first, second = (
            node.child_by_field_name(name) for name in ("condition", "consequence", "alternative")
        )
        if test is None or first is None or second is None:
            return self.no_value()
        way = self.extreme_way(strip_parentheses(test), first, second)
        if way is not None:
            left, right = self.value(first, mask), self.value(second, mask)
            if self._has_parts(left, right, mask):
                return self.combine(node, left, right, way, mask)
        truth = self.value(test, mask)
        known = truth.kind == values.NUMBER
        taken = self.value(first, mask & ~(known & (truth.number == 0)))
        other = self.value(second, mask & ~(known & (truth.number != 0)))
        return values.select(known, values.select(truth.number != 0, taken, other), self.no_value())

    def extreme_way(self, test: Node, first: Node, second: Node) -> Way | None:
        """Return the way of `a < b ? a : b`; None where it is no such thing."""
        left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
        operator = self.unit.operator(test) if test.type == "binary_expression" else ""
        if operator[:1] not in ("<", ">") or operator in ("<<", ">>") or left is None or right is None:
            return None
        tested = [plain_text(self.unit.syntax, strip_parentheses(node)) for node in (left, right)]
        chosen = [plain_text(self.unit.syntax, strip_parentheses(node)) for node in (first, second)]
        if sorted(tested) != sorted(chosen) or tested[0] == tested[1]:
            return None
        name = "max" if (operator[0] == ">") == (tested[0] == chosen[0]) else "min"
        return Way(name, f"{{a}} = {{b}} {'>' if name == 'max' else '<'} {{a}} ? {{b}} : {{a}};")

    def _cast(self, node: Node, mask: Mask) -> Value:
        kind, inner = node.child_by_field_name("type"), node.child_by_field_name("value")
        if kind is None or inner is None:
            return self.no_value()
        return self.converted(self.value(inner, mask), self.types.of(inner), self.types.of(node))

    def converted(self, value: Value, old: str | None, new: str | None) -> Value:
        """Return values as another type holds them; parts only where the type stays the same."""
        if new in ("float", "double"):
            keeps = (value.kind != values.PARTS) | (old == new)
            return values.select(np.asarray(keeps), value, self.no_value())
        number, fits = values.wrapped(value.number, new)
        is_number = value.kind == values.NUMBER
        fits = np.where(is_number, fits & (new is not None), (value.kind == values.PARTS) & (old == new))
        return values.select(np.asarray(fits), Value(value.kind, number, value.parts), self.no_value())

    def _call(self, node: Node, mask: Mask) -> Value:
        name, listed = called_name(self.unit, node), node.child_by_field_name("arguments")
        arguments = named(listed) if listed is not None else []
        is_users = self.unit.function(name) is not None or self.unit.macro(name) is not None
        if name in _LARGEST | _LEAST and len(arguments) == 2 and not is_users:
            left, right = (self.value(argument, mask) for argument in arguments)
            if self._has_parts(left, right, mask):
                way = Way("max" if name in _LARGEST else "min", f"{{a}} = {name}({{a}}, {{b}});")
                return self.combine(node, left, right, way, mask)
        if len(arguments) == 1 and not is_users and self._is_cast(node, name):
            old, new = self.types.of(arguments[0]), self.types.of(node)
            return self.converted(self.value(arguments[0], mask), old, new)
        self._hand_over(name, arguments, mask, is_users=is_users)
        return self.unclear(node, f"{name!r} is called")

    def _hand_over(self, name: str, arguments: list[Node], mask: Mask, *, is_users: bool) -> None:
        """Look at the arguments of a call that is not followed; one that it may change is not known any more."""
        for argument in arguments if not self.is_strict else ():
            inner = strip_parentheses(argument)
            is_element = inner.type == "subscript_expression" and self.root_of(inner) is self.array
            if is_element and (is_users or name not in PURE_FUNCTIONS):
                self.lose_array()
            self.value(argument, mask)

    @staticmethod
    def _is_cast(node: Node, name: str) -> bool:
        function = node.child_by_field_name("function")
        return name.startswith("static_cast<") or (function is not None and function.type == "primitive_type")

    def _subscript(self, node: Node, mask: Mask) -> Value:
        if self.root_of(node) is not self.array:
            return self.unclear(node, f"{self.unit.text_of(node)} is read")
        places = self.places(node, mask)
        if places is None:
            self.reads.append(Read(node, mask, None, self.no_value()))
            return self.unclear(node, f"which element {self.unit.text_of(node)} is can't be told")
        if self.note_read(places, mask) and self.is_strict:
            line = self.unit.line_of(node)
            raise Unclear(f"line {line} reads what another thread wrote, without a barrier")
        found = values.select(mask, self.memory.at(places), self.no_value())
        self.reads.append(Read(node, mask, places, found))
        return found

    def root_of(self, node: Node) -> Declared | None:
        """Return the variable below subscripts."""
        while node.type == "subscript_expression":
            inner = node.child_by_field_name("argument")
            if inner is None:
                return None
            node = strip_parentheses(inner)
        return self.flow.resolve(node) if node.type == "identifier" else None

    def places(self, node: Node, mask: Mask) -> Numbers | None:
        """Return the elements of the array that a subscript names, 0 outside the mask; None if unknown."""
        indices: list[Node] = []
        while node.type == "subscript_expression":
            listed, inner = node.child_by_field_name("indices"), node.child_by_field_name("argument")
            indices = [*(named(listed) if listed is not None else []), *indices]
            if inner is None:
                return None
            node = strip_parentheses(inner)
        if len(indices) != len(self.extents):
            return None
        total = np.zeros(self.size, np.int64)
        for index, extent in zip(indices, self.extents, strict=True):
            found = self.value(index, mask)
            if not found.is_number(mask):
                return None
            total = total * extent + np.where(mask, found.number, 0)
        if (total < 0).any() or (total >= self.length).any():
            raise Unclear(f"line {self.unit.line_of(node)} leaves {self.array.name!r}")
        return total

    def store(self, node: Node, stored: Value, mask: Mask, *, is_maybe: bool) -> None:
        """Write elements of the array.

        Raises:
            Unclear: Two threads touch one element, or it can't be told which one is written.
        """
        places = self.places(node, mask)
        if places is None:
            if self.is_strict:
                raise Unclear(f"which element {self.unit.text_of(node)} is can't be told")
            self.lose_array()
            return
        if self.has_raced(places, mask) and self.is_strict:
            raise Unclear(f"line {self.unit.line_of(node)}: several threads touch one element")
        self.put(places, values.unknown(self.size) if is_maybe else stored, mask)


_EXPRESSIONS = {
    "identifier": Block._identifier,
    "field_expression": Block._field,
    "number_literal": Block._number,
    "unary_expression": Block._unary,
    "binary_expression": Block._binary,
    "conditional_expression": Block._conditional,
    "cast_expression": Block._cast,
    "call_expression": Block._call,
    "subscript_expression": Block._subscript,
}
