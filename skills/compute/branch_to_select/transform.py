"""Write short branches that only set local variables as conditional values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.selects import Select, find_selects, write_select
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every branch that only chooses values."""
    refusals: list[str] = []
    found = []
    for key, select in _keyed(unit, kernel, context, refusals):
        reason = f"line {unit.line_of(select.statement)}: the branch only chooses {', '.join(select.names)}"
        found.append(Site(key=key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no branch")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one branch as selects."""
    kernel = unit.kernel(site.kernel)
    for key, select in _keyed(unit, kernel, context, []) if kernel is not None else ():
        if key == site.key:
            edits = EditSet(unit)
            write_select(unit, select, context, edits)
            return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")


def _keyed(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[tuple[str, Select]]:
    """Yield the branches with keys of their condition and variables, numbered where those repeat."""
    counts: dict[str, int] = {}
    for select in find_selects(unit, kernel, context, refusals):
        base = f"{kernel.name}/{''.join(select.condition.split())}/{'+'.join(select.names)}"
        counts[base] = counts.get(base, 0) + 1
        yield (base if counts[base] == 1 else f"{base}#{counts[base]}"), select
