"""Move the scalars of one record as vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.kept_elements import ElementFinder, lvalue_of, refuse_strange
from kernelskill.skills.kernel_launches import launches_of, template_bindings
from kernelskill.skills.record_vectors import RecordReader, RecordVector
from kernelskill.skills.straight_line import blocks_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import find_accesses
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import enclosing_loops, find_loops
from kernelskill.source.syntax import Node
from kernelskill.source.unit import SourceUnit

_LANES = "xyzw"
_LINE = 90


@dataclass(frozen=True)
class _Plan:
    key: str
    root: ParameterDef
    block: Node = field(repr=False)
    vectors: tuple[RecordVector, ...]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every array of records with the block that accesses their scalars."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        line = unit.line_of(plan.vectors[0].first)
        names = ", ".join(vector.fields[0] for vector in plan.vectors)
        reason = f"line {line}: {names} and the scalars beside are accessed one by one"
        found.append(Site(key=plan.key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it accesses no neighbouring scalars of one record")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Load vectors before the first access, and store those that change after the last."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if plan.key == site.key:
            return _write(unit, plan, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    refuse_strange(unit, kernel)
    finder = ElementFinder(unit, kernel, context, find_accesses(unit, kernel), refusals)
    try:
        entries = launches_of(unit, kernel, context)
    except SkillRefused:
        entries = []  # then no record is known to belong to one thread
    reader = RecordReader(unit, kernel, context, finder, entries, template_bindings(unit, kernel, context))
    found: list[_Plan] = []
    covered: set[int] = set()
    keys: dict[str, int] = {}
    for block in blocks_of(kernel.body) if kernel.body is not None else ():
        loops = enclosing_loops(find_loops(unit, kernel), block)
        for root in kernel.parameters:
            vectors = reader.vectors(block, root, refusals) if root.pointer_depth == 1 else []
            kept = [vector for vector in vectors if not _ids(vector) & covered]
            if not kept:
                continue
            covered |= set().union(*map(_ids, kept))
            key = f"{kernel.name}/{loops[-1].key if loops else 'body'}/{root.name}"
            keys[key] = keys.get(key, 0) + 1
            key = key if keys[key] == 1 else f"{key}#{keys[key]}"
            found.append(_Plan(key, root, block, tuple(kept)))
    return found


def _ids(vector: RecordVector) -> set[int]:
    return {access.node.id for lane in vector.lanes for access in lane.accesses}


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    edits = EditSet(unit)
    taken: list[str] = []
    for vector in plan.vectors:
        name = fresh_name(unit, context, f"{vector.base}_{vector.width}", taken)
        taken.append(name)
        _write_vector(unit, edits, vector, name)
    assumptions = tuple(dict.fromkeys(text for vector in plan.vectors for text in vector.assumptions))
    note = "records that are not aligned to their vectors are moved one scalar at a time"
    return Rewrite(edits=edits.edits, assumptions=assumptions, notes=(note,))


def _write_vector(unit: SourceUnit, edits: EditSet, vector: RecordVector, name: str) -> None:
    aligned = f"(size_t)&{vector.fields[0]} % {vector.bytes} == 0"
    indent = unit.indent_of(vector.first)
    const = "const " if vector.is_const else ""
    if vector.is_loaded:
        load = f"*reinterpret_cast<{const}{vector.vector}*>(&{vector.fields[0]})"
        fixed = "" if vector.is_stored else "const "
        lines = [
            f"{fixed}{vector.vector} {name} = {aligned}",
            f"    ? {load}",
            *_scalar_lines(f"    : make_{vector.vector}(", vector.fields),
        ]
    else:
        lines = [f"{vector.vector} {name};"]
    edits.insert_line_before(vector.first, f"\n{indent}".join(lines))
    for lane in vector.lanes:
        field_name = _LANES[lane.position % vector.width]
        for access in lane.accesses:
            edits.replace(lvalue_of(access), f"{name}.{field_name}")
    if vector.is_stored:
        store = f"*reinterpret_cast<{vector.vector}*>(&{vector.fields[0]}) = {name};"
        scalars = [f"    {text} = {name}.{_LANES[i]};" for i, text in enumerate(vector.fields)]
        lines = [f"if ({aligned}) {{", f"    {store}", "} else {", *scalars, "}"]
        edits.insert_after(vector.last, "".join(f"\n{indent}{line}" for line in lines))


def _scalar_lines(head: str, scalars: tuple[str, ...]) -> list[str]:
    """Return a call with all scalars on its line, or each on one of its own where that is too long."""
    joined = f"{head}{', '.join(scalars)});"
    if len(joined) <= _LINE:
        return [joined]
    return [head, *(f"          {text}{',' if text is not scalars[-1] else ');'}" for text in scalars)]
