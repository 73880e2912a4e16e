"""Put one pass in the place of a prefix sum over several launches, of floating-point numbers."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.single_pass_skill import single_pass_rewrite, single_pass_sites
from kernelskill.skills.transformation import Rewrite, Site, SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the prefix sums of floating-point numbers."""
    return single_pass_sites(unit, kernel, context, of_floats=True)


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one of them anew."""
    return single_pass_rewrite(unit, site, parameters, context, of_floats=True)
