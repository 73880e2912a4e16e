"""Combine what a block's threads add to one element before the atomic."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.block_atomics import BlockAtomics, read_block_atomics, write_block_atomics
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

_WORK = ("8", "4", "16", "32")
_MEANING = "elements a thread combines before the block does"


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel whose threads update one element."""
    found = read_block_atomics(unit, kernel, context)
    names = ", ".join(dict.fromkeys(unit.text_of(update.address) for update in found.updates))
    parameter = SkillParameter(name="work", values=_values(found), meaning=_MEANING)
    note = "" if any(u.combining.is_reordering for u in found.updates) else "; integers, so exactly"
    reason = f"all threads of a block update {names}{note}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def _values(found: BlockAtomics) -> tuple[str, ...]:
    alone = ("1",) if found.end is not None else ()
    return (*_WORK, *alone) if found.elements is not None else alone


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write one atomic a block."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found = read_block_atomics(unit, kernel, context)
    return write_block_atomics(unit, found, int(parameters["work"]), context)
