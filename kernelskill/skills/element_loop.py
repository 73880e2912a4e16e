"""Kernels of one element a thread, written as a loop over several elements a thread."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.skills.coverage import Cover, read_cover
from kernelskill.skills.device_code import words_in
from kernelskill.skills.elementwise import read_elementwise, refuse_carried_values, returns_in_loops
from kernelskill.skills.global_index import Guard
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.loop_edits import indent_lines
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, Span, named, walk
from kernelskill.source.unit import SourceUnit


def read_elements(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext
) -> tuple[list[KernelLaunch], list[Cover], Guard]:
    """Return the launches of a kernel, how they cover its elements, and the test of its index.

    Raises:
        SkillRefused: A thread can't take several elements one after the other.
    """
    entries = launches_of(unit, kernel, context)
    guarded, guard = read_elementwise(unit, kernel, entries, context)
    if returns_in_loops(unit, kernel, guarded.work):
        raise SkillRefused("it returns from inside a loop")
    first = guarded.prologue[0] if guarded.prologue else None
    if first is None or guard.variable.declaration not in guarded.prologue:
        raise SkillRefused("its global index is not declared at the top of the kernel")
    before = [s for s in guarded.prologue if s.start_byte < guard.variable.declaration.start_byte]
    if any(_mentions_return(statement) for statement in before):
        raise SkillRefused("it may return before it computes its global index")
    assert kernel.body is not None
    turn = Span(guard.variable.declaration.start_byte, named(kernel.body)[-1].end_byte)
    refuse_carried_values(unit, kernel, turn)
    return entries, [read_cover(unit, kernel, guard, entry) for entry in entries], guard


def _mentions_return(statement: Node) -> bool:
    return any(node.type == "return_statement" for node in walk(statement))


def bound_text(unit: SourceUnit, guard: Guard) -> str:
    """Return the tested size for use in a comparison."""
    bound = unit.text_of(guard.bound)
    return bound if guard.bound.type in ("identifier", "number_literal") else f"({bound})"


def write_element_loop(
    unit: SourceUnit, edits: EditSet, kernel: KernelDef, guard: Guard, header: Sequence[str], item: str
) -> None:
    """Open a loop before the declaration of the index; everything after it is one turn.

    Args:
        unit: The file.
        edits: Collects the edits.
        kernel: The kernel.
        guard: Its index and size.
        header: Lines that open the loop and declare or check `item`.
        item: Name of the 64-bit index of the turn.
    """
    declaration = guard.variable.declaration
    assert kernel.body is not None
    indent = unit.indent_of(declaration)
    edits.insert_line_before(declaration, f"\n{indent}".join(header))
    last = named(kernel.body)[-1]
    edits.replace(guard.index.node, f"({guard.variable.base_type}){item}")
    indent_lines(unit, edits, Span(declaration.start_byte, last.end_byte))
    _continue_for_return(unit, edits, named(kernel.body), declaration)
    edits.insert_after(_end_of_line(unit, last), f"\n{indent}}}")


def _end_of_line(unit: SourceUnit, last: Node) -> Span:
    """Return the end of the last statement, after a comment that stands behind it."""
    line = unit.syntax.line_span(unit.line_of(last.end_byte - 1))
    rest = unit.text_of(Span(last.end_byte, line.end)).strip()
    end = line.end if rest.startswith("//") else last.end_byte
    return Span(last.start_byte, end)


def _continue_for_return(unit: SourceUnit, edits: EditSet, statements: list[Node], declaration: Node) -> None:
    for statement in statements:
        if statement.start_byte < declaration.start_byte:
            continue
        for node in walk(statement):
            if node.type == "return_statement" and words_in(unit, node) == ["return"]:
                edits.replace(node, "continue;")
