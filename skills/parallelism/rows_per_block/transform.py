"""Give a row to a block instead of to one thread."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.row_emission import Group, RowWriter
from kernelskill.skills.row_program import read_row_program
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

_THREADS = (256, 128, 512, 64, 1024)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one row a thread."""
    program = read_row_program(unit, kernel, context)
    if program.has_scans:
        raise SkillRefused("it takes a running sum")
    longest = max(shared.loop.trip_count or _THREADS[-1] for shared in program.loops)
    bounds = kernel.launch_bounds
    most = 1024 if not bounds else int(bounds[0]) if bounds[0].isdigit() else 0
    values = tuple(str(size) for size in _THREADS if size <= min(longest, most))
    if not values:
        raise SkillRefused(f"its loops have at most {longest} turns, or its launch bounds forbid it")
    parameter = SkillParameter(name="threads", values=values, meaning="threads of a block, which share a row")
    shared = ", ".join(f"line {one.loop.line}" for one in program.loops)
    reason = f"one thread walks along {program.row}: the loops on {shared}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write loops that the block shares, their combination and the launches."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    program = read_row_program(unit, kernel, context)
    threads = int(parameters["threads"])
    return RowWriter(unit, program, Group(threads, threads, is_block=True), context).rewrite()
