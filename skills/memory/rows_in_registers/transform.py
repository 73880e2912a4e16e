"""Keep rows in registers between the loops that read them."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.schedule_moves import move_rewrite, move_sites
from kernelskill.skills.transformation import Rewrite, Site, SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit

MOVE = "keep_rows"


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Return the kernel itself where the move is legal on its schedule."""
    return move_sites(MOVE, unit, kernel, context)


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Emit the kernel under its schedule with one more move."""
    return move_rewrite(MOVE, unit, site, parameters, context)
