"""Put one pass in the place of a compaction over several launches."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.compaction_chains import find_compactions
from kernelskill.skills.launch_chain_sites import at, keyed
from kernelskill.skills.single_pass_compaction import write_compaction
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the compactions that begin with a kernel."""
    found = []
    for key, chain in keyed(find_compactions(unit, kernel, context)).items():
        write_compaction(unit, chain, context, 256, 16)
        reason = f"{chain.launches[2].kernel} reads again what it has just counted"
        found.append(Site(key=key, kernel=kernel.name, reason=reason))
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one of them anew."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    chain = at(keyed(find_compactions(unit, kernel, context)), site.key)
    return write_compaction(unit, chain, context, int(parameters["threads"]), int(parameters["items"]))
