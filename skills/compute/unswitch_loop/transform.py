"""Test a condition that a loop doesn't change before the loop, and write the loop without it."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.invariant_conditions import Switch, find_switches, write_switch
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every condition that a loop leaves alone."""
    refusals: list[str] = []
    found = []
    for switch in find_switches(unit, kernel, context, refusals):
        reason = f"line {switch.loop.line}: ({switch.condition}) has one value in all turns of the loop"
        found.append(Site(key=_key(kernel, switch), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(
            refusals[0] if refusals else "no loop tests the same plain variables in every turn"
        )
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the test before the loop, and the loop once for each outcome."""
    kernel = unit.kernel(site.kernel)
    for switch in find_switches(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and _key(kernel, switch) == site.key:
            edits = EditSet(unit)
            write_switch(unit, kernel, switch, edits)
            return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, switch: Switch) -> str:
    return f"{kernel.name}/{switch.loop.key}/{''.join(switch.condition.split())}"
