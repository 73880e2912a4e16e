"""Int expressions that are linear in a loop's counter, and the part of its range between such bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes, is_pure, plain_type
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.literals import read_integer
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_DEPTH = 16
_OTHER_TYPE = re.compile(r"\d[uUlL]|\b(?:sizeof|unsigned|long|size_t)\b|\w+_t\b")
_ACTIVE = frozenset({"call_expression", "assignment_expression", "update_expression", "lambda_expression"})
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class LinearForm:
    """`factor * counter` plus terms that the loop leaves alone."""

    factor: int = 0
    terms: tuple[tuple[int, str], ...] = ()
    """Sign and text."""
    number: int = 0

    def plus(self, other: LinearForm, sign: int) -> LinearForm:
        """Return the sum, or the difference for a sign of -1."""
        terms = (*self.terms, *((sign * own, text) for own, text in other.terms))
        return LinearForm(self.factor + sign * other.factor, terms, self.number + sign * other.number)

    def text(self, is_wide: bool) -> str:
        """Return C text for it without the counter, in 64 bits where asked."""
        ordered = sorted(self.terms, key=lambda term: -term[0])
        cast = "(long long)" if is_wide else ""
        text = ""
        for sign, term in ordered:
            lead = ("-" if sign < 0 else "") if not text else (" - " if sign < 0 else " + ")
            text += f"{lead}{cast if not text else ''}{term}"
        if not text:
            return f"{self.number}{'LL' if is_wide else ''}"
        if self.number:
            text += f" {'+' if self.number > 0 else '-'} {abs(self.number)}"
        return text


def is_int(unit: SourceUnit, kernel: KernelDef, node: Node) -> bool:
    """Whether an expression certainly has the type `int`; macros of numbers and template parameters are known."""
    node = strip_parentheses(node)
    kind = ExpressionTypes(unit, kernel).of(node)
    if kind is not None:
        return kind == "int"
    if node.type == "identifier":
        name = unit.text_of(node)
        macro = unit.macro(name)
        if macro is not None:
            other_type = _OTHER_TYPE.search(macro.value)
            return unit.constants.value(node) is not None and not macro.is_given and not other_type
        return any(entry.name == name and entry.kind == "int" for entry in kernel.template_parameters)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if (
        node.type == "binary_expression"
        and unit.operator(node) in ("+", "-", "*", "/", "%")
        and left
        and right
    ):
        return is_int(unit, kernel, left) and is_int(unit, kernel, right)
    argument = node.child_by_field_name("argument")
    is_sign = node.type == "unary_expression" and unit.operator(node) in ("-", "+")
    return is_sign and argument is not None and is_int(unit, kernel, argument)


def is_plain(unit: SourceUnit, node: Node) -> bool:
    """Whether an expression has no effect; macros of constants count as numbers."""
    names = [entry for entry in walk(node) if entry.type == "identifier" and unit.macro(unit.text_of(entry))]
    if any(unit.constants.value(name) is None for name in names):
        return False
    passive = bool(names) and not any(entry.type in _ACTIVE for entry in walk(node))
    return passive or is_pure(unit, node)


@dataclass(frozen=True)
class LinearReader:
    """Reads int expressions of a loop's body as linear in its counter."""

    unit: SourceUnit
    kernel: KernelDef
    loop: Loop
    values: Mapping[int, Node]

    def bound(self, leaf: Node, negated: bool) -> tuple[bool, LinearForm] | None:
        """Return whether a test bounds the counter from below, and the bound; None where it does neither."""
        leaf = strip_parentheses(leaf)
        left, right = leaf.child_by_field_name("left"), leaf.child_by_field_name("right")
        operator = self.unit.operator(leaf)
        if leaf.type != "binary_expression" or operator not in _OPPOSITE or left is None or right is None:
            return None
        sides = self.read(left), self.read(right)
        if sides[0] is None or sides[1] is None:
            return None
        whole = sides[0].plus(sides[1], -1)
        operator = _OPPOSITE[operator] if negated else operator
        if whole.factor not in (1, -1):
            return None
        rest = LinearForm(0, whole.terms, whole.number)
        if whole.factor == 1:
            rest = LinearForm().plus(rest, -1)
        else:
            operator = _MIRRORED[operator]
        one = LinearForm(number=1)
        is_low = operator in (">", ">=")
        return is_low, rest.plus(one, 1) if operator in (">", "<=") else rest

    def read(self, node: Node, depth: int = 0) -> LinearForm | None:
        """Return an int expression as a linear form; None where it is none."""
        node = strip_parentheses(node)
        if depth > _DEPTH or not is_int(self.unit, self.kernel, node):
            return None
        number = self.unit.constants.value(node)
        if number is not None:
            return LinearForm(number=number)
        if node.type == "identifier":
            return self._name(node, depth)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        if node.type == "binary_expression" and operator in ("+", "-") and left and right:
            sides = self.read(left, depth + 1), self.read(right, depth + 1)
            if sides[0] is None or sides[1] is None:
                return None
            return sides[0].plus(sides[1], 1 if operator == "+" else -1)
        argument = node.child_by_field_name("argument")
        if node.type == "unary_expression" and operator == "-" and argument is not None:
            value = self.read(argument, depth + 1)
            return LinearForm().plus(value, -1) if value is not None else None
        return self._fixed(node)

    def _name(self, node: Node, depth: int) -> LinearForm | None:
        declared = flow_of(self.unit, self.kernel).resolve(node)
        if declared is not None and declared is self.loop.declared:
            return LinearForm(factor=1)
        if declared is not None and id(declared) in self.values:
            whole = plain_type(getattr(declared, "base_type", "")) in ("int", "auto")
            return self.read(self.values[id(declared)], depth + 1) if whole else None
        return self._fixed(node)

    def _fixed(self, node: Node) -> LinearForm | None:
        text = clean_text(self.unit, node)
        risky = any(sign in text for sign in ("/", "%"))
        if (
            risky
            or not is_plain(self.unit, node)
            or not is_invariant(self.unit, self.kernel, node, self.loop.span)
        ):
            return None
        simple = node.type in ("identifier", "number_literal")
        return LinearForm(terms=((1, text if simple else f"({text})"),))


