"""A long reduction a thread, split over blocks: partial results in a temporary, combined by the old kernel."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name, place_before, units_of
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.launch_edits import components_of, edit_sets
from kernelskill.skills.loop_edits import is_statement_of_block, lead_of
from kernelskill.skills.row_accumulators import Accumulator, starts_neutral
from kernelskill.skills.row_loops import SharedLoop
from kernelskill.skills.row_program import RowProgram, read_row_program
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet, apply_to_text
from kernelskill.source.syntax import Node, Span, named
from kernelskill.source.unit import SourceUnit

_LONG = 64


@dataclass(frozen=True, eq=False)
class SplitLoop:
    """The loop of a kernel that is to be split."""

    program: RowProgram
    shared: SharedLoop
    rest: tuple[Node, ...]
    """The statements after the loop."""

    @property
    def kind(self) -> str:
        return self.shared.accumulators[0].kind


@dataclass(frozen=True)
class _Names:
    kernel: str
    partial: str
    parts: str
    part: str


def read_split_loop(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> SplitLoop:
    """Return the first loop of a kernel of one result a thread.

    Raises:
        SkillRefused: It is no reduction whose turns blocks could share.
    """
    program = read_row_program(unit, kernel, context)
    shared = program.loops[0]
    if program.guard is None or shared.scan is not None:
        raise SkillRefused("its loop is no reduction of one index a thread")
    if any(access in unit.text_of(kernel.span) for access in ("blockIdx.y", "gridDim.y", "blockIdx.z")):
        raise SkillRefused("its grid has a second dimension")
    for entry in program.entries:
        if entry.launch.grid.values[1:] != (1, 1):
            raise SkillRefused(f"line {entry.launch.line} launches a grid of more than one dimension")
        launch_statement(entry)
    same = [f for other in units_of(unit, context) for f in other.all_functions if f.name == kernel.name]
    if len(same) > 1 or not kernel.parameters:
        raise SkillRefused("the kernel is declared more than once")
    if shared.loop.trip_count is not None and shared.loop.trip_count < _LONG:
        raise SkillRefused(f"its loop has only {shared.loop.trip_count} turns")
    if not shared.accumulators or shared.overlaps or len({one.kind for one in shared.accumulators}) > 1:
        raise SkillRefused("its loop stores something, or accumulates in several types")
    siblings = named(shared.loop.node.parent) if shared.loop.node.parent is not None else []
    if shared.loop.node != program.first or shared.loop.node not in siblings:
        raise SkillRefused("its loop stands inside another statement")
    if any(store.start_byte < shared.loop.span.start for store in program.stores):
        raise SkillRefused("it stores to memory before its loop")
    position = siblings.index(shared.loop.node)
    return SplitLoop(program, shared, tuple(siblings[position + 1 :]))


def launch_statement(entry: KernelLaunch) -> Node:
    """Return the statement of a launch.

    Raises:
        SkillRefused: Nothing can be put before or after it.
    """
    statement = entry.launch.node.parent
    if statement is None or statement.type != "expression_statement" or not is_statement_of_block(statement):
        raise SkillRefused(f"line {entry.launch.line}: the launch is part of another statement")
    return statement


def write_split_loop(unit: SourceUnit, found: SplitLoop, parts: int, context: SkillContext) -> Rewrite:
    """Write a kernel for the parts, let the old one combine them, and launch both.

    Args:
        unit: The file of the kernel.
        found: What to write.
        parts: Blocks that share a result.
        context: For names that are still free.
    """
    kernel = found.program.kernel
    taken: list[str] = []
    for wanted in (f"{kernel.name}_parts", "partial", "parts", "part"):
        taken.append(fresh_name(unit, context, wanted, taken))
    names = _Names(*taken)
    sets = edit_sets(found.program.entries)
    edits = sets.setdefault(unit.path, EditSet(unit))
    edits.insert_before(place_before(unit, kernel), _parts_kernel(unit, found, names) + "\n\n")
    _add_parameters(edits, kernel, f"const {found.kind}* {names.partial}, int {names.parts}")
    _write_combination(unit, edits, found, names)
    for entry, cover in zip(found.program.entries, found.program.covers, strict=True):
        _write_launch(sets[entry.unit.path], entry, cover.size, found, names, parts)
    made = tuple(edit for one in sets.values() for edit in one.edits)
    return Rewrite(edits=made, assumptions=found.program.assumptions)


def _add_parameters(edits: EditSet, kernel: KernelDef, text: str) -> None:
    edits.insert_after(kernel.parameters[-1].span, f", {text}")


def _element(unit: SourceUnit, found: SplitLoop, names: _Names, number: int) -> str:
    """Return the C text of a partial result."""
    guard = found.program.guard
    assert guard is not None
    bound = unit.text_of(guard.bound)
    size = bound if guard.bound.type in ("identifier", "number_literal") else f"({bound})"
    count = len(found.shared.accumulators)
    row = names.part if count == 1 else f"({names.part} * {count} + {number})"
    return f"{names.partial}[(size_t){row} * {size} + {guard.variable.name}]"


def _parts_kernel(unit: SourceUnit, found: SplitLoop, names: _Names) -> str:
    """Return the text of the kernel that computes the parts: a copy of the old one up to its loop."""
    kernel, loop = found.program.kernel, found.shared.loop
    assert loop.start is not None
    assert loop.step_statement is not None
    edits = EditSet(unit)
    edits.replace(kernel.name_span, names.kernel)
    _add_parameters(edits, kernel, f"{found.kind}* {names.partial}")
    each = abs(found.shared.step)
    sign = "+" if found.shared.step > 0 else "-"
    start = unit.text_of(loop.start)
    factor = "" if each == 1 else f"{each} * "
    start = start if loop.start.type in ("identifier", "number_literal") else f"({start})"
    edits.replace(loop.start, f"{start} {sign} {factor}{names.part}")
    edits.replace(loop.step_statement, f"{loop.variable} {sign}= {factor}(int)gridDim.y")
    indent = unit.indent_of(loop.node)
    place = loop.node if loop.pragma_span is None else loop.pragma_span
    lines = [f"const int {names.part} = blockIdx.y;", *_neutral_lines(unit, found)]
    edits.insert_line_before(place, lead_of(unit, loop.node, place) + f"\n{indent}".join(lines))
    stores = [
        f"{_element(unit, found, names, number)} = {one.name};"
        for number, one in enumerate(found.shared.accumulators)
    ]
    end = found.rest[-1].end_byte if found.rest else loop.span.end
    edits.replace(Span(loop.span.end, end), "".join(f"\n{indent}{line}" for line in stores))
    data = apply_to_text(unit.text, edits.edits).encode()
    added = len(data) - len(unit.data)
    return data[kernel.span.start : kernel.span.end + added].decode()


def _neutral_lines(unit: SourceUnit, found: SplitLoop) -> list[str]:
    """Return what clears the sums; the old kernel adds what they started with."""
    program = found.program

    def is_needed(one: Accumulator) -> bool:
        return bool(one.way.neutral) and not starts_neutral(unit, program.kernel, found.shared.loop, one)

    return [f"{one.name} = {one.way.neutral};" for one in found.shared.accumulators if is_needed(one)]


def _write_combination(unit: SourceUnit, edits: EditSet, found: SplitLoop, names: _Names) -> None:
    loop = found.shared.loop
    indent = unit.indent_of(loop.node)
    place = loop.span if loop.pragma_span is None else Span(loop.pragma_span.start, loop.span.end)
    lines = []
    for number, one in enumerate(found.shared.accumulators):
        element = _element(unit, found, names, number)
        if one.way.takes_expressions:
            lines.append(one.way.statement(one.name, element))
        else:
            other = f"{one.name}_part"
            lines += [f"const {one.kind} {other} = {element};", one.way.statement(one.name, other)]
    body = "".join(f"\n{indent}    {line}" for line in lines)
    head = f"for (int {names.part} = 0; {names.part} < {names.parts}; ++{names.part})"
    edits.replace(place, f"{lead_of(unit, loop.node, place)}{head} {{{body}\n{indent}}}")


def _write_launch(
    edits: EditSet, entry: KernelLaunch, size: str, found: SplitLoop, names: _Names, parts: int
) -> None:
    launch, unit = entry.launch, entry.unit
    statement = launch_statement(entry)
    indent = unit.indent_of(statement)
    stream = launch.stream.text if launch.stream is not None else "0"
    grid = components_of(launch.grid, launch.line)[0]
    block = unit.text_of(launch.block.span)
    more = [one.text for one in (launch.shared, launch.stream) if one is not None]
    shape = ", ".join([f"dim3({grid}, {names.parts})", block, *more])
    name = unit.text_of(launch.name_span).replace(launch.kernel, names.kernel, 1)
    arguments = ", ".join(argument.text for argument in launch.arguments)
    count = len(found.shared.accumulators)
    amount = f"sizeof({found.kind}) * {names.parts} * {f'{count} * ' if count > 1 else ''}({size})"
    lines = [
        f"constexpr int {names.parts} = {parts};",
        f"{found.kind}* {names.partial} = nullptr;",
        f"cudaMallocAsync(&{names.partial}, {amount}, {stream});",
        f"{name}<<<{shape}>>>({arguments}, {names.partial});",
    ]
    opening = "{\n" + "".join(f"{indent}    {line}\n" for line in lines) + f"{indent}    "
    edits.insert_before(statement, opening)
    edits.insert_after(launch.arguments[-1].span, f", {names.partial}, {names.parts}")
    edits.insert_after(statement, f"\n{indent}    cudaFreeAsync({names.partial}, {stream});\n{indent}}}")
