"""Replace a scan over a shared array, of integers, by shuffles."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.shared_scan_skill import scan_rewrite, scan_sites
from kernelskill.skills.transformation import Rewrite, Site, SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the scans of integers."""
    return scan_sites(unit, kernel, context, of_floats=False)


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one of them anew."""
    return scan_rewrite(unit, site, parameters, context, of_floats=False)
