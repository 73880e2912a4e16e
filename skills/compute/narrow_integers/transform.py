"""Do the turns of a loop over 64-bit integers in 32 bits while the values are small enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.device_code import editable_functions
from kernelskill.skills.narrow_loops import NarrowLoop, read_narrow
from kernelskill.skills.narrow_text import narrow_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import LoopKind, find_loops
from kernelskill.source.unit import SourceUnit

_TURNS = "turns that follow each test of the bounds; the bounds of several are smaller"
_WIDE_ENOUGH = 1 << 20
"""A bound of several turns up to which values that leave it are few in most loops."""
_MEANING = "whether what has become small again is computed in 32 bits again; else the loop ends in 64 bits"


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every loop whose 64-bit integers may be computed in 32 bits."""
    refusals: list[str] = []
    several = dict(_loops(unit, kernel, context, [], turns=4))
    found = [
        _site(kernel, key, loop, several.get(key)) for key, loop in _loops(unit, kernel, context, refusals)
    ]
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no loop that steps a 64-bit integer")
    return found


def _site(kernel: KernelDef, key: str, found: NarrowLoop, several: NarrowLoop | None) -> Site:
    names = [repr(entry.declared.name) for entry in found.variables]
    are = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'}"
    # A loop inside another one begins anew soon.
    values = ("no", "yes") if found.loop.depth > 1 else ("yes", "no")
    return Site(
        key=key,
        kernel=kernel.name,
        reason=f"line {found.loop.line}: the turns of the loop fit 32 bits while {are} small",
        parameters=(
            SkillParameter(name="again", values=values, meaning=_MEANING),
            SkillParameter(name="turns", values=_turns(found, several), meaning=_TURNS),
        ),
    )


def _turns(found: NarrowLoop, several: NarrowLoop | None) -> tuple[str, ...]:
    """Return how many turns one test may allow, the most promising first."""
    tested = any(entry.is_tested for entry in found.variables)
    if several is None or not tested or found.loop.kind is LoopKind.DO:
        return ("1",)
    wide = all(entry.bound >= _WIDE_ENOUGH for entry in several.variables if entry.is_tested)
    return ("4", "1", "2") if wide else ("1", "2", "4")


def _loops(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str], turns: int = 1
) -> Iterator[tuple[str, NarrowLoop]]:
    """Yield the loops of a kernel and of its device functions, with the keys of their sites.

    A key names variables, not the kind of loop: other skills write loops in other ways.
    """
    taken: dict[str, int] = {}
    for function in editable_functions(unit, kernel, context):
        place = kernel.name if function is kernel else f"{kernel.name}/{function.name}"
        for loop in find_loops(unit, function):
            try:
                found = read_narrow(unit, function, loop, context, turns)
            except SkillRefused as refused:
                refusals.append(refused.reason)
                continue
            if found is None:
                continue
            key = f"{place}/wide:{found.names}"
            taken[key] = taken.get(key, 0) + 1
            yield (key if taken[key] == 1 else f"{key}#{taken[key]}"), found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the loop with a copy of 32 bits."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    turns = int(parameters.get("turns", "1"))
    found = next((loop for key, loop in _loops(unit, kernel, context, [], turns) if key == site.key), None)
    if found is None:
        raise SkillRefused(f"site {site.key!r} is gone")
    edits = EditSet(unit)
    edits.replace(*narrow_text(unit, found, context, again=parameters["again"] == "yes"))
    return Rewrite(edits=edits.edits)
