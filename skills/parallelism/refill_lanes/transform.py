"""Let lanes that are done with their element take the next one of their warp."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.elementwise import divide_grids
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.refilled_lanes import refilled_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.uneven_loops import read_uneven
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel whose loop ends after another number of turns for every element."""
    found = read_uneven(unit, kernel, context)
    refilled_text(unit, kernel, found, context, 16, 8)
    reason = f"how long the loop on line {found.loop.line} runs depends on the element, and lanes wait for the longest"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the loop over the elements of a warp and divide the grids."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = read_uneven(unit, kernel, context)
    work, turns = int(parameters["work"]), int(parameters["turns"])
    sets = edit_sets(found.entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    own.replace(*refilled_text(unit, kernel, found, context, work, turns))
    divide_grids(sets, found.entries, found.covers, work)
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))
