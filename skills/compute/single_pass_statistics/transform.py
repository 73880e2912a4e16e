"""Take a maximum and a sum of exponentials, or a mean and a variance, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.adjacent_loops import LoopPair, find_pairs
from kernelskill.skills.online_sum import OnlineSum, read_online_sum, write_online_sum
from kernelskill.skills.running_variance import (
    RunningVariance,
    read_running_variance,
    write_running_variance,
)
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every two neighbouring loops that form such a pair of statistics."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        what = "a maximum, then exponentials" if isinstance(plan, OnlineSum) else "a mean, then squares"
        reason = f"{plan.pair.lines} take {what}"
        found.append(Site(key=_key(kernel, plan.pair), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no two loops follow each other in one block")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Do the work of the second loop in the first one."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if kernel is None or _key(kernel, plan.pair) != site.key:
            continue
        edits = EditSet(unit)
        if isinstance(plan, OnlineSum):
            write_online_sum(unit, kernel, plan, context, edits)
            return Rewrite(edits=edits.edits, assumptions=plan.assumptions)
        write_running_variance(unit, kernel, plan, context, edits)
        return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, pair: LoopPair) -> str:
    return f"{kernel.name}/{pair.key}"


def _plans(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[OnlineSum | RunningVariance]:
    readers = (read_online_sum, read_running_variance)
    for pair in find_pairs(unit, kernel):
        for read in readers:
            try:
                yield read(unit, kernel, pair, context)
                break
            except SkillRefused as refused:
                refusals.append(refused.reason)
