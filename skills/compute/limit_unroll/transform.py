"""Give loops that are unrolled fully or far a smaller factor."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import find_accesses
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.influence import influences
from kernelskill.source.loops import Loop, LoopKind, find_loop, find_loops
from kernelskill.source.pointers import Space
from kernelskill.source.scopes import flow_of
from kernelskill.source.unit import SourceUnit

_LONG = 8
"""The compiler unrolls shorter loops fully, and well."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every innermost loop that is unrolled far."""
    refusals: list[str] = []
    found = []
    for loop in find_loops(unit, kernel):
        if not loop.is_innermost or loop.kind not in (LoopKind.FOR, LoopKind.WHILE) or not _is_unrolled(loop):
            continue
        array = _local_array(unit, kernel, loop)
        if array:
            refusals.append(
                f"the loop on line {loop.line} indexes {array!r}, which would move to local memory"
            )
            continue
        how = f"`{loop.pragma}`" if loop.pragma else f"{loop.trip_count} turns known to the compiler"
        reason = f"line {loop.line}: {how}"
        found.append(Site(key=f"{kernel.name}/{loop.key}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no innermost loop is unrolled far")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the smaller factor."""
    kernel = unit.kernel(site.kernel)
    loop = find_loop(unit, kernel, site.key.split("/", 1)[1]) if kernel is not None else None
    if loop is None or not _is_unrolled(loop):
        raise SkillRefused(f"site {site.key!r} is gone")
    factor = int(parameters["factor"])
    own = _factor(loop)
    if own is not None and own <= factor:
        raise SkillRefused("the loop is unrolled no further than that")
    edits = EditSet(unit)
    line = f"#pragma unroll {factor}"
    if loop.pragma_span is None:
        edits.insert_line_before(loop.node, line)
    else:
        edits.replace(loop.pragma_span, line)
    return Rewrite(edits=edits.edits)


def _factor(loop: Loop) -> int | None:
    """Return the factor that a pragma gives; None where it gives none, or no plain number."""
    words = loop.pragma.replace("(", " ").replace(")", " ").split()
    return int(words[-1]) if words and words[-1].isdigit() else None


def _is_unrolled(loop: Loop) -> bool:
    own = _factor(loop)
    if loop.pragma:
        return own is None or own > 1
    return loop.trip_count is not None and loop.trip_count >= _LONG


def _local_array(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> str:
    """Return a local array that the loop indexes by its counter; empty without."""
    flow = flow_of(unit, kernel)
    for access in find_accesses(unit, kernel):
        root = access.root
        is_array = isinstance(root, VariableDef) and bool(root.dimensions) and access.space is Space.LOCAL
        if root is None or not is_array or not loop.span.contains(access.span):
            continue
        if any(loop.variable in influences(flow, index, unit.syntax, index) for index in access.indices):
            return root.name
    return ""
