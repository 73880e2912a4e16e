"""Put `#pragma unroll` before an innermost loop."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import LoopKind, find_loop, find_loops
from kernelskill.source.unit import SourceUnit

_SHORT = 8
"""The compiler unrolls loops of so few turns fully."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every innermost loop that is not certain to be unrolled anyway."""
    found = []
    for loop in find_loops(unit, kernel):
        short = loop.trip_count is not None and loop.trip_count <= _SHORT
        if loop.is_innermost and loop.kind in (LoopKind.FOR, LoopKind.WHILE) and not short:
            reason = f"line {loop.line}: an innermost loop over {loop.variable or 'a condition'}"
            found.append(Site(key=f"{kernel.name}/{loop.key}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused("it has no innermost loop of unknown or long trip count")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Insert the pragma on a line of its own, or replace the one that is there."""
    kernel = unit.kernel(site.kernel)
    loop = find_loop(unit, kernel, site.key.split("/", 1)[1]) if kernel is not None else None
    if loop is None:
        raise SkillRefused(f"site {site.key!r} is gone")
    line = f"#pragma unroll {parameters['factor']}"
    edits = EditSet(unit)
    if loop.pragma_span is None:
        edits.insert_line_before(loop.node, line)
    elif unit.text_of(loop.pragma_span).split() == line.split():
        raise SkillRefused("the loop has this factor already")
    else:
        edits.replace(loop.pragma_span, line)
    return Rewrite(edits=edits.edits)
