"""Give double literals the suffix `f` where everything that they are combined with is float."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import reached_functions, units_of, words_in
from kernelskill.skills.expression_types import (
    FLOAT_FUNCTIONS,
    GENERIC_FUNCTIONS,
    ExpressionTypes,
    called_name,
    is_integer,
    plain_type,
)
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef, FunctionKind, KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_number
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import Node, Span, named, walk
from kernelskill.source.unit import SourceUnit

_SMALLEST_NORMAL = 1.1754943508222875e-38
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "==", "!="})


class _FloatTypes(ExpressionTypes):
    """Types as they are once every double literal is a float."""

    def _literal(self, node: Node) -> str | None:
        kind = super()._literal(node)
        return "float" if kind == "double" else kind

    def _identifier(self, node: Node) -> str | None:
        kind = super()._identifier(node)
        macro = self.unit.macro(self.unit.text_of(node))
        return "float" if macro is not None and kind == "double" else kind


@dataclass(frozen=True)
class _Judge:
    """Decides for one literal by climbing the expression that it stands in."""

    types: _FloatTypes
    exact: bool
    """Whether float holds the literal's value exactly."""

    def accepts(self, literal: Node) -> bool:
        """Whether the literal only ever meets float, and its value never becomes a decision."""
        node, parent, met_float = literal, literal.parent, False
        while parent is not None:
            step = self._step(node, parent, met_float)
            if step is None:
                return False
            if step == "end":
                return True
            met_float = met_float or step == "float"
            node, parent = parent, parent.parent
        return False

    def _step(self, node: Node, parent: Node, met_float: bool) -> str | None:
        """Return `float` or `open` to climb on, `end` to accept, None to decline."""
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
        if other == "float":
            return "float"
        return "open" if is_integer(other) else None

    def _conditional(self, node: Node, parent: Node) -> str | None:
        if parent.child_by_field_name("condition") == node:
            return None
        return "float" if self.types.of(parent) == "float" else None

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
            return "float"
        known = (
            name in GENERIC_FUNCTIONS
            or name in ("float", "static_cast<float>")
            or name in self.types.bindings
        )
        return "float" if known and self.types.of(parent) == "float" else None


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel where a literal can be changed."""
    count = len(list(_changes(unit, kernel, context)))
    if count == 0:
        raise SkillRefused("no double literal stands in float arithmetic")
    reason = f"{count} double literal{'s' if count > 1 else ''} in float arithmetic"
    return [Site(key=f"{kernel.name}/literals", kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Add the suffixes."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    for span, text in _changes(unit, kernel, context):
        edits.replace(span, text)
    return Rewrite(edits=edits.edits)


def _changes(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> Iterator[tuple[Span, str]]:
    """Yield the literals to replace with their new text, in the kernel and what it calls in this file."""
    functions: list[FunctionDef] = [kernel]
    functions += [
        function
        for other, function in reached_functions(unit, kernel, context)
        if other is unit and function.kind is FunctionKind.DEVICE and not function.is_opaque
    ]
    macro_uses: dict[str, list[bool]] = {}
    for function in functions:
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        types = _FloatTypes(unit, function, bindings)
        for node in walk(function.body) if function.body is not None else ():
            if node.type == "number_literal":
                text = _float_text(unit.text_of(node))
                if text and not unit.is_locked(node) and _accepts(types, node, unit.text_of(node)):
                    yield Span(node.start_byte, node.end_byte), text
            elif node.type == "identifier":
                macro = unit.macro(unit.text_of(node))
                if macro is not None and not macro.is_function_like and _float_text(macro.value.strip("() ")):
                    accepted = _accepts(types, node, macro.value.strip("() "))
                    macro_uses.setdefault(macro.name, []).append(accepted)
    for name, answers in macro_uses.items():
        macro = unit.macro(name)
        if macro is not None and all(answers) and _used_only_here(unit, macro, len(answers), context):
            yield from _macro_change(unit, macro)


def _accepts(types: _FloatTypes, node: Node, text: str) -> bool:
    number = read_number(text)
    if number is None:
        return False
    return _Judge(types, exact=_rounded(float(number.value)) == number.value).accepts(node)


def _float_text(text: str) -> str:
    """Return a double literal as float literal; empty where float can't hold it."""
    number = read_number(text)
    if number is None or not number.is_double or text.lower().startswith("0x"):
        return ""
    value = abs(float(number.value))
    try:
        rounded = _rounded(value)
    except OverflowError:
        return ""
    return f"{text}f" if value == 0 or (_SMALLEST_NORMAL <= rounded < float("inf")) else ""


def _rounded(value: float) -> float:
    result: float = struct.unpack("f", struct.pack("f", value))[0]
    return result


def _used_only_here(unit: SourceUnit, macro: MacroDef, uses: int, context: SkillContext) -> bool:
    """Whether the macro is defined once and every use in the candidate was judged."""
    total = 0
    for other in units_of(unit, context):
        total += words_in(other, Span(0, len(other.data))).count(macro.name)
    return total == uses + 1 and not unit.is_locked(macro.span)


def _macro_change(unit: SourceUnit, macro: MacroDef) -> Iterator[tuple[Span, str]]:
    span = macro.value_span
    written = unit.text_of(span) if span is not None else ""
    literal = macro.value.strip("() ")
    if span is not None and written.count(literal) == 1:
        start = span.start + len(written[: written.index(literal)].encode())
        yield Span(start, start + len(literal.encode())), _float_text(literal)
