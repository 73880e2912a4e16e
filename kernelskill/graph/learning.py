"""What a round teaches: an experience for every proposal that was ranked and tried, and for every point."""

from __future__ import annotations

from math import log
from typing import Any

from kernelskill import __version__
from kernelskill.graph.context import SEARCHES, SLATES, RoundContext
from kernelskill.graph.state import RoundState
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.chat_event import Preferred
from kernelskill.schema.event import Judged, Ranked, Searched
from kernelskill.schema.experience import Experience, Preference
from kernelskill.schema.proposal import RankedProposal, Slate
from kernelskill.schema.search import ParameterSearch, PointTrial

STATED_WEIGHT = 3.0
"""Of a preference that the user stated; a clear outcome counts as 1."""


def experiences(context: RoundContext, state: RoundState) -> list[Experience]:
    """Return the outcomes of a round.

    A family's outcome in the round's slate is that of its best point, with that point's features.
    Every point that was timed or failed has an outcome of its own in the slate of the points.
    """
    number = state["round"]
    slates = [context.run.get(SLATES, identity, Slate) for identity in _slates(context, state)]
    judged = {event.proposal: event for event in context.judgements(number)}
    found = []
    owners: dict[str, RankedProposal] = {}
    rows = {ranked.proposal: ranked for slate in slates for ranked in slate.ranked}
    of_slate = {ranked.proposal: slate for slate in slates for ranked in slate.ranked}
    for search in _searches(context, number):
        points = context.run.get(SLATES, search.slate, Slate)
        by_steps = {row.steps: row for row in points.ranked}
        for trial in search.trials:
            row = by_steps.get(trial.steps)
            if row is None:
                continue
            if trial.proposal in search.goes_on:
                # Both slates see the same steps and features; only what stood beside them differs.
                owners[trial.proposal] = row.model_copy(update={"proposal": search.family})
            outcome = _of_trial(context, points, row, trial, judged.get(trial.proposal))
            if outcome is not None:
                found.append(outcome)
    best: dict[str, tuple[RankedProposal, Judged]] = {}
    for identity, event in judged.items():
        owner = owners.get(identity) or rows.get(identity)
        if owner is None:
            continue
        known = best.get(owner.proposal)
        if known is None or (event.verdict.speedup or 0.0) > (known[1].verdict.speedup or 0.0):
            best[owner.proposal] = (owner, event)
    own = [_of_judged(context, of_slate[name], row, event) for name, (row, event) in best.items()]
    return [*own, *found]


def learn_again(context: RoundContext, rounds: int) -> None:
    """Teach the policy what the first `rounds` rounds of this run brought, as they did when they ran."""
    for number in range(1, rounds + 1):
        slates = [e.slate for e in context.log.events if isinstance(e, Ranked) and e.round == number]
        if slates:
            state: RoundState = {"round": number, "slate": slates[-1]}
            context.policy.update(experiences(context, state))


def stated_preferences(context: RoundContext) -> list[Preference]:
    """Return what the user said of pairs of proposals; of the same pair, the last word counts."""
    chosen: dict[frozenset[str], Preferred] = {}
    for event in context.log.events:
        if isinstance(event, Preferred):
            pair = frozenset((event.better, event.worse))
            chosen.pop(pair, None)
            chosen[pair] = event
    found = []
    for event in chosen.values():
        rows = {row.proposal: row for row in context.run.get(SLATES, event.slate, Slate).ranked}
        found.append(
            Preference(
                context=event.slate,
                better=rows[event.better].features,
                worse=rows[event.worse].features,
                weight=STATED_WEIGHT,
                evidence="none",
            )
        )
    return found


def _slates(context: RoundContext, state: RoundState) -> list[str]:
    """Return the slates of a round: its own, and those of later answers of a model."""
    ranked = [e for e in context.log.events if isinstance(e, Ranked) and e.round == state["round"]]
    # A round that was ended before anything was ranked has none.
    return list(dict.fromkeys([*(event.slate for event in ranked), *filter(None, [state["slate"]])]))


def _searches(context: RoundContext, number: int) -> list[ParameterSearch]:
    events = [e for e in context.log.events if isinstance(e, Searched) and e.round == number]
    return [context.run.get(SEARCHES, event.slate, ParameterSearch) for event in events]


def _of_judged(context: RoundContext, slate: Slate, row: RankedProposal, event: Judged) -> Experience:
    evaluation = context.evaluation(context.proposal(event.proposal))
    gain = event.verdict.speedup
    return _experience(
        context,
        slate,
        row,
        {
            "status": evaluation.status,
            "verdict": event.verdict.kind,
            "log_speedup": None if gain is None else log(gain),
            "evidence": event.verdict.evidence,
            "detail": event.verdict.reason[:400],
        },
    )


def _of_trial(
    context: RoundContext, slate: Slate, row: RankedProposal, trial: PointTrial, event: Judged | None
) -> Experience | None:
    """Return what a point was worth: by the full stage where it got there, else by the cheap one."""
    if event is not None:
        return _of_judged(context, slate, row, event)
    if trial.verdict is None:
        return None
    return _experience(
        context,
        slate,
        row,
        {
            "status": trial.status,
            "verdict": trial.verdict,
            "log_speedup": trial.log_speedup,
            "evidence": trial.evidence,
            "detail": trial.detail[:400],
        },
    )


def _experience(
    context: RoundContext, slate: Slate, row: RankedProposal, outcome: dict[str, Any]
) -> Experience:
    return Experience(
        id=sha256_text(canonical_json([slate.id, row.proposal]))[:24],
        slate=slate.id,
        proposal=row.proposal,
        task=context.task.name,
        round=slate.round,
        steps=row.steps,
        specialist=row.specialist,
        features=row.features,
        schema_version=slate.schema_version,
        gpu=context.evaluator.gpu.name,
        kernelskill=__version__,
        predicted=row.mean,
        **outcome,
    )
