"""The skill of prefix sums in one pass: one of integers, which is exact, and one of floating-point numbers."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.launch_chain_sites import at, keyed
from kernelskill.skills.scan_chains import find_chains
from kernelskill.skills.single_pass import write_single_pass
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def single_pass_sites(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool
) -> list[Site]:
    """Offer the prefix sums that begin with a kernel.

    Args:
        unit: The file.
        kernel: The kernel.
        context: What may be known besides.
        of_floats: Whether sums of floating-point numbers are meant, or those of integers.
    """
    found = []
    for key, chain in keyed(find_chains(unit, kernel, context, of_floats=of_floats)).items():
        write_single_pass(unit, chain, context, 256, 16)
        others = " and ".join(launch.kernel for launch in chain.launches[1:])
        reason = f"{others} read and write again what it has just stored"
        found.append(Site(key=key, kernel=kernel.name, reason=reason))
    return found


def single_pass_rewrite(
    unit: SourceUnit,
    site: Site,
    parameters: Mapping[str, str],
    context: SkillContext,
    *,
    of_floats: bool,
) -> Rewrite:
    """Write one of them anew."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    chain = at(keyed(find_chains(unit, kernel, context, of_floats=of_floats)), site.key)
    return write_single_pass(unit, chain, context, int(parameters["threads"]), int(parameters["items"]))
