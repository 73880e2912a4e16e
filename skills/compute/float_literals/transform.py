"""Give double literals the suffix `f` where everything that they are combined with is float."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

from kernelskill.skills.device_code import reached_functions, units_of, words_in
from kernelskill.skills.float_flow import FloatFlow, FloatTypes
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef, FunctionKind, KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_number
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import Node, Span, walk
from kernelskill.source.unit import SourceUnit

_SMALLEST_NORMAL = 1.1754943508222875e-38


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
        types = FloatTypes(unit, function, bindings)
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


def _accepts(types: FloatTypes, node: Node, text: str) -> bool:
    number = read_number(text)
    if number is None:
        return False
    return FloatFlow(types, exact=_rounded(float(number.value)) == number.value).accepts(node)


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
