"""64-bit integer expressions in 32 bits: which values they can have, and how they are written there.

All ranges are of values that are never negative: what might be is declined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelskill.skills.text_changes import Replacement
from kernelskill.skills.value_ranges import ValueRanges
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.expressions import normalised_type, static_type
from kernelskill.source.literals import read_integer
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

MOST = (1 << 32) - 1
WIDE = ("long", "unsigned long", "long long", "unsigned long long")
_UNSIGNED = {"bool": 1, "unsigned char": 255, "unsigned short": 65535, "unsigned": MOST}
_INTEGERS = (*_UNSIGNED, "char", "short", "int", *WIDE)
_ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_LARGEST_INT = (1 << 31) - 1
_EXACT: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else -1,
    "<<": lambda a, b: a << b if b < 32 else -1,
}

Range = tuple[int, int]
"""The lowest and the highest value, both included."""
Ranges = Mapping[int, Range]
"""By the id of the variable's declaration."""


class NotNarrow(Exception):
    """An expression can't be told to fit 32 bits; the message says why."""

    def __init__(self, reason: str, declared: Declared | None = None) -> None:
        super().__init__(reason)
        self.declared = declared
        """The variable that would get its value."""


class TooLarge(NotNarrow):
    """It fits where the values that go into it are small enough."""


