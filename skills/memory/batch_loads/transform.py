"""Make the loads of several turns of a loop before the first of them is used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.counted_loops import CountedLoop, is_tail, read_counted
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import visible_accesses
from kernelskill.skills.loop_fetches import Fetch, FetchReader, body_text, refuse_repeated
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.unit import SourceUnit

_FACTORS = (4, 8, 2)
_MOST_VALUES = 64
"""Registers that the values of one batch may take."""
_SHORT = 16
"""The compiler unrolls loops of so few turns whole, and batches their loads itself."""


@dataclass(frozen=True)
class _Plan:
    counted: CountedLoop
    reader: FetchReader
    fetches: list[Fetch]
    assumptions: tuple[str, ...]

    @property
    def factors(self) -> tuple[str, ...]:
        turns = self.counted.loop.trip_count
        fitting = [f for f in _FACTORS if f * len(self.fetches) <= _MOST_VALUES]
        return tuple(str(f) for f in fitting if turns is None or f <= turns)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every innermost loop that loads by its variable."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        loop = plan.counted.loop
        names = ", ".join(dict.fromkeys(unit.text_of(fetch.node) for fetch in plan.fetches))
        parameter = SkillParameter(name="turns", values=plan.factors, meaning="turns whose loads are batched")
        reason = f"line {loop.line}: each turn waits for {names}"
        found.append(Site(f"{kernel.name}/{loop.key}", kernel.name, reason, (parameter,)))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no innermost loop")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write a loop over batches in front; the loop itself takes the turns that are left."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if site.key == f"{site.kernel}/{plan.counted.loop.key}":
            edits = EditSet(unit)
            first, lines = _lines(unit, plan, int(parameters["turns"]), context)
            surround_loop(unit, edits, plan.counted.loop, lines, [])
            edits.replace(plan.counted.start, first)
            return Rewrite(edits=edits.edits, assumptions=plan.assumptions)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    found = []
    for loop in find_loops(unit, kernel):
        if not loop.is_innermost:
            continue
        try:
            plan = _plan(unit, kernel, loop, context)
            if not plan.factors:
                raise SkillRefused(f"the loop on line {loop.line} loads {len(plan.fetches)} values a turn")
            found.append(plan)
        except SkillRefused as refused:
            refusals.append(refused.reason)
    return found


def _plan(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> _Plan:
    if loop.trip_count is not None and loop.trip_count <= _SHORT:
        raise SkillRefused(f"the loop on line {loop.line} is so short that the compiler unrolls it")
    if is_tail(unit, kernel, loop):
        raise SkillRefused(f"the loop on line {loop.line} takes the turns that another one left")
    counted = read_counted(unit, kernel, loop)
    refuse_repeated(unit, counted)
    accesses = visible_accesses(unit, kernel, loop, context)
    reader = FetchReader(unit, kernel, counted, accesses, context)
    fetches, assumptions = reader.fetches()
    return _Plan(counted, reader, fetches, assumptions)


def _lines(unit: SourceUnit, plan: _Plan, turns: int, context: SkillContext) -> tuple[str, list[str]]:
    """Return the name of the batches' variable, and the lines of their loop."""
    taken: list[str] = []

    def fresh(wanted: str) -> str:
        taken.append(fresh_name(unit, context, wanted, taken))
        return taken[-1]

    counted = plan.counted
    name, first, turn = counted.variable.name, fresh(f"{counted.variable.name}_first"), fresh("turn")
    arrays: dict[str, tuple[str, str]] = {}
    names: dict[int, str] = {}
    fills: list[str] = []
    # What an index is loaded from comes before the load that needs it.
    for fetch in sorted(plan.fetches, key=lambda one: len(one.loads)):
        value = plan.reader.text(fetch.node, names, name)
        if value not in arrays:
            array = fresh(f"{fetch.base}_batch")
            arrays[value] = (fetch.kind, array)
            fills.append(f"{array}[{turn}] = {value};")
        names[fetch.node.id] = f"{arrays[value][1]}[{turn}]"
    own = f"const {counted.kind} {name} = {counted.later(first, turn)};"
    body = body_text(unit, counted, names)
    uses_own = re.search(rf"\b{re.escape(name)}\b", "\n".join(body)) is not None
    every = ["#pragma unroll", f"for (int {turn} = 0; {turn} < {turns}; ++{turn}) {{"]
    steps = counted.later(first, str(turns)).removeprefix(f"{first} + ")
    inside = [
        *(f"{kind} {array}[{turns}];" for kind, array in arrays.values()),
        *every,
        *(f"    {line}" for line in [own, *fills]),
        "}",
        *every,
        *(f"    {line}" for line in [*([own] if uses_own else []), *body]),
        "}",
    ]
    return first, [
        f"{counted.kind} {first} = {counted.first};",
        f"for (; {counted.has_turns_left(first, turns - 1)}; {first} += {steps}) {{",
        *(f"    {line}" for line in inside),
        "}",
    ]
