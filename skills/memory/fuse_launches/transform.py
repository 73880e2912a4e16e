"""Fuse two launches in a row over the same points."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.launch_fusion import fusion_rewrite, fusion_sites
from kernelskill.skills.transformation import Rewrite, Site, SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Return the launches of the kernel that another launch takes up point by point."""
    return fusion_sites(unit, kernel, context)


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Put one kernel in the place of two."""
    return fusion_rewrite(unit, site, context)
