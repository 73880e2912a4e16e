"""Take a running sum by all threads of a block, or lanes of a warp, a stretch at a time."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.row_emission import Group, RowWriter
from kernelskill.skills.row_program import RowProgram, read_row_program
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

_THREADS = (1024, 256, 32)
_TURNS = ("8", "4", "16", "1")
_WARP = 32
_BLOCK = 128


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel in which a thread takes a running sum."""
    program = read_row_program(unit, kernel, context)
    scans = [shared.scan.name for shared in program.loops if shared.scan is not None]
    if not scans:
        raise SkillRefused("it takes no running sum")
    values = tuple(str(size) for size in _THREADS if _block_of(program, size) <= _most(kernel))
    is_alone = program.guard is None
    # One running sum waits for its block; of many rows, each is short.
    values = values if is_alone else values[::-1]
    turns = _TURNS if is_alone else (*_TURNS[-1:], *_TURNS[:-1])
    parameters = (
        SkillParameter(name="threads", values=values, meaning="threads that share a running sum"),
        SkillParameter(name="turns", values=turns, meaning="neighbouring turns that a thread takes together"),
    )
    reason = f"one thread adds up {', '.join(scans)} along {program.row}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=parameters)]


def _block_of(program: RowProgram, threads: int) -> int:
    """Return the block: several rows where a warp takes each."""
    return _BLOCK if threads == _WARP and program.guard is not None else threads


def _most(kernel: KernelDef) -> int:
    if not kernel.launch_bounds:
        return 1024
    return int(kernel.launch_bounds[0]) if kernel.launch_bounds[0].isdigit() else 0


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the stretches and the launches."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    program = read_row_program(unit, kernel, context)
    threads = int(parameters["threads"])
    group = Group(threads, _block_of(program, threads), is_block=threads > _WARP)
    return RowWriter(unit, program, group, context, int(parameters["turns"])).rewrite()
