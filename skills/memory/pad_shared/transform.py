"""Give the rows of a shared array one element more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.kernel_launches import launches_of, template_bindings
from kernelskill.skills.shared_arrays import (
    STATIC_LIMIT,
    SharedArray,
    read_shared_array,
    refuse_dynamic,
    static_shared_bytes,
    whole_accesses,
)
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.value_ranges import ValueRanges, largest_block
from kernelskill.source.accesses import Access
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import Storage
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit

_BANKS, _BANK_BYTES = 32, 4
_PLAIN = frozenset({"number_literal", "identifier", "parenthesized_expression"})


@dataclass(frozen=True)
class _Plan:
    array: SharedArray
    padding: int
    before: int
    """Worst number of threads that meet in one bank."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every shared array whose columns meet in few banks."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        name = plan.array.variable.name
        reason = f"{plan.before} neighbouring threads meet in one bank of {name}"
        found.append(Site(key=f"{kernel.name}/shared:{name}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no shared array of two or more dimensions")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Enlarge the last extent where the array is declared."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        variable = plan.array.variable
        size = variable.dimensions[-1]
        if site.key != f"{site.kernel}/shared:{variable.name}" or size is None:
            continue
        edits = EditSet(unit)
        if size.type not in _PLAIN:
            edits.insert_before(size, "(")
        edits.insert_after(size, f"{'' if size.type in _PLAIN else ')'} + {plan.padding}")
        return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    variables = [v for v in kernel.locals if v.storage is Storage.SHARED and len(v.dimensions) > 1]
    if not variables:
        return []
    entries = launches_of(unit, kernel, context)
    refuse_dynamic(entries)
    ranges = ValueRanges(unit, kernel, largest_block(entries), template_bindings(unit, kernel, context))
    names = [variable.name for variable in variables]
    found = []
    for variable in variables:
        try:
            if names.count(variable.name) > 1:
                raise SkillRefused(f"two shared arrays are named {variable.name!r}")
            array = read_shared_array(variable, ranges)
            if array is None:
                raise SkillRefused(f"the extents of {variable.name!r} are not constants")
            accesses = whole_accesses(unit, kernel, variable, context)
            plan = _plan(unit, kernel, array, accesses, ranges)
            total = static_shared_bytes(unit, kernel, ranges, context)
            rows = array.bytes // array.element_bytes // array.extents[-1]
            if total + rows * plan.padding * array.element_bytes > STATIC_LIMIT:
                raise SkillRefused(f"with padding {variable.name!r} no longer fits the shared memory")
            found.append(plan)
        except SkillRefused as refused:
            refusals.append(refused.reason)
    return found


def _plan(
    unit: SourceUnit, kernel: KernelDef, array: SharedArray, accesses: list[Access], ranges: ValueRanges
) -> _Plan:
    width, name = array.extents[-1], array.variable.name
    for access in accesses:
        found = ranges.of(access.indices[-1])
        if found is None or found[0] < 0 or found[1] >= width:
            text = unit.text_of(access.indices[-1])
            raise SkillRefused(f"line {access.line}: {text} is not certain to stay below {width}")
    padding = max(1, _BANK_BYTES // array.element_bytes)
    steps = [_steps(unit, kernel, access) for access in accesses]
    before = [_meeting(step, array, width, ranges.block[0]) for step in steps]
    after = [_meeting(step, array, width + padding, ranges.block[0]) for step in steps]
    if max(before, default=1) < 2:
        raise SkillRefused(f"neighbouring threads access {name!r} in different banks")
    if sum(after) >= sum(before):
        raise SkillRefused(f"longer rows of {name!r} would not spread its accesses better")
    return _Plan(array, padding, max(before))


def _steps(unit: SourceUnit, kernel: KernelDef, access: Access) -> list[int] | None:
    """Return by how much each subscript moves from a thread to the next; None where that varies."""
    found = []
    for index in access.indices:
        factor = index_polynomial(unit, kernel, index).coefficient("threadIdx.x")
        if factor is None or factor.value is None:
            return None
        found.append(factor.value)
    return found


def _meeting(steps: list[int] | None, array: SharedArray, width: int, threads: int | None) -> int:
    """Return how many threads of a warp meet in one bank when rows have `width` elements."""
    if steps is None or threads == 1:
        return 1
    pitch, stride = 1, 0
    for step, extent in zip(reversed(steps), reversed((*array.extents[:-1], width)), strict=True):
        stride += step * pitch
        pitch *= extent
    words = stride * array.element_bytes // _BANK_BYTES
    if words == 0:
        return 1
    return min(math.gcd(words, _BANKS), threads or _BANKS)