@dataclass(frozen=True)
class NarrowValues:
    """Reads the expressions of one loop. What changes in the text is collected."""

    unit: SourceUnit
    function: FunctionDef
    names: Mapping[int, str]
    """The variables that are narrow, by the id of their declaration: their names there."""
    changes: list[Replacement] = field(default_factory=list)
    operations: list[Node] = field(default_factory=list)
    """Operations that are done in 32 bits in place of 64."""

    def kind(self, node: Node) -> str:
        """Return the type of an expression; of arithmetic between bytes and 64-bit integers, too."""
        node = strip_parentheses(node)
        sides = [node.child_by_field_name(side) for side in ("left", "right")]
        if node.type == "binary_expression" and self.unit.operator(node) in _ARITHMETIC:
            kinds = [self.kind(side) for side in sides if side is not None]
            counted = kinds[:1] if self.unit.operator(node) in ("<<", ">>") else kinds
            wide = [kind for kind in counted if kind in WIDE]
            if wide and all(kind in _INTEGERS for kind in kinds):
                return max(wide, key=WIDE.index)
        return static_type(self.unit, self.function, node)

    def member(self, node: Node) -> Declared | None:
        """Return the narrow variable that an expression is."""
        node = strip_parentheses(node)
        declared = flow_of(self.unit, self.function).resolve(node) if node.type == "identifier" else None
        return declared if declared is not None and id(declared) in self.names else None

    def holds_member(self, node: Node) -> bool:
        """Whether an expression mentions a narrow variable."""
        return any(self.member(entry) is not None for entry in walk(node) if entry.type == "identifier")

    def value(self, node: Node, ranges: Ranges) -> Range:
        """Return the range of an integer expression whose narrow form has its value.

        Raises:
            NotNarrow: It has none.
        """
        node = strip_parentheses(node)
        declared = self.member(node)
        if declared is not None:
            self.changes.append((node, self.names[id(declared)]))
            return ranges[id(declared)]
        if not self.holds_member(node):
            return self._leaf(node)
        handler = _HANDLERS.get(node.type)
        if node.type == "call_expression" and self._cast_target(node) in WIDE:
            handler = NarrowValues._call
        is_test = self.kind(node) == "bool" and node.type in ("binary_expression", "unary_expression")
        if handler is None or not (self.kind(node) in WIDE or is_test):
            return self._leaf(node)
        return handler(self, node, ranges)

    def _leaf(self, node: Node) -> Range:
        """Return the range of a part that stays as it is."""
        value, kind = self._constant(node), self.kind(node)
        text = " ".join(self.unit.text_of(node).split())
        where = f"line {self.unit.line_of(node)}: {text}"
        if value is not None and kind in _INTEGERS and 0 <= value <= MOST:
            if kind in WIDE:
                self.changes.append((node, f"{value}u"))
            return (value, value)
        known_range = ValueRanges(self.unit, self.function).of(node) if kind in ("int", "unsigned") else None
        if known_range is not None and known_range[0] >= 0:
            self.opaque(node)
            return known_range
        if kind not in _UNSIGNED:
            known = kind in _INTEGERS
            raise NotNarrow(f"{where} {'may be negative or too large' if known else 'is of another type'}")
        self.opaque(node)
        return (0, _UNSIGNED[kind])

    def _constant(self, node: Node) -> int | None:
        """Return the value of a constant; C's own arithmetic is followed where nothing can wrap around."""
        node = strip_parentheses(node)
        if node.type == "number_literal":
            return read_integer(self.unit.text_of(node))
        if node.type == "identifier":
            return self._named_constant(node)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operation = _EXACT.get(self.unit.operator(node)) if node.type == "binary_expression" else None
        if operation is None or left is None or right is None:
            return None
        first, second = self._constant(left), self._constant(right)
        if first is None or second is None or max(first, second) > _LARGEST_INT:
            return None
        value = operation(first, second)
        return value if 0 <= value <= _LARGEST_INT else None

    def _named_constant(self, node: Node) -> int | None:
        """Return the value of a macro or constant that is a plain number."""
        flow, name = flow_of(self.unit, self.function), self.unit.text_of(node)
        declared, macro = flow.resolve(node), self.unit.macro(name)
        if declared is None and macro is not None and not macro.is_function_like:
            plain = read_integer(macro.value.strip("() "))
            return plain if plain == self.unit.constants.value(node) else None
        value = getattr(declared, "initialiser", None)
        if value is None or declared is None or not declared.is_const or value.type != "number_literal":
            return None
        return read_integer(self.unit.text_of(value))

    def opaque(self, node: Node) -> None:
        """Give what an expression mentions its 64 bits back."""
        for entry in walk(node):
            declared = self.member(entry) if entry.type == "identifier" else None
            if declared is not None:
                kind = static_type(self.unit, self.function, entry)
                self.changes.append((entry, f"({kind}){self.names[id(declared)]}"))

    def tried(self, node: Node, ranges: Ranges) -> None:
        """Write an expression for 32 bits where that is possible, with its 64 bits where not."""
        before, done = len(self.changes), len(self.operations)
        try:
            self.value(node, ranges)
        except NotNarrow:
            del self.changes[before:], self.operations[done:]
            self.opaque(node)

    def _binary(self, node: Node, ranges: Ranges) -> Range:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        assert left is not None
        assert right is not None
        if operator not in _ARITHMETIC:
            self.condition(node, ranges)
            return (0, 1)
        first = self.value(left, ranges)
        return self.operation(node, operator, first, self._operand(operator, right, ranges))

    def _operand(self, operator: str, node: Node, ranges: Ranges) -> Range:
        """Return the range of a right side; counts of shifts have a type of their own."""
        if operator not in ("<<", ">>"):
            return self.value(node, ranges)
        count = self._constant(node)
        if count is None or not 0 <= count < 32:
            raise NotNarrow(f"line {self.unit.line_of(node)} shifts by an unknown or large count")
        return (count, count)

    def operation(self, node: Node, operator: str, left: Range, right: Range) -> Range:
        """Return the range of an operation on two ranges, which is noted as one in 32 bits.

        Raises:
            TooLarge: Its result may be negative or have more than 32 bits.
        """
        found = _combined(operator, left, right)
        if found is None or found[0] < 0 or found[1] > MOST:
            text = " ".join(self.unit.text_of(node).split())
            raise TooLarge(f"line {self.unit.line_of(node)}: {text} may be negative or leave 32 bits")
        self.operations.append(node)
        return found

    def assigned(self, node: Node, target: Declared, ranges: Ranges) -> Range:
        """Return the range that an assignment to a narrow variable, or its step, leaves it with."""
        operator, own = self.unit.operator(node), ranges[id(target)]
        left = node.child_by_field_name("left") or node.child_by_field_name("argument")
        right = node.child_by_field_name("right")
        assert left is not None
        self.changes.append((strip_parentheses(left), self.names[id(target)]))
        if right is None:
            return self.operation(node, operator[0], own, (1, 1))
        if operator == "=":
            return self.value(right, ranges)
        if operator[:-1] not in _ARITHMETIC or self.kind(right) not in _INTEGERS:
            raise NotNarrow(f"line {self.unit.line_of(node)} assigns more than integers")
        return self.operation(node, operator[:-1], own, self._operand(operator[:-1], right, ranges))

    def _choice(self, node: Node, ranges: Ranges) -> Range:
        test, first, second = (
            node.child_by_field_name(name) for name in ("condition", "consequence", "alternative")
        )
        if test is None or first is None or second is None:
            raise NotNarrow(f"line {self.unit.line_of(node)} leaves a part of a choice out")
        self.condition(test, ranges)
        taken = self.value(first, self.refined(test, ranges, True))
        other = self.value(second, self.refined(test, ranges, False))
        return joined(taken, other)

    def _cast(self, node: Node, ranges: Ranges) -> Range:
        kind, value = node.child_by_field_name("type"), node.child_by_field_name("value")
        assert kind is not None
        assert value is not None
        found = self.value(value, ranges)
        self.changes.append((kind, "unsigned"))
        return found

    def _cast_target(self, node: Node) -> str:
        """Return the type that a call casts to, where its name is that of one."""
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        text = self.unit.text_of(function) if function is not None else ""
        target = normalised_type(text.removeprefix("static_cast<").removesuffix(">"))
        return target if listed is not None and len(named(listed)) == 1 else ""

    def _call(self, node: Node, ranges: Ranges) -> Range:
        function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        assert function is not None
        assert listed is not None
        found = self.value(named(listed)[0], ranges)
        self.changes.append((function, "(unsigned)"))
        return found

    def _unary(self, node: Node, ranges: Ranges) -> Range:
        argument = node.child_by_field_name("argument")
        if self.unit.operator(node) == "!":
            self.condition(node, ranges)
            return (0, 1)
        if argument is None or self.unit.operator(node) != "+":
            raise NotNarrow(f"line {self.unit.line_of(node)} takes a negative or a complement")
        return self.value(argument, ranges)

    def condition(self, node: Node, ranges: Ranges) -> None:
        """Write a condition for 32 bits, as far as that is possible."""
        node = strip_parentheses(node)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        argument = node.child_by_field_name("argument")
        if operator == "!" and argument is not None:
            self.condition(argument, ranges)
        elif operator in ("&&", "||") and left is not None and right is not None:
            self.condition(left, ranges)
            self.condition(right, self.refined(left, ranges, operator == "&&"))
        elif operator in _MIRRORED and left is not None and right is not None:
            self._comparison(node, left, right, ranges)
        elif self.kind(node) in WIDE:
            self.tried(node, ranges)
        else:
            self.opaque(node)

    def _comparison(self, node: Node, left: Node, right: Node, ranges: Ranges) -> None:
        """Compare in 32 bits where both sides fit; else in 64."""
        kinds = (self.kind(left), self.kind(right))
        before, done = len(self.changes), len(self.operations)
        try:
            if not any(kind in WIDE for kind in kinds) or not all(kind in _INTEGERS for kind in kinds):
                raise NotNarrow("it compares other types")
            self.value(left, ranges)
            self.value(right, ranges)
        except NotNarrow:
            del self.changes[before:], self.operations[done:]
            self.opaque(node)

    def refined(self, node: Node, ranges: Ranges, truth: bool) -> Ranges:
        """Return the ranges where a condition holds, or where it doesn't."""
        node = strip_parentheses(node)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        argument = node.child_by_field_name("argument")
        if operator == "!" and argument is not None:
            return self.refined(argument, ranges, not truth)
        if operator == ("&&" if truth else "||") and left is not None and right is not None:
            return self.refined(right, self.refined(left, ranges, truth), truth)
        declared = self.member(node)
        if declared is not None:
            return _limited(ranges, declared, "!=" if truth else "==", 0)
        if operator not in _MIRRORED or left is None or right is None:
            return ranges
        for one, other, sign in ((left, right, operator), (right, left, _MIRRORED[operator])):
            declared, value = self.member(one), self._constant(other)
            if declared is not None and value is not None:
                return _limited(ranges, declared, sign if truth else _OPPOSITE[sign], value)
        return ranges


