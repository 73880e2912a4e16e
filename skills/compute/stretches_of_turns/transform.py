"""Take several turns of a loop at a time without asking whether its counts have come to their ends."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.counted_ends import CountedEnds, read_counted_ends, stretches_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import find_loops
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer all innermost loops together that data end, or a count: which of them matter, a copy may hide."""
    refusals: list[str] = []
    found = _loops(unit, kernel, context, refusals)
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no loop that data ends, or a count")
    names = " and ".join(dict.fromkeys(repr(count.name) for ends in found for count in ends.counts))
    lines = " and ".join(str(ends.loop.line) for ends in found)
    reason = f"line {lines}: every turn of the loop asks whether {names} may go on"
    return [Site(key=f"{kernel.name}/counts", kernel=kernel.name, reason=reason)]


def _loops(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> list[CountedEnds]:
    """Return the loops in the order of the text."""
    found = []
    for loop in find_loops(unit, kernel):
        try:
            ends = read_counted_ends(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if ends is not None:
            found.append(ends)
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write stretches of turns before each loop."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = _loops(unit, kernel, context, [])
    if not found:
        raise SkillRefused(f"site {site.key!r} is gone")
    edits = EditSet(unit)
    for ends in found:
        edits.replace(*stretches_text(unit, ends, context, int(parameters["turns"])))
    return Rewrite(edits=edits.edits)
