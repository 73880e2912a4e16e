"""Offer a candidate that chooses between two others by the sizes, where their timed cases disagree."""

from __future__ import annotations

from math import log1p

from kernelskill.evaluation.judge import Margins
from kernelskill.graph.context import MEMBERS, PROPOSALS, RoundContext
from kernelskill.schema.event import Note
from kernelskill.schema.proposal import Effect, Exactness, Proposal
from kernelskill.schema.run import Member
from kernelskill.search.per_case import Split, find_split
from kernelskill.skills.apply import strictest
from kernelskill.skills.size_dispatch import dispatch_on_size
from kernelskill.skills.transformation import SkillRefused

COORDINATOR = "coordinator"
_DEVIATION = 0.05


def dispatched(context: RoundContext, number: int, bases: list[str], frontier: tuple[str, ...]) -> list[str]:
    """Return the ids of what is offered: one candidate, or none.

    Args:
        context: The run.
        number: The round.
        bases: Digests of the candidates that it started from.
        frontier: Digests of the members before it.
    """
    if len(context.task.timed_cases) < 2:
        return []
    judged = [event.candidate for event in context.judgements(number)]
    digests = dict.fromkeys([*frontier, *bases, *judged])
    members = [context.member(digest) for digest in digests if context.run.has(MEMBERS, digest)]
    members = [m for m in members if m.candidate.digest in bases or not _is_unwanted(context, m)]
    estimated = context.evaluator.evidence == "estimated"
    margin = Margins().estimate if estimated else 2 * Margins().least_gain
    split = find_split(context.task, members, _sizes(context), log1p(margin))
    if split is None:
        return []
    proposal = _proposal(context, number, split)
    if proposal is None or proposal.candidate.digest in context.tried():
        return []
    context.run.put(PROPOSALS, proposal.id, proposal)
    return [proposal.id]


def _is_unwanted(context: RoundContext, member: Member) -> bool:
    """Return whether a candidate holds a change that the user does not want."""
    return bool(context.steering.declines_steps(member.lineage.steps))


def _proposal(context: RoundContext, number: int, split: Split) -> Proposal | None:
    general, special, task = split.general, split.special, context.task
    try:
        candidate = dispatch_on_size(
            general.candidate, special.candidate, task.signature.symbol, split.condition, task.flags
        )
    except SkillRefused as refused:
        text = f"sizes where {split.condition.text} want another variant: {refused.reason}"
        context.log.emit(Note(round=number, text=text))
        return None
    steps = special.lineage.steps
    names = " + ".join(step.label for step in steps) or "the original"
    return Proposal(
        base=general.candidate.digest,
        candidate=candidate,
        specialist=COORDINATOR,
        origin="combined",
        steps=(),
        predicted=Effect(log_speedup=split.gain, deviation=_DEVIATION),
        exactness=_exactness(context, special),
        assumptions=tuple(dict.fromkeys((*general.assumptions, *special.assumptions))),
        rationale=f"where {split.condition.text}: {names}",
    )


def _exactness(context: RoundContext, special: Member) -> Exactness:
    """Return how the special variant may change results, by the skills on its way."""
    if special.exact:
        return Exactness.EXACT
    known = [context.library.get(step.skill).exactness for step in special.lineage.steps]
    return strictest([Exactness.ROUNDING, *known])


def _sizes(context: RoundContext) -> dict[int, dict[str, int]]:
    integers = {
        parameter.name
        for parameter in context.task.signature.parameters
        if parameter.kind == "scalar" and parameter.element and "int" in parameter.element.dtype
    }
    shapes = context.member(context.task.original).evaluation.shapes
    return {
        shape.case: {
            name: value
            for name, value in shape.scalars.items()
            if name in integers and isinstance(value, int) and not isinstance(value, bool)
        }
        for shape in shapes
    }
