"""Take several turns of a loop at a time without asking whether its counts have come to their ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.counted_ends import CountedEnds, read_counted_ends, stretches_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import find_loops
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every innermost loop that data ends, or a count."""
    refusals: list[str] = []
    found = []
    for key, ends in _loops(unit, kernel, context, refusals):
        names = " and ".join(repr(count.name) for count in ends.counts)
        reason = f"line {ends.loop.line}: every turn of the loop asks whether {names} may go on"
        found.append(Site(key=key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no loop that data ends, or a count")
    return found


def _loops(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[tuple[str, CountedEnds]]:
    """Yield the loops with the keys of their sites."""
    taken: dict[str, int] = {}
    for loop in find_loops(unit, kernel):
        try:
            found = read_counted_ends(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if found is None:
            continue
        key = f"{kernel.name}/counts:{found.names}"
        taken[key] = taken.get(key, 0) + 1
        yield (key if taken[key] == 1 else f"{key}#{taken[key]}"), found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write stretches of turns before the loop."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = next((loop for key, loop in _loops(unit, kernel, context, []) if key == site.key), None)
    if found is None:
        raise SkillRefused(f"site {site.key!r} is gone")
    edits = EditSet(unit)
    edits.replace(*stretches_text(unit, found, context, int(parameters["turns"])))
    return Rewrite(edits=edits.edits)
