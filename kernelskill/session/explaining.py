"""Lines for people: why a candidate is slow, what a change did, what a skill would bring. All from the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelskill.agents.profiler import Diagnosis
from kernelskill.graph.context import RoundContext
from kernelskill.graph.knowledge import pool_records
from kernelskill.report import figures
from kernelskill.schema.event import Evaluated, Judged, Observed
from kernelskill.schema.profile import Bottleneck, BottleneckKind
from kernelskill.schema.proposal import Skill
from kernelskill.session.offers import Expected
from kernelskill.session.records import SkillRow, TreeNode

_MOST_LIMITS = 3
_MOST_METRICS = 5
_MOST_SKILLS = 4
_MOST_TRIED = 3


def limit_lines(found: Bottleneck, skills: Sequence[Skill]) -> Iterator[str]:
    """Return what is known of one limit."""
    name = found.kind.value.replace("_", " ")
    yield f"{name} in {found.kernel}: {found.summary}"
    if found.evidence:
        shown = ", ".join(f"{m.name} = {m.value:.4g}{f' {m.unit}' if m.unit else ''}" for m in found.evidence)
        yield f"  evidence: {shown}"
    yield f"  confidence {found.confidence:.0%}; removing it could win up to {found.gain:.0%} of the time"
    if found.lines:
        yield f"  source lines {', '.join(map(str, found.lines))}"
    if found.falsified_by:
        yield f"  it would be wrong if {found.falsified_by}"
    answering = [skill.id for skill in skills if found.kind in skill.triggers]
    if answering:
        yield f"  skills that remove it: {_listed(answering, _MOST_SKILLS)}"


def run_lines(diagnosis: Diagnosis, node: TreeNode, skills: Sequence[Skill]) -> Iterator[str]:
    """Return why a candidate takes the time that it takes."""
    roof = diagnosis.roofline
    name = "the original" if node.number == 0 else f"#{node.number}"
    estimated = diagnosis.profile.conditions.evidence == "estimated"
    if roof is not None:
        share = figures.percent(roof.fraction)
        time = ("~" if estimated else "") + figures.milliseconds(roof.time_ms)
        yield f"{name} takes {time}, {share} of what the {roof.bound} roof allows"
    if not diagnosis.bottlenecks:
        yield f"no limit was named, from {diagnosis.profile.source} figures"
        return
    first, *others = diagnosis.bottlenecks
    if first.kind is BottleneckKind.NONE:
        yield (
            "no limit stands out; what may still be won comes after it"
            if others
            else "it is at the roof: nothing is left to win by a rewrite of this algorithm"
        )
    for found in diagnosis.bottlenecks[:_MOST_LIMITS]:
        yield from limit_lines(found, skills)
    if diagnosis.profile.unavailable:
        yield f"better figures were not to be had: {diagnosis.profile.unavailable}"


def change_lines(context: RoundContext, node: TreeNode) -> Iterator[str]:
    """Return what led to a candidate, and how it was judged."""
    if node.number == 0:
        yield "#0 is the original: every speedup is counted from it"
        return
    judged = [e for e in context.log.events if isinstance(e, Judged) and e.candidate == node.digest][-1]
    proposal = context.proposal(judged.proposal)
    origin = {"mechanical": "by rule", "model": "by a model", "combined": "a combination", "user": "by you"}
    where = f" in round {node.round}" if node.round else ""
    yield f"#{node.number} {node.label}: {origin.get(node.origin, node.origin)}{where}, from #{node.parent}"
    yield f"  {node.verdict.replace('_', ' ')}: {node.reason}"
    if node.speedup is not None:
        yield f"  {'estimated ' if node.estimated else ''}{node.speedup:.3g}x over the original"
    if proposal.rationale and proposal.origin != "user":
        yield f"  why it was tried: {proposal.rationale}"
    for skill in dict.fromkeys(step.skill for step in proposal.steps):
        known = context.library.get(skill)
        yield f"  {skill}: {_one_line(known.summary)}"
    if proposal.triggers:
        yield f"  it answers {', '.join(t.value.replace('_', ' ') for t in proposal.triggers)}"
    yield from _observed_lines(context, proposal.id)
    for assumption in proposal.assumptions:
        yield f"  relies on: {assumption}"
    evaluated = [e for e in context.log.events if isinstance(e, Evaluated) and e.candidate == node.digest]
    if evaluated:
        yield f"  its evaluation took {sum(e.seconds for e in evaluated):.1f} s of the device"


def skill_lines(
    context: RoundContext, row: SkillRow, offered: Sequence[Expected], limits: Sequence[Bottleneck]
) -> Iterator[str]:
    """Return what a skill is, whether it fits, and what came or would come of it."""
    skill = context.library.get(row.id)
    yield f"{skill.id}: {skill.title}"
    if row.state == "banned":
        yield f"  you do not want it: {row.reason}"
        return
    yield f"  {_one_line(skill.summary)}"
    answered = [b for b in limits if b.kind in skill.triggers]
    if answered:
        first = answered[0]
        yield (
            f"  it removes {first.kind.value.replace('_', ' ')}, which the diagnosis names in {first.kernel}"
            f" with {first.confidence:.0%} confidence"
        )
    elif skill.triggers:
        names = ", ".join(trigger.value.replace("_", " ") for trigger in skill.triggers[:_MOST_SKILLS])
        yield f"  it removes {names}; the diagnosis names none of them"
    yield from _prospects(row, offered)
    yield from _tried_lines(context, skill.id)
    if skill.pitfalls:
        yield f"  beware: {_one_line(skill.pitfalls[0])}"


def pool_lines(context: RoundContext, base: str, skills: Sequence[str]) -> Iterator[str]:
    """Return what earlier runs know of skills."""
    for record in pool_records(context, base, ""):
        if record.skill in skills:
            gain = f", {record.mean_speedup:.2f}x on average" if record.mean_speedup is not None else ""
            yield f"earlier runs: {record.skill} won {record.won} of {record.tried}{gain}"


def _prospects(row: SkillRow, offered: Sequence[Expected]) -> Iterator[str]:
    if offered:
        best = offered[0]
        low, high = best.span
        yield (
            f"  it applies here, as {best.proposal.label}: expected {best.speedup:.2f}x over the head"
            f" ({low:.2f}x to {high:.2f}x); a guess, until it is measured"
        )
    elif row.state == "declined":
        yield f"  it does not apply: {row.reason}"
    elif not row.mechanical:
        yield "  it has no mechanical form: only a model, or you, can apply it"


def _tried_lines(context: RoundContext, skill: str) -> Iterator[str]:
    found: list[Judged] = []
    for event in context.log.events:
        if isinstance(event, Judged) and not event.combined:
            steps = context.proposal(event.proposal).steps
            found += [event] if any(step.skill == skill for step in steps) else []
    for event in found[:_MOST_TRIED]:
        where = f"round {event.round}" if event.round else "by hand"
        yield f"  {where}: {event.label}: {event.verdict.kind.value.replace('_', ' ')}, {event.verdict.reason}"
    if len(found) > _MOST_TRIED:
        yield f"  and {len(found) - _MOST_TRIED} more"


def _observed_lines(context: RoundContext, proposal: str) -> Iterator[str]:
    for event in context.log.events:
        if isinstance(event, Observed) and event.proposal == proposal:
            for each in event.outcomes[:_MOST_METRICS]:
                if each.before is not None and each.after is not None:
                    held = "as predicted" if each.held else f"predicted {each.direction}"
                    yield f"  {each.metric}: {each.before:.4g} -> {each.after:.4g}, {held}"


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _one_line(text: str) -> str:
    return " ".join(text.split())
