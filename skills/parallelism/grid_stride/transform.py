"""Turn the guard of a one-dimensional kernel into a grid-stride loop and launch fewer blocks."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.coverage import Cover, read_cover
from kernelskill.skills.device_code import fresh_name, words_in
from kernelskill.skills.elementwise import (
    divide_grids,
    read_elementwise,
    refuse_carried_values,
    returns_in_loops,
)
from kernelskill.skills.global_index import Guard
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.loop_edits import indent_lines
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, Span, named, walk
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one element a thread."""
    _, _, guard = _read(unit, kernel, context)
    reason = f"each thread takes one element, {guard.variable.name} below {unit.text_of(guard.bound)}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the loop and divide the grids."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    entries, covers, guard = _read(unit, kernel, context)
    sets = edit_sets(entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    _write_loop(unit, own, kernel, guard, context)
    divide_grids(sets, entries, covers, int(parameters["work"]))
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))


def _read(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext
) -> tuple[list[KernelLaunch], list[Cover], Guard]:
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


def _write_loop(
    unit: SourceUnit,
    edits: EditSet,
    kernel: KernelDef,
    guard: Guard,
    context: SkillContext,
) -> None:
    """Open the loop before the declaration of the index; everything after it is one turn."""
    variable, index = guard.variable, guard.index
    item = fresh_name(unit, context, "item")
    declaration = variable.declaration
    assert kernel.body is not None
    indent = unit.indent_of(declaration)
    start = "(long long)blockIdx.x * blockDim.x + threadIdx.x"
    bound = unit.text_of(guard.bound)
    bound = bound if guard.bound.type in ("identifier", "number_literal") else f"({bound})"
    step = "(long long)gridDim.x * blockDim.x"
    edits.insert_line_before(
        declaration, f"for (long long {item} = {start}; {item} < {bound}; {item} += {step}) {{"
    )
    last = named(kernel.body)[-1]
    edits.replace(index.node, f"({variable.base_type}){item}")
    indent_lines(unit, edits, Span(declaration.start_byte, last.end_byte))
    _continue_for_return(unit, edits, named(kernel.body), declaration)
    edits.insert_after(_end_of_line(unit, last, kernel), f"\n{indent}}}")


def _end_of_line(unit: SourceUnit, last: Node, kernel: KernelDef) -> Span:
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
