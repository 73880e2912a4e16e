"""Make one loop of two that run over the same range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.adjacent_loops import find_pairs
from kernelskill.skills.loop_fusion import Fusion, read_fusion, write_fusion
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every two neighbouring loops that may become one."""
    refusals: list[str] = []
    found = []
    for fusion in _fusions(unit, kernel, context, refusals):
        reason = f"{fusion.pair.lines} run over the same range"
        found.append(Site(key=f"{kernel.name}/{fusion.pair.key}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no two loops follow each other in one block")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Move the first body into the second loop."""
    kernel = unit.kernel(site.kernel)
    for fusion in _fusions(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and f"{kernel.name}/{fusion.pair.key}" == site.key:
            edits = EditSet(unit)
            write_fusion(unit, kernel, fusion, edits)
            return Rewrite(edits=edits.edits, assumptions=fusion.assumptions)
    raise SkillRefused(f"site {site.key!r} is gone")


def _fusions(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[Fusion]:
    for pair in find_pairs(unit, kernel):
        try:
            yield read_fusion(unit, kernel, pair, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
