"""Let blocks take stretches of one thread's running sum."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.scan_parts import read_scan_loop, write_scan_loop
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel whose only thread takes a running sum."""
    found = read_scan_loop(unit, kernel, context)
    write_scan_loop(unit, found, 256, 4, context)
    reason = f"one thread adds up {found.scan.name} along the loop on line {found.shared.loop.line}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the sums of stretches, their running sum, and the loop for each stretch."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = read_scan_loop(unit, kernel, context)
    edits = write_scan_loop(unit, found, int(parameters["parts"]), int(parameters["turns"]), context)
    return Rewrite(edits=edits, assumptions=found.program.assumptions)
