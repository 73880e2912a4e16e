"""Keep what was stored to an element in a register for the loads that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.skills.contraction import stores_product
from kernelskill.skills.kept_edits import keep_element
from kernelskill.skills.kept_elements import KeptElement, kept_elements, lvalue_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every element that is loaded after it was stored, with other stores in between."""
    refusals: list[str] = []
    found = []
    for element in _elements(unit, kernel, context, refusals):
        line = unit.line_of(element.first)
        reason = f"line {line}: {element.text} is stored, then loaded again after other stores"
        found.append(Site(key=element.key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(
            refusals[0]
            if refusals
            else "it loads nothing back that it has stored, with other stores in between"
        )
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Give the value a variable; stores stay, loads become uses of it."""
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
        if element.is_read_back:
            product = next((use for use in element.stores if _is_product(unit, kernel, use.access)), None)
            if product is None:
                yield element
            else:
                refusals.append(
                    f"line {product.access.line} stores a product in {element.text}: "
                    "kept in a register, it might be added without being rounded"
                )


def _is_product(unit: SourceUnit, kernel: KernelDef, access: Access) -> bool:
    change = lvalue_of(access).parent
    kind = "" if access.member else access.element_type
    return change is None or stores_product(unit, kernel, change, kind)
