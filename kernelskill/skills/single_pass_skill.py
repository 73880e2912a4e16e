"""The skill of prefix sums in one pass: one of integers, which is exact, and one of floating-point numbers."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.scan_chains import ScanChain, find_chains
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
    for key, chain in _chains(unit, kernel, context, of_floats=of_floats):
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
    chains = dict(_chains(unit, kernel, context, of_floats=of_floats))
    if site.key not in chains:
        raise SkillRefused(f"the launches of {site.key!r} are gone")
    threads, items = int(parameters["threads"]), int(parameters["items"])
    return write_single_pass(unit, chains[site.key], context, threads, items)


def _chains(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool
) -> list[tuple[str, ScanChain]]:
    """Return the prefix sums with their keys.

    Raises:
        SkillRefused: There is none.
    """
    found: list[tuple[str, ScanChain]] = []
    counts: dict[str, int] = {}
    for chain in find_chains(unit, kernel, context, of_floats=of_floats):
        counts[chain.key] = counts.get(chain.key, 0) + 1
        number = counts[chain.key]
        found.append((chain.key + (f"#{number}" if number > 1 else ""), chain))
    return found
