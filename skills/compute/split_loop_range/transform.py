"""Split a loop where a test of its counter changes."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.task import Promise
from kernelskill.skills.split_ranges import SplitLoop, find_splits, write_split
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every condition that changes at a value of the counter."""
    refusals: list[str] = []
    found = []
    for split in find_splits(unit, kernel, context, refusals):
        loop = split.loop
        reason = f"line {loop.line}: ({split.condition}) changes at one or two values of {loop.variable}"
        found.append(Site(key=_key(kernel, split), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(
            refusals[0] if refusals else "no loop tests in every turn whether its counter is in a range"
        )
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the loop once for each part of its range."""
    kernel = unit.kernel(site.kernel)
    for split in find_splits(unit, kernel, context, []) if kernel is not None else ():
        if kernel is None or _key(kernel, split) != site.key:
            continue
        edits = EditSet(unit)
        narrow = context.promises(Promise.INT32_SIZES)
        write_split(unit, split, context, edits, is_wide=not narrow)
        note = ("every sum of sizes and indices fits 32 bits (promised by int32_sizes)",) if narrow else ()
        return Rewrite(edits=edits.edits, assumptions=note)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, split: SplitLoop) -> str:
    return f"{kernel.name}/{split.loop.key}/{''.join(split.condition.split())}"
