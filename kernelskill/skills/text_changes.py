"""Write a piece of the source anew with parts of it replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelskill.source.definitions import FunctionDef
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, Span, span_of, walk
from kernelskill.source.unit import SourceUnit

Replacement = tuple[Node | Span, str]


def replaced_text(unit: SourceUnit, place: Node | Span, replacements: Iterable[Replacement]) -> str:
    """Return the text of a range with parts replaced; of two that overlap the outer one counts."""
    whole = span_of(place)
    text, position = "", whole.start
    ordered = sorted(((span_of(part), new) for part, new in replacements), key=_outer_first)
    for span, new in ordered:
        if span.start < position or span.end > whole.end:
            continue
        text += unit.text_of(Span(position, span.start)) + new
        position = span.end
    return text + unit.text_of(Span(position, whole.end))


def _outer_first(entry: tuple[Span, str]) -> tuple[int, int]:
    return entry[0].start, -entry[0].end


def uses_of(unit: SourceUnit, function: FunctionDef, node: Node, declared: Declared) -> list[Node]:
    """Return the identifiers below a node that name a variable."""
    flow = flow_of(unit, function)
    text = declared.name
    return [
        entry
        for entry in walk(node)
        if entry.type == "identifier" and unit.text_of(entry) == text and flow.resolve(entry) is declared
    ]


def renamed(
    unit: SourceUnit, function: FunctionDef, node: Node, names: Mapping[int, str]
) -> list[tuple[Node, str]]:
    """Return the replacements that give variables other texts; `names` is by the id of their declaration."""
    flow = flow_of(unit, function)
    found = []
    for entry in walk(node):
        declared = flow.resolve(entry) if entry.type == "identifier" else None
        if declared is not None and id(declared) in names:
            found.append((entry, names[id(declared)]))
    return found


def one_line(text: str) -> str:
    """Return a text on one line with single spaces; it must hold no `//` comment."""
    return " ".join(text.split())


def shifted(text: str, by: str) -> str:
    """Return a text of several lines with all but the first moved right."""
    lines = text.split("\n")
    return "\n".join([lines[0], *(f"{by}{line}" if line.strip() else line for line in lines[1:])])


def clean_text(unit: SourceUnit, node: Node, replacements: Iterable[Replacement] = ()) -> str:
    """Return an expression on one line, comments left out and parts replaced."""
    comments = [(entry, " ") for entry in walk(node) if entry.type == "comment"]
    return one_line(replaced_text(unit, node, [*replacements, *comments]))
