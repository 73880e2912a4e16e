"""Bring every thread of a block to the end of a kernel, so that code put there may use barriers."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import BARRIERS, words_in
from kernelskill.skills.expression_types import ExpressionTypes, is_integer
from kernelskill.skills.loop_edits import indent_lines
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class CommonEnd:
    """The early returns of a kernel, each an `if (...) return;` of its outermost block."""

    returns: tuple[Node, ...]
    last: Node
    """The last statement of the kernel."""


def read_common_end(unit: SourceUnit, kernel: KernelDef) -> CommonEnd:
    """Return how the threads of a kernel leave it early.

    Raises:
        SkillRefused: They do so in a way that can't be turned into a guard.
    """
    statements = named(kernel.body) if kernel.body is not None else []
    if not statements:
        raise SkillRefused("its body is empty")
    early = tuple(one for one in statements if one.type == "if_statement" and is_early_return(one))
    inside = [span_of(one) for one in early]
    for node in walk(kernel.node):
        if node.type in ("goto_statement", "labeled_statement", "lambda_expression", "try_statement"):
            raise SkillRefused(f"line {unit.line_of(node)} holds a jump or lambda")
        if node.type.startswith("preproc_"):
            raise SkillRefused(f"line {unit.line_of(node)} holds a directive")
        if node.type == "return_statement" and not any(span.contains(span_of(node)) for span in inside):
            raise SkillRefused(f"line {unit.line_of(node)} returns from the midst of the kernel")
    barriers = sorted(set(words_in(unit, kernel.span)) & BARRIERS)
    if barriers and early:
        raise SkillRefused(f"it uses {barriers[0]!r} after some threads have left")
    return CommonEnd(early, statements[-1])


def is_early_return(statement: Node) -> bool:
    """Whether an `if` without `else` does nothing but leave the kernel."""
    body = statement.child_by_field_name("consequence")
    if body is None or statement.child_by_field_name("alternative") is not None:
        return False
    inner = named(body) if body.type == "compound_statement" else [body]
    return len(inner) == 1 and inner[0].type == "return_statement" and not named(inner[0])


def write_common_end(unit: SourceUnit, edits: EditSet, kernel: KernelDef, end: CommonEnd) -> None:
    """Put what follows each early return under the opposite test, down to the end of the kernel."""
    for statement in end.returns:
        condition = statement.child_by_field_name("condition")
        assert condition is not None
        edits.replace(statement, f"if ({opposite_test(unit, kernel, condition)}) {{")
        for later in named(kernel.body) if kernel.body is not None else ():
            # A later return is replaced as a whole; only its first line is left to be moved.
            if later.start_byte > statement.end_byte:
                place = span_of(later)
                end_byte = place.start if later in end.returns else place.end
                first = unit.text_of(Span(unit.syntax.line_span(unit.line_of(place)).start, place.start))
                indent_lines(unit, edits, Span(place.start, end_byte), first=not first.strip())
    indent = unit.indent_of(end.last)
    closing = "".join(f"\n{indent}}}" for _ in end.returns)
    if closing:
        edits.insert_after(after_comment(unit, end.last), closing)


def append_statements(unit: SourceUnit, edits: EditSet, end: CommonEnd, lines: list[str]) -> None:
    """Insert statements behind the last one of a kernel."""
    indent = unit.indent_of(end.last)
    text = "".join(f"\n{indent}{line}" if line else "\n" for line in lines)
    edits.insert_after(after_comment(unit, end.last), text)


def after_comment(unit: SourceUnit, statement: Node) -> Span:
    """Return a range that ends behind a statement and the comment that follows it on its line."""
    line = unit.syntax.line_span(unit.line_of(statement.end_byte - 1))
    rest = unit.text_of(Span(statement.end_byte, line.end)).strip()
    return Span(statement.start_byte, line.end if rest.startswith("//") else statement.end_byte)


def opposite_test(unit: SourceUnit, kernel: KernelDef, condition: Node) -> str:
    """Return C text that holds exactly where a condition does not."""
    inner = strip_parentheses(condition)
    text = unit.text_of(inner)
    if inner.type == "binary_expression" and unit.operator(inner) in _OPPOSITE:
        left, right = inner.child_by_field_name("left"), inner.child_by_field_name("right")
        types = ExpressionTypes(unit, kernel)
        if left is not None and right is not None and all(is_integer(types.of(s)) for s in (left, right)):
            return f"{unit.text_of(left)} {_OPPOSITE[unit.operator(inner)]} {unit.text_of(right)}"
    return f"!({text})"
