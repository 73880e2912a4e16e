"""Copy a small table into shared memory where a kernel begins."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.kept_edits import place_before
from kernelskill.skills.kept_elements import refuse_strange
from kernelskill.skills.kernel_launches import launches_of, template_bindings
from kernelskill.skills.read_only_tables import Table, TableReader, file_arrays
from kernelskill.skills.shared_arrays import STATIC_LIMIT, refuse_dynamic, static_shared_bytes
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges, largest_block
from kernelskill.source.declarations import ParameterDef, VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import named, span_of
from kernelskill.source.unit import SourceUnit

_LARGEST = 16 * 1024


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every table that the threads of a block read."""
    refusals: list[str] = []
    found = []
    for table in _tables(unit, kernel, context, refusals):
        name = table.declared.name
        reason = f"{name}: {math.prod(table.extents)} elements that every thread reads"
        found.append(Site(key=f"{kernel.name}/table:{name}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it reads no small table")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Declare the copy, let the block fill it, wait, and read it instead."""
    kernel = unit.kernel(site.kernel)
    for table in _tables(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and site.key == f"{site.kernel}/table:{table.declared.name}":
            return _write(unit, kernel, table, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _tables(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[Table]:
    refuse_strange(unit, kernel)
    entries = launches_of(unit, kernel, context)
    ranges = ValueRanges(unit, kernel, largest_block(entries), template_bindings(unit, kernel, context))
    refuse_dynamic(entries)
    reader = TableReader(unit, kernel, ranges, context)
    used = static_shared_bytes(unit, kernel, ranges, context)
    body = unit.text_of(kernel.body) if kernel.body is not None else ""
    found: list[Table] = []
    pointers = [
        parameter
        for parameter in kernel.parameters
        if parameter.pointer_depth == 1 and parameter.is_const and reader.is_shared_by_threads(parameter)
    ]
    arrays = [variable for variable in file_arrays(unit) if variable.name in body]
    declared: list[VariableDef | ParameterDef] = [*arrays, *pointers]
    for each in declared:
        try:
            table = reader.of_file(each) if isinstance(each, VariableDef) else reader.of_parameter(each)
            if table.bytes > _LARGEST or used + table.bytes > STATIC_LIMIT:
                raise SkillRefused(f"{each.name!r} has {table.bytes} bytes, too many to copy")
            found.append(table)
        except SkillRefused as refused:
            refusals.append(refused.reason)
    return found


def _write(unit: SourceUnit, kernel: KernelDef, table: Table, context: SkillContext) -> Rewrite:
    if kernel.body is None or not named(kernel.body):
        raise SkillRefused("it has no body")
    taken: list[str] = []

    def fresh(wanted: str) -> str:
        taken.append(fresh_name(unit, context, wanted, taken))
        return taken[-1]

    name = table.declared.name
    copy, entry = fresh(f"{name}_table"), fresh("entry")
    size = math.prod(table.extents)
    thread, threads = _threads(unit, kernel, context)
    place = (
        f"[{entry}]"
        if len(table.extents) == 1
        else f"[{entry} / {table.extents[1]}][{entry} % {table.extents[1]}]"
    )
    loop = f"for (unsigned {entry} = {thread}; {entry} < {size}; {entry} += {threads})"
    deep = "    " if table.condition else ""
    extents = "".join(f"[{extent}]" for extent in table.extents)
    lines = [
        "// All threads fill the copy before any of them leaves.",
        f"__shared__ {table.element} {copy}{extents};",
        *([f"if ({table.condition})"] if table.condition else []),
        f"{deep}{loop}",
        f"{deep}    {copy}{place} = {name}{place};",
        "__syncthreads();",
    ]
    first = named(kernel.body)[0]
    edits = EditSet(unit)
    edits.insert_line_before(place_before(unit, kernel, first), f"\n{unit.indent_of(first)}".join(lines))
    for access in table.accesses:
        base = access.node
        while base.type == "subscript_expression":
            base = base.child_by_field_name("argument") or base.children[0]
        edits.replace(span_of(base), copy)
    return Rewrite(edits=edits.edits, assumptions=table.assumptions)


def _threads(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> tuple[str, str]:
    """Return the number of a thread in its block, and how many there are."""
    entries = launches_of(unit, kernel, context)
    if all(entry.launch.block.values[1:] == (1, 1) for entry in entries):
        return "threadIdx.x", "blockDim.x"
    if all(entry.launch.block.values[2] == 1 for entry in entries):
        return "threadIdx.y * blockDim.x + threadIdx.x", "blockDim.x * blockDim.y"
    row = "threadIdx.z * blockDim.y + threadIdx.y"
    return f"({row}) * blockDim.x + threadIdx.x", "blockDim.x * blockDim.y * blockDim.z"
