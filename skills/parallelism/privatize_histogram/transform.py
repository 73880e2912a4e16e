"""Count in a table of the block's own, and merge it at the end."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.private_bins import read_private_bins, write_private_bins
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

_WORK = ("16", "8", "32")


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel that updates a small table at data-dependent places."""
    found = read_private_bins(unit, kernel, context)
    alone = ("1",) if found.end is not None else ()
    parameters = (
        SkillParameter(
            name="bins",
            values=tuple(str(size) for size in found.capacities),
            meaning="elements of the table that a block keeps",
        ),
        SkillParameter(
            name="work",
            values=(*_WORK, *alone) if found.elements is not None else alone,
            meaning="elements of a thread",
        ),
    )
    limit = f"{found.count.count} bins" if found.count.count is not None else "bins up to a run-time size"
    reason = f"all blocks update {limit} of {found.base}"
    return [
        Site(
            key=f"{kernel.name}/table:{found.base}", kernel=kernel.name, reason=reason, parameters=parameters
        )
    ]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the block's own table."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = read_private_bins(unit, kernel, context)
    return write_private_bins(unit, found, int(parameters["bins"]), int(parameters["work"]), context)
