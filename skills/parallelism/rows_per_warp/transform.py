"""Give a row to the lanes of a warp, or to some of them, instead of to one thread."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.row_emission import Group, RowWriter
from kernelskill.skills.row_program import RowProgram, read_row_program
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

_LANES = (32, 8, 16, 4)
_BLOCK = 128
_BLOCKS = (64, 512)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one row a thread."""
    program = read_row_program(unit, kernel, context)
    if program.has_scans:
        raise SkillRefused("it takes a running sum")
    longest = max(shared.loop.trip_count or _LANES[0] for shared in program.loops)
    values = tuple(str(lanes) for lanes in _LANES if lanes <= longest)
    if not values:
        raise SkillRefused(f"its loops have at most {longest} turns")
    parameter = SkillParameter(name="lanes", values=values, meaning="threads that share a row")
    shared = ", ".join(f"line {one.loop.line}" for one in program.loops)
    reason = f"one thread walks along {program.row}: the loops on {shared}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write loops that lanes share, their combination and the launches."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    program = read_row_program(unit, kernel, context)
    group = Group(int(parameters["lanes"]), _block_of(program), is_block=False)
    return RowWriter(unit, program, group, context).rewrite()


def _block_of(program: RowProgram) -> int:
    """Return the block that the kernel has, where it will do."""
    sizes = {cover.block for cover in program.covers}
    kept = sizes.pop() if len(sizes) == 1 else 0
    bounds = program.kernel.launch_bounds
    if kept % 32 or not _BLOCKS[0] <= kept <= _BLOCKS[1]:
        kept = _BLOCK
    if bounds and not (bounds[0].isdigit() and int(bounds[0]) >= kept):
        raise SkillRefused(f"__launch_bounds__({bounds[0]}) may not hold for blocks of {kept}")
    return kept
