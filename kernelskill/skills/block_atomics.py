"""Atomics of all threads to one element: combined in the block, then one atomic a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.skills.atomic_updates import (
    AtomicUpdate,
    converted_value,
    find_updates,
    is_once_a_block,
    refuse_moving_address,
    refuse_observers,
)
from kernelskill.skills.block_threads import BlockThreads, read_block_threads
from kernelskill.skills.combining import Combining, atomic_of, block_function
from kernelskill.skills.common_end import CommonEnd, append_statements, read_common_end, write_common_end
from kernelskill.skills.coverage import Cover
from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.element_loop import bound_text, read_elements, write_element_loop
from kernelskill.skills.elementwise import divide_grids
from kernelskill.skills.global_index import Guard
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.transformation import Rewrite, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, named
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class Elements:
    """What it takes to give a thread several elements."""

    guard: Guard
    covers: tuple[Cover, ...]


@dataclass(frozen=True)
class BlockAtomics:
    """The atomics of a kernel that can be combined in the block."""

    kernel: KernelDef
    updates: tuple[AtomicUpdate, ...]
    threads: BlockThreads
    entries: tuple[KernelLaunch, ...]
    end: CommonEnd | None
    """None where early returns keep threads from reaching the end together."""
    elements: Elements | None
    assumptions: tuple[str, ...]
    reason: str
    """Why there is no common end, where there is none."""


def read_block_atomics(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> BlockAtomics:
    """Return the atomics that every thread does on the same element.

    Raises:
        SkillRefused: There are none, or they can't be done at the end of the kernel.
    """
    every = find_updates(unit, kernel, context)
    entries = launches_of(unit, kernel, context)
    threads = read_block_threads(entries)
    end, reason = common_end_of(unit, kernel)
    chosen, refusal = _uniform_updates(unit, kernel, every, end)
    if not chosen:
        raise SkillRefused(refusal)
    elements = elements_of(unit, kernel, context)
    if end is None and elements is None:
        raise SkillRefused(reason)
    return BlockAtomics(
        kernel=kernel,
        updates=tuple(chosen),
        threads=threads,
        entries=tuple(entries),
        end=end,
        elements=elements,
        assumptions=refuse_observers(unit, kernel, chosen, context),
        reason=reason,
    )


def common_end_of(unit: SourceUnit, kernel: KernelDef) -> tuple[CommonEnd | None, str]:
    """Return how all threads can reach the end of a kernel, or None and why they can't."""
    try:
        return read_common_end(unit, kernel), ""
    except SkillRefused as refused:
        return None, refused.reason


