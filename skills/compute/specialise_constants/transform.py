"""Make a kernel a template over sizes and flags, with copies for those of the timed cases."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.fixed_parameters import find_fixed, write_fixed
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer all useful parameters together, and each alone."""
    return [
        Site(
            key=f"{kernel.name}/{fixed.key}",
            kernel=kernel.name,
            reason=f"{fixed.key.replace('+', ', ')} decide loops, divisions or branches; timed at {fixed.values_text}",
        )
        for fixed in find_fixed(unit, kernel, context)
    ]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the template and the choice at each launch."""
    kernel = unit.kernel(site.kernel)
    for fixed in find_fixed(unit, kernel, context) if kernel is not None else ():
        if kernel is not None and f"{kernel.name}/{fixed.key}" == site.key:
            sets = write_fixed(unit, kernel, fixed, context)
            return Rewrite(edits=tuple(edit for edits in sets for edit in edits.edits))
    raise SkillRefused(f"site {site.key!r} is gone")
