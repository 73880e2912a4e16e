"""Load what the next turn of a loop needs while this turn computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelskill.skills.counted_loops import CountedLoop, is_tail, read_counted
from kernelskill.skills.device_code import fresh_name, words_in
from kernelskill.skills.disjoint import separate
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import refuse_hidden_accesses, visible_accesses
from kernelskill.skills.loop_fetches import Fetch, FetchReader
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, find_accesses
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.syntax import Node, named, span_of
from kernelskill.source.unit import SourceUnit

_CAST = re.compile(r"\([\w ]+\)\w+")
_MOST_VALUES = 8
_SHORT = 16
"""The compiler unrolls loops of so few turns whole, and moves their loads itself."""


@dataclass(frozen=True)
class _Plan:
    counted: CountedLoop
    reader: FetchReader
    fetches: list[Fetch]
    assumptions: tuple[str, ...]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every loop that loads by its variable."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        loop = plan.counted.loop
        names = ", ".join(dict.fromkeys(unit.text_of(fetch.node) for fetch in plan.fetches))
        reason = f"line {loop.line}: each turn loads {names} and waits for it"
        found.append(Site(f"{kernel.name}/{loop.key}", kernel.name, reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no loop")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Load the first turn's values before the loop, and each later turn's one turn early."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if site.key == f"{site.kernel}/{plan.counted.loop.key}":
            return _write(unit, plan, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _plans(unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]) -> list[_Plan]:
    found = []
    for loop in find_loops(unit, kernel):
        try:
            found.append(_plan(unit, kernel, loop, context))
        except SkillRefused as refused:
            refusals.append(refused.reason)
    return found


def _plan(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> _Plan:
    if loop.trip_count is not None and loop.trip_count <= _SHORT:
        raise SkillRefused(f"the loop on line {loop.line} is so short that the compiler unrolls it")
    if is_tail(unit, kernel, loop):
        raise SkillRefused(f"the loop on line {loop.line} takes the turns that another one left")
    counted = read_counted(unit, kernel, loop)
    accesses, assumptions = _accesses(unit, kernel, loop, context)
    reader = FetchReader(unit, kernel, counted, accesses, context)
    found, more = reader.fetches(choices=True)
    spans = [span_of(fetch.node) for fetch in found]
    # A load inside another one moves with it.
    fetches = [
        fetch
        for fetch, own in zip(found, spans, strict=True)
        if not any(span != own and span.contains(own) for span in spans)
    ]
    texts = {reader.text(fetch.node, {}, counted.variable.name) for fetch in fetches}
    if len(texts) > _MOST_VALUES:
        raise SkillRefused(f"the loop on line {loop.line} loads {len(texts)} values a turn")
    if loop.has_barrier:
        assumptions += _check_kernel(unit, kernel, fetches, context)
    return _Plan(counted, reader, fetches, tuple(dict.fromkeys((*assumptions, *more))))


def _accesses(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext
) -> tuple[list[Access], tuple[str, ...]]:
    """Return the accesses of a loop, which may wait at barriers of the block right in its body."""
    if not loop.has_barrier:
        return visible_accesses(unit, kernel, loop, context), ()
    if {"volatile", "asm", "__asm__"} & set(words_in(unit, kernel.span)):
        raise SkillRefused("the kernel uses volatile memory or inline assembly")
    for statement in named(loop.body):
        if not _is_barrier(unit, statement):
            refuse_hidden_accesses(unit, kernel, statement, context)
    return [access for access in find_accesses(unit, kernel) if loop.span.contains(access.span)], ()


def _is_barrier(unit: SourceUnit, statement: Node) -> bool:
    return "".join(unit.text_of(statement).split()) == "__syncthreads();"


def _check_kernel(
    unit: SourceUnit, kernel: KernelDef, fetches: list[Fetch], context: SkillContext
) -> tuple[str, ...]:
    """Decline where any thread may write, before a barrier of the loop, what a fetch reads.

    Raises:
        SkillRefused: It may.
    """
    assert kernel.body is not None
    for statement in _statements(kernel.body):
        if not _is_barrier(unit, statement) and not _holds_barrier(unit, statement):
            refuse_hidden_accesses(unit, kernel, statement, context)
    assumptions: list[str] = []
    loads = [load for fetch in fetches for load in fetch.loads]
    for other in find_accesses(unit, kernel):
        for load in loads if other.mode.writes else ():
            answer = separate(unit, kernel, load, other, context)
            if not answer.disjoint or other.root is load.root:
                raise SkillRefused(
                    f"line {other.line} writes {unit.text_of(other.node)}, "
                    f"which may be {unit.text_of(load.node)} of another thread"
                )
            assumptions += [answer.assumption] if answer.assumption else []
    return tuple(dict.fromkeys(assumptions))


def _statements(node: Node) -> list[Node]:
    """Return the statements below a node that hold no other."""
    found: list[Node] = []
    for child in named(node):
        inner = _statements(child)
        is_statement = child.type.endswith("_statement") or child.type == "declaration"
        found += inner or ([child] if is_statement else [])
    return found


def _holds_barrier(unit: SourceUnit, statement: Node) -> bool:
    return any(_is_barrier(unit, inner) for inner in _statements(statement))


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    taken: list[str] = []

    def fresh(wanted: str) -> str:
        taken.append(fresh_name(unit, context, wanted, taken))
        return taken[-1]

    counted, loop = plan.counted, plan.counted.loop
    name = counted.variable.name
    edits = EditSet(unit)
    before: list[str] = []
    if not counted.is_plain:
        # What the loop starts at is loaded once, as before.
        first_name = fresh(f"{name}_first")
        before.append(f"const {counted.kind} {first_name} = {counted.first};")
        edits.replace(counted.start, first_name)
        counted = replace(counted, first=first_name)
    runs = f"{_operand(counted.first)} {loop.comparison} {counted.bound}"
    certain = loop.trip_count is not None and loop.trip_count > 0
    later = counted.later(name, "1")
    later = f"({later})" if counted.step.isdigit() else f"({counted.kind})({later})"
    values: dict[str, str] = {}
    begin: list[str] = []
    ahead: list[str] = []
    for fetch in plan.fetches:
        text = plan.reader.text(fetch.node, {}, name)
        if text not in values:
            values[text], coming = fresh(f"{fetch.base}_now"), fresh(f"{fetch.base}_next")
            first = plan.reader.text(fetch.node, {}, _operand(counted.first))
            # `long long()` is no expression.
            nothing = "0" if " " in fetch.kind else f"{fetch.kind}()"
            first = first if certain else f"{runs} ? {_bracketed(fetch, first)} : {nothing}"
            before.append(f"{fetch.kind} {coming} = {first};")
            begin.append(f"const {fetch.kind} {values[text]} = {coming};")
            ahead.append(f"{coming} = {plan.reader.text(fetch.node, {}, later)};")
        edits.replace(fetch.node, values[text])
    test = counted.follows(name, 1)
    ahead = (
        [f"if ({test}) {ahead[0]}"]
        if len(ahead) == 1
        else [f"if ({test}) {{", *map("    {}".format, ahead), "}"]
    )
    _begin_body(unit, edits, loop, [*begin, *ahead])
    surround_loop(unit, edits, loop, before, [])
    return Rewrite(edits=edits.edits, assumptions=plan.assumptions)


def _operand(text: str) -> str:
    is_cast = _CAST.fullmatch(text) is not None
    return text if text.isidentifier() or text.isdigit() or is_cast else f"({text})"


def _bracketed(fetch: Fetch, text: str) -> str:
    return f"({text})" if fetch.node.type == "conditional_expression" else text


def _begin_body(unit: SourceUnit, edits: EditSet, loop: Loop, lines: list[str]) -> None:
    """Insert lines at the start of a body, which gets braces where it has none."""
    indent = f"{unit.indent_of(loop.node)}    "
    text = "".join(f"\n{indent}{line}" for line in lines)
    if loop.body.type == "compound_statement":
        opening = loop.body.children[0]
        rest = unit.data[opening.end_byte :].split(b"\n", 1)[0].strip()
        edits.insert_after(opening, text + (f"\n{indent}" if rest else ""))
        return
    edits.insert_before(loop.body, f"{{{text}\n{indent}")
    edits.insert_after(loop.body, f"\n{unit.indent_of(loop.node)}}}")
