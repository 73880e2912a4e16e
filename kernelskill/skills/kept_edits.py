"""Let a local variable stand for an element: its declaration, its uses, and the stores that stay."""

from __future__ import annotations

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.kept_elements import KeptElement, lvalue_of
from kernelskill.skills.transformation import Rewrite, SkillContext
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import find_loops
from kernelskill.source.syntax import Node, Span, named
from kernelskill.source.unit import SourceUnit


def keep_element(unit: SourceUnit, kernel: KernelDef, element: KeptElement, context: SkillContext) -> Rewrite:
    """Return the edits that keep an element in a variable; every store still happens where it did."""
    edits = EditSet(unit)
    access = element.uses[0].access
    name = fresh_name(unit, context, f"{access.base}_value")
    place = place_before(unit, kernel, element.first)
    value = _first_store(element)
    if value is not None:
        # `y[i] = e;` becomes `float y_value = e; y[i] = y_value;`
        line = f"{access.element_type} {name} = {unit.text_of(value)};"
        edits.insert_line_before(place, line)
        edits.replace(value, name)
    else:
        const = "" if element.stores else "const "
        edits.insert_line_before(place, f"{const}{access.element_type} {name} = {element.text};")
    for use in element.uses[value is not None :]:
        _replace(unit, edits, use.access, name)
    return Rewrite(edits=edits.edits, assumptions=element.assumptions)


def place_before(unit: SourceUnit, kernel: KernelDef, statement: Node) -> Node | Span:
    """Return where to insert before a statement: above the pragma of a loop."""
    for loop in find_loops(unit, kernel):
        if loop.node == statement and loop.pragma_span is not None:
            return loop.pragma_span
    return statement


def _first_store(element: KeptElement) -> Node | None:
    """Return the value that the first statement stores to the whole element, without reading it."""
    access = element.uses[0].access
    inside = [
        use
        for use in element.uses
        if element.first.start_byte <= use.access.span.start < element.first.end_byte
    ]
    inner = named(element.first) if element.first.type == "expression_statement" else []
    if len(inside) != 1 or access.mode is not AccessMode.WRITE or access.member or len(inner) != 1:
        return None
    left, right = inner[0].child_by_field_name("left"), inner[0].child_by_field_name("right")
    return right if left == lvalue_of(access) else None


def _replace(unit: SourceUnit, edits: EditSet, access: Access, name: str) -> None:
    change = lvalue_of(access).parent
    if not access.mode.writes or change is None:
        edits.replace(access.node, name)
        return
    lvalue = lvalue_of(access)
    text = unit.text_of(lvalue)
    before = unit.text_of(Span(lvalue.start_byte, access.node.start_byte))
    kept = before + name + unit.text_of(Span(access.node.end_byte, lvalue.end_byte))
    if change.type == "update_expression":
        # As a statement of its own `y[i]++` is `++y[i]`.
        edits.replace(change, f"{text} = {unit.operator(change)}{kept}")
        return
    edits.insert_before(change, f"{text} = (")
    edits.replace(lvalue, kept)
    edits.insert_after(change, ")")