@dataclass(frozen=True)
class RangeNames:
    """What the ends of a range are called, and the lines that compute them."""

    first: str
    """The start itself where nothing bounds the counter from below."""
    end: str
    """The bound itself where nothing bounds it from above."""
    lines: tuple[str, ...]


def range_names(
    unit: SourceUnit,
    loop: Loop,
    lows: Sequence[LinearForm],
    ends: Sequence[LinearForm],
    context: SkillContext,
    *,
    is_wide: bool,
) -> RangeNames:
    """Return the part of a loop's range that lies between some bounds; an empty one stays within the range.

    Args:
        unit: The file.
        loop: Counts up by one in `int`.
        lows: The counter is at least each of these.
        ends: The counter is less than each of these.
        context: Tells which names are taken.
        is_wide: Whether the bounds must be computed in 64 bits.
    """
    assert loop.start is not None
    assert loop.bound is not None
    first = fresh_name(unit, context, f"{loop.variable}_first")
    end = fresh_name(unit, context, f"{loop.variable}_end", [first])
    start, bound = clean_text(unit, loop.start), clean_text(unit, loop.bound)
    limit = LinearForm(terms=((1, _operand(bound, loop.bound)),), number=int(loop.comparison == "<="))
    if read_integer(bound) is not None:
        limit = LinearForm(number=(read_integer(bound) or 0) + int(loop.comparison == "<="))
    origin = LinearForm(terms=((1, _operand(start, loop.start)),))
    if read_integer(start) is not None:
        origin = LinearForm(number=read_integer(start) or 0)
    cast = "(int)" if is_wide else ""
    lines = []
    low = origin
    if lows:
        value = _extreme("max", [origin, *lows], is_wide)
        lines.append(f"const int {first} = {cast}min({limit.text(is_wide)}, {value});")
        low = LinearForm(terms=((1, first),))
    if ends:
        value = _extreme("min", [limit, *ends], is_wide)
        lines.append(f"const int {end} = {cast}max({low.text(is_wide)}, {value});")
    return RangeNames(first if lows else start, end if ends else limit.text(False), tuple(lines))


def _operand(text: str, node: Node) -> str:
    return text if strip_parentheses(node).type in ("identifier", "number_literal") else f"({text})"


def _extreme(function: str, forms: list[LinearForm], is_wide: bool) -> str:
    """Return the largest or smallest of some forms as C text, numbers joined beforehand."""
    numbers = [form.number for form in forms if not form.terms]
    kept = [form for form in forms if form.terms]
    if numbers:
        joined = max(numbers) if function == "max" else min(numbers)
        kept.insert(0, LinearForm(number=joined))
    texts = list(dict.fromkeys(form.text(is_wide) for form in kept))
    result = texts[0]
    for text in texts[1:]:
        result = f"{function}({result}, {text})"
    return result
