"""Carry products, quotients and remainders of a loop's counter from turn to turn."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.carried_indices import find_carried, write_carried
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every product and division of a counter."""
    refusals: list[str] = []
    found = []
    for carried in find_carried(unit, kernel, context, refusals):
        loop = carried.loop
        reason = f"line {loop.line}: {loop.variable} {carried.operator} {carried.other} changes by one amount a turn"
        found.append(Site(key=f"{kernel.name}/{carried.key}", kernel=kernel.name, reason=reason))
    if not found:
        nothing = "no loop multiplies or divides its counter by a variable that it leaves alone"
        raise SkillRefused(refusals[0] if refusals else nothing)
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Carry one of them."""
    kernel = unit.kernel(site.kernel)
    for carried in find_carried(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and f"{kernel.name}/{carried.key}" == site.key:
            edits = EditSet(unit)
            write_carried(unit, carried, context, edits)
            return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")
