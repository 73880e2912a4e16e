"""Let the lanes of a warp that update one element do it with one atomic."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.warp_atomics import names_of, read_warp_atomics, write_warp_atomics
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel whose lanes may meet at an element."""
    found = read_warp_atomics(unit, kernel, context)
    reason = f"lanes of a warp may update the same element, {names_of(found, unit)}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one atomic a group of lanes."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    return write_warp_atomics(unit, read_warp_atomics(unit, kernel, context), context)
