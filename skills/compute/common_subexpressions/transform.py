"""Keep what a block computes several times in a constant."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.repeated_values import Repeated, find_repeated, write_repeated
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every value that is computed more than once."""
    refusals: list[str] = []
    found: dict[str, Site] = {}
    for repeated in find_repeated(unit, kernel, context, refusals):
        line = unit.line_of(repeated.statement)
        reason = f"line {line}: {repeated.text} is computed {len(repeated.places)} times"
        key = _key(kernel, repeated)
        found.setdefault(key, Site(key=key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no block computes the same call or division twice")
    return list(found.values())


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the constant and its uses."""
    kernel = unit.kernel(site.kernel)
    for repeated in find_repeated(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and _key(kernel, repeated) == site.key:
            edits = EditSet(unit)
            write_repeated(unit, repeated, context, edits)
            return Rewrite(edits=edits.edits, assumptions=repeated.assumptions)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, repeated: Repeated) -> str:
    return f"{kernel.name}/{''.join(repeated.text.split())}"
