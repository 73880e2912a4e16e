"""Load an element once where stores to other arrays make the compiler load it again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.kept_edits import keep_element
from kernelskill.skills.kept_elements import KeptElement, kept_elements
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every element that is only read, several times, with stores in between."""
    refusals: list[str] = []
    found = []
    for element in _elements(unit, kernel, context, refusals):
        line = unit.line_of(element.first)
        reason = f"line {line}: {element.text} is loaded again after stores that can't change it"
        found.append(Site(key=element.key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it loads no element again after a store")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Declare a constant before the first load and use it instead of the others."""
    kernel = unit.kernel(site.kernel)
    if kernel is not None:
        for element in _elements(unit, kernel, context, []):
            if element.key == site.key:
                return keep_element(unit, kernel, element, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _elements(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[KeptElement]:
    for element in kept_elements(unit, kernel, context, refusals):
        if not element.stores and element.is_read_again:
            yield element
