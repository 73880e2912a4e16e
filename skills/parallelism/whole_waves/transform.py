"""Launch a grid-stride kernel with as many blocks as fill the device a whole number of times."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.launch_edits import components_of, edit_sets
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.loop_effects import refuse_hidden_accesses
from kernelskill.skills.strided_kernel import read_strided
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode, find_accesses
from kernelskill.source.affine import index_reader
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop
from kernelskill.source.syntax import Node
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel that any grid computes."""
    for entry in _read(unit, kernel, context):
        _statement(entry)
    _assumptions(unit, kernel, context)
    reason = "its loop steps by the grid, so that any number of blocks computes the same"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Ask the runtime for the device's size before every launch, and launch accordingly."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    entries = _read(unit, kernel, context)
    assumptions = _assumptions(unit, kernel, context)
    sets = edit_sets(entries)
    names: list[str] = []
    for entry in entries:
        own = [fresh_name(unit, context, wanted, names) for wanted in _NAMES]
        names += own
        _write(sets[entry.unit.path], entry, own, int(parameters["waves"]))
    made = tuple(edit for edits in sets.values() for edit in edits.edits)
    return Rewrite(edits=made, assumptions=assumptions)


_NAMES = ("device", "multiprocessors", "resident", "wave", "blocks")


def _read(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[KernelLaunch]:
    """Return the launches.

    Raises:
        SkillRefused: The kernel is not one grid-stride loop, or a launch has more than one dimension.
    """
    read_strided(unit, kernel, context)
    entries = launches_of(unit, kernel, context)
    for entry in entries:
        line = entry.launch.line
        if entry.launch.block.values[1:] != (1, 1) or entry.launch.grid.values[1:] != (1, 1):
            raise SkillRefused(f"line {line}: the launch is not one-dimensional")
        grid = components_of(entry.launch.grid, line)[0]
        if "cudaOccupancy" in entry.unit.text_of(
            entry.function.span if entry.function else entry.launch.span
        ):
            raise SkillRefused(f"line {line}: the grid {grid} comes from the occupancy already")
    return entries


def _assumptions(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> tuple[str, ...]:
    """Return what must be promised so that no turn of the loop depends on another.

    Raises:
        SkillRefused: One may: turns that one thread did in order would be done by two.
    """
    loop = read_strided(unit, kernel, context)
    refuse_hidden_accesses(unit, kernel, loop.node, context)
    accesses = [a for a in find_accesses(unit, kernel) if loop.span.contains(a.span) and a.is_global]
    found: list[str] = []
    for write in accesses:
        for other in accesses if write.mode.writes else ():
            if other.root is not None and other.root is write.root:
                same = write.index is not None and write.index == other.index
                atomics = (write.mode, other.mode) == (AccessMode.ATOMIC, AccessMode.ATOMIC)
                moves = write.index is not None and _moves(unit, kernel, loop, write)
                if atomics or (same and moves):
                    continue
            elif other.root is not None:
                answer = separate(unit, kernel, write, other, context)
                if answer.disjoint:
                    found += [answer.assumption] if answer.assumption else []
                    continue
            text = unit.text_of(other.node)
            raise SkillRefused(f"line {other.line}: {text} may be what another turn of the loop stores")
    return tuple(dict.fromkeys(found))


def _moves(unit: SourceUnit, kernel: KernelDef, loop: Loop, write: Access) -> bool:
    """Whether every turn of the loop stores to another element."""
    atom = index_reader(unit, kernel).loop_atom(loop)
    factor = write.index.coefficient("threadIdx.x") if write.index is not None else None
    own = write.index.coefficient(atom) if write.index is not None else None
    return factor is not None and factor.value in (1, -1) and own is not None and not own.is_zero


def _statement(entry: KernelLaunch) -> Node:
    """Return the statement of a launch.

    Raises:
        SkillRefused: Nothing can be put before it.
    """
    statement = entry.launch.node.parent
    if statement is None or statement.type != "expression_statement" or not is_statement_of_block(statement):
        raise SkillRefused(f"line {entry.launch.line}: the launch is part of another statement")
    return statement


def _write(edits: EditSet, entry: KernelLaunch, names: list[str], waves: int) -> None:
    device, multiprocessors, resident, wave, blocks = names
    launch, unit = entry.launch, entry.unit
    grid = components_of(launch.grid, launch.line)[0]
    block = components_of(launch.block, launch.line)[0]
    shared = launch.shared.text if launch.shared is not None else "0"
    name = unit.text_of(launch.name_span)
    product = f"{multiprocessors} * {resident}" + (f" * {waves}" if waves > 1 else "")
    lines = [
        f"int {device} = 0, {multiprocessors} = 0, {resident} = 0;",
        f"cudaGetDevice(&{device});",
        f"cudaDeviceGetAttribute(&{multiprocessors}, cudaDevAttrMultiProcessorCount, {device});",
        f"cudaOccupancyMaxActiveBlocksPerMultiprocessor(&{resident}, {name}, {block}, {shared});",
        f"const long long {wave} = (long long){product};",
    ]
    if launch.grid.values[0] is None:
        lines.append(f"const long long {blocks} = {grid};")
        edits.replace(launch.grid.span, f"(unsigned)({blocks} < {wave} ? {blocks} : {wave})")
    else:
        edits.replace(launch.grid.span, f"(unsigned){wave}")
    indent = unit.indent_of(_statement(entry))
    edits.insert_line_before(_statement(entry), f"\n{indent}".join(lines))
