"""Replace tests that hold for one range of a loop's counter by bounds of the loop."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.task import Promise
from kernelskill.skills.clipped_bounds import find_clipped, write_clipped
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every loop whose bounds can take over a test."""
    refusals: list[str] = []
    found = []
    for clipped in find_clipped(unit, kernel, context, refusals):
        loop = clipped.loop
        reason = f"line {loop.line}: turns outside one range of {loop.variable} do nothing"
        found.append(Site(key=f"{kernel.name}/{loop.key}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(
            refusals[0] if refusals else "no loop tests in every turn whether its counter is in a range"
        )
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Compute the range before the loop."""
    kernel = unit.kernel(site.kernel)
    for clipped in find_clipped(unit, kernel, context, []) if kernel is not None else ():
        if kernel is None or f"{kernel.name}/{clipped.loop.key}" != site.key:
            continue
        edits = EditSet(unit)
        narrow = context.promises(Promise.INT32_SIZES)
        write_clipped(unit, clipped, context, edits, is_wide=not narrow)
        note = ("every sum of sizes and indices fits 32 bits (promised by int32_sizes)",) if narrow else ()
        return Rewrite(edits=edits.edits, assumptions=note)
    raise SkillRefused(f"site {site.key!r} is gone")
