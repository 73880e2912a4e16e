"""Put statements before and after a loop, in a block of their own where that is needed."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop
from kernelskill.source.syntax import Node, Span
from kernelskill.source.unit import SourceUnit

_INDENT = "    "


def is_statement_of_block(node: Node) -> bool:
    """Whether a statement stands in a block, not alone behind `if (...)`."""
    return node.parent is not None and node.parent.type == "compound_statement"


def surround_loop(
    unit: SourceUnit,
    edits: EditSet,
    loop: Loop,
    before: Sequence[str],
    after: Sequence[str],
    condition: str = "",
) -> None:
    """Insert lines before and after a loop.

    Args:
        unit: The file.
        edits: Collects the insertions.
        loop: The loop, moved right by one step where a block is put round it.
        before: Statements before it.
        after: Statements after it.
        condition: Test that all of it is put under; empty for none.
    """
    indent = unit.indent_of(loop.node)
    place = loop.node if loop.pragma_span is None else loop.pragma_span
    if not condition and is_statement_of_block(loop.node):
        edits.insert_line_before(place, f"\n{indent}".join(before))
        if after:
            edits.insert_after(loop.node, "".join(f"\n{indent}{line}" for line in after))
        return
    opening, closing = [f"if ({condition}) {{"] if condition else ["{"], ["}"]
    if condition and not is_statement_of_block(loop.node):
        # The braces keep an `else` that follows with the `if` that it belongs to.
        opening, closing = [f"{{ {opening[0]}"], ["} }"]
    inner = indent + _INDENT
    lines = [*opening, *(f"{_INDENT}{line}" for line in before)]
    edits.insert_line_before(place, f"\n{indent}".join(lines))
    indent_lines(unit, edits, Span(loop.node.start_byte, loop.node.end_byte))
    edits.insert_after(loop.node, "".join(f"\n{inner}{line}" for line in after) + f"\n{indent}{closing[0]}")


def indent_lines(unit: SourceUnit, edits: EditSet, span: Span, *, first: bool = True) -> None:
    """Move the lines of a range right by one step, the first one only where asked."""
    if first:
        edits.insert_before(span, _INDENT)
    for line in range(unit.line_of(span) + 1, unit.line_of(span.end - 1) + 1):
        place = unit.syntax.line_span(line)
        text = unit.text_of(place)
        if text.strip() and not text.startswith("#"):
            edits.insert_before(place, _INDENT)


def lead_of(unit: SourceUnit, node: Node, place: Node | Span) -> str:
    """Return the white space that a line above a loop lacks where a pragma above it is indented less."""
    return unit.indent_of(node)[len(unit.indent_of(place)) :]