def elements_of(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> Elements | None:
    """Return what is needed to give a thread several elements; None where that can't be done."""
    try:
        _, covers, guard = read_elements(unit, kernel, context)
    except SkillRefused:
        return None
    return Elements(guard, tuple(covers))


def _uniform_updates(
    unit: SourceUnit, kernel: KernelDef, every: Sequence[AtomicUpdate], end: CommonEnd | None
) -> tuple[list[AtomicUpdate], str]:
    assert kernel.body is not None
    before = end.returns[0].start_byte if end is not None and end.returns else kernel.body.end_byte
    found, refusal = [], ""
    for update in every:
        try:
            if not update.is_statement:
                raise SkillRefused(f"line {update.access.line} uses what {update.name} returns")
            if is_once_a_block(unit, kernel, update):
                raise SkillRefused(f"line {update.access.line} is done by one thread of many already")
            refuse_moving_address(unit, kernel, update.address, before)
        except SkillRefused as refused:
            refusal = refusal or refused.reason
            continue
        found.append(update)
    return found, refusal


@dataclass(frozen=True)
class _Total:
    name: str
    address: str
    combining: Combining
    updates: tuple[AtomicUpdate, ...]


def write_block_atomics(unit: SourceUnit, found: BlockAtomics, work: int, context: SkillContext) -> Rewrite:
    """Write the variables, the end of the kernel and the launches.

    Args:
        unit: The file of the kernel.
        found: What to write.
        work: Elements of a thread; 1 leaves the launches as they are.
        context: For names that are still free.
    """
    sets = edit_sets(found.entries)
    edits = sets.setdefault(unit.path, EditSet(unit))
    totals = _totals(unit, found, context)
    functions = _write_functions(unit, edits, found, totals, context)
    assert found.kernel.body is not None
    first = named(found.kernel.body)[0]
    for total in totals:
        edits.insert_line_before(first, f"{total.combining.kind} {total.name} = {total.combining.neutral};")
        for update in total.updates:
            value = converted_value(unit, found.kernel, update, context)
            edits.replace(_statement(update), total.combining.update(total.name, value))
    end = found.end
    if work > 1 and found.elements is not None:
        write_grid_loop(unit, edits, found.kernel, found.elements, context)
        divide_grids(sets, list(found.entries), list(found.elements.covers), work)
        end = CommonEnd((), named(found.kernel.body)[-1])
    elif end is not None:
        write_common_end(unit, edits, found.kernel, end)
    else:
        raise SkillRefused(found.reason)
    append_statements(unit, edits, end, _end_lines(found, totals, functions, unit, context))
    made = tuple(edit for one in sets.values() for edit in one.edits)
    return Rewrite(edits=made, assumptions=found.assumptions)


def _statement(update: AtomicUpdate) -> Node:
    assert update.call.parent is not None
    return update.call.parent


def _totals(unit: SourceUnit, found: BlockAtomics, context: SkillContext) -> list[_Total]:
    groups: dict[tuple[str, Combining], list[AtomicUpdate]] = {}
    for update in found.updates:
        address = " ".join(unit.text_of(update.address).split())
        groups.setdefault((address, update.combining), []).append(update)
    totals: list[_Total] = []
    for (address, combining), updates in groups.items():
        wanted = f"{updates[0].access.base}_{combining.name}"
        name = fresh_name(unit, context, wanted, [total.name for total in totals])
        totals.append(_Total(name, address, combining, tuple(updates)))
    return totals


def _write_functions(
    unit: SourceUnit, edits: EditSet, found: BlockAtomics, totals: list[_Total], context: SkillContext
) -> dict[Combining, str]:
    """Put the functions before the kernel that the file does not have there yet."""
    taken = [total.name for total in totals]
    names: dict[Combining, str] = {}
    before = unit.data[: found.kernel.span.start].decode().replace("\r\n", "\n")
    for combining in dict.fromkeys(total.combining for total in totals):
        wanted = f"block_{combining.name}"
        if block_function(wanted, combining) in before:
            names[combining] = wanted
            continue
        names[combining] = fresh_name(unit, context, wanted, taken)
        taken.append(names[combining])
        edits.insert_before(
            place_before(unit, found.kernel), block_function(names[combining], combining) + "\n"
        )
    return names


def write_grid_loop(
    unit: SourceUnit, edits: EditSet, kernel: KernelDef, elements: Elements, context: SkillContext
) -> None:
    """Let a thread take elements in the step of the grid."""
    item = fresh_name(unit, context, "item")
    start, step = "(long long)blockIdx.x * blockDim.x + threadIdx.x", "(long long)gridDim.x * blockDim.x"
    bound = bound_text(unit, elements.guard)
    head = f"for (long long {item} = {start}; {item} < {bound}; {item} += {step}) {{"
    write_element_loop(unit, edits, kernel, elements.guard, [head], item)


def _end_lines(
    found: BlockAtomics,
    totals: list[_Total],
    functions: dict[Combining, str],
    unit: SourceUnit,
    context: SkillContext,
) -> list[str]:
    """Return the statements that combine the threads' values and update memory."""
    lines: list[str] = []
    thread = found.threads.thread
    if thread != "threadIdx.x":
        lines.append(f"const unsigned {(name := fresh_name(unit, context, 'thread'))} = {thread};")
        thread = name
    used: list[str] = []
    for total in totals:
        function = functions[total.combining]
        if function in used:
            lines.append("__syncthreads();")
        used.append(function)
        lines.append(f"{total.name} = {function}({total.name}, {thread}, {found.threads.threads});")
        lines.append(f"if ({thread} == 0 && {total.name} != {total.combining.neutral})")
        lines.append(f"    {atomic_of(total.combining)}({total.address}, {total.name});")
    return lines
