"""Split the long reduction of each thread over several blocks."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.split_loops import read_split_loop, write_split_loop
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one reduction a thread."""
    found = read_split_loop(unit, kernel, context)
    names = ", ".join(one.name for one in found.shared.accumulators)
    reason = f"one thread takes all turns of the loop on line {found.shared.loop.line} into {names}"
    key = f"{kernel.name}/{found.shared.loop.key}"
    return [Site(key=key, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the kernel of the parts and the launches."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    return write_split_loop(unit, read_split_loop(unit, kernel, context), int(parameters["parts"]), context)