_HANDLERS = {
    "binary_expression": NarrowValues._binary,
    "conditional_expression": NarrowValues._choice,
    "cast_expression": NarrowValues._cast,
    "unary_expression": NarrowValues._unary,
}


def joined(left: Range, right: Range) -> Range:
    """Return the range of a value that is in one range or in another."""
    return (min(left[0], right[0]), max(left[1], right[1]))


def _limited(ranges: Ranges, declared: Declared, sign: str, value: int) -> Ranges:
    """Return ranges in which a variable compares so with a number; as they were where none of it would."""
    low, high = ranges[id(declared)]
    if sign in ("<", "<=", "=="):
        high = min(high, value - (sign == "<"))
    if sign in (">", ">=", "=="):
        low = max(low, value + (sign == ">"))
    if sign == "!=":
        low, high = low + (low == value), high - (high == value)
    return {**ranges, id(declared): (low, high)} if low <= high else ranges


def _combined(operator: str, left: Range, right: Range) -> Range | None:
    """Return the range of an operation as if integers had no end; None where it isn't known."""
    (a, b), (c, d) = left, right
    if operator == "+":
        return (a + c, b + d)
    if operator == "-":
        return (a - d, b - c)
    if operator == "*":
        return (a * c, b * d)
    if operator == "<<":
        return (a << c, b << d)
    if operator == ">>":
        return (a >> d, b >> c)
    if operator == "&":
        return (0, min(b, d))
    if operator in ("|", "^"):
        return (max(a, c) if operator == "|" else 0, (1 << max(b, d).bit_length()) - 1)
    if d == 0:
        return None
    # A division by zero has no result in either width.
    least = max(c, 1)
    if operator == "/":
        return (a // d, b // least)
    return left if b < least else (0, min(b, d - 1))
