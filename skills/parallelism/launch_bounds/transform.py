"""Add `__launch_bounds__` with the block size that the launches use, or the blocks of an SM to bounds that name none."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit

_BLOCKS = (2, 4, 1, 3, 6, 8)
_MAX_THREADS = 1024
_THREADS_OF_SM = 2048


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel where the block size of all its launches is known."""
    if len(kernel.launch_bounds) > 1:
        raise SkillRefused("its launch bounds name the blocks of an SM already")
    threads = _threads(launches_of(unit, kernel, context))
    values = tuple(str(blocks) for blocks in _BLOCKS if threads * blocks <= _THREADS_OF_SM)
    parameter = SkillParameter(name="blocks", values=values, meaning="blocks that should fit on one SM")
    reason = f"every launch uses at most {threads} threads a block, which the compiler does not know"
    if kernel.launch_bounds:
        reason = f"the compiler does not know how many blocks of {threads} threads should fit on an SM"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Put the bounds before the kernel's name."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    threads = _threads(launches_of(unit, kernel, context))
    edits = EditSet(unit)
    if kernel.launch_bounds_span is not None:
        text = f"__launch_bounds__({kernel.launch_bounds[0]}, {parameters['blocks']})"
        return Rewrite(edits=edits.replace(kernel.launch_bounds_span, text).edits)
    text = f"__launch_bounds__({threads}, {parameters['blocks']}) "
    edits = edits.insert_before(kernel.name_span, text)
    return Rewrite(edits=edits.edits, notes=(f"a block of more than {threads} threads would fail to start",))


def _threads(launches: list[KernelLaunch]) -> int:
    largest = 0
    for entry in launches:
        values = [value for value in entry.launch.block.values if value is not None]
        if len(values) < 3 or prod(values) <= 0:
            raise SkillRefused(f"the block size on line {entry.launch.line} is not a constant")
        largest = max(largest, prod(values))
    if largest > _MAX_THREADS:
        raise SkillRefused(f"a launch asks for {largest} threads a block")
    return largest
