"""Gather what a model is told about a base from the records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from kernelskill.agents.situation import Attempt, FittingSkill, PoolRecord, Situation
from kernelskill.agents.verifier import permitted
from kernelskill.graph import outcomes
from kernelskill.graph.context import OFFERS, RoundContext
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.event import Evaluated, Judged, Proposed
from kernelskill.schema.experience import Experience

MOST_SKILLS = 3
MOST_POOL = 8
MOST_TRIED = 40
_LATEST = 600
"""Outcomes of the pool that are looked at."""
_OFFERED_WEIGHT, _DECLINED_WEIGHT = 0.6, 0.3
"""A skill whose mechanical form applies is tried anyway; one that declined rarely fits at all."""
_UNTRIGGERED = 0.05


def situation_of(
    context: RoundContext,
    base: str,
    specialist: str,
    offers: Sequence[str],
    *,
    direction: str = "",
    skill: str = "",
    is_free: bool = False,
) -> Situation:
    """Return what a specialist's model is told about a base.

    Args:
        context: The run.
        base: Digest of the candidate to start from.
        specialist: Name of the specialist; empty for the planner, which sees the skills of all.
        offers: Names of this round's mechanical offers.
        direction: What the planner asked for.
        skill: Id of the skill that it chose; shown first.
        is_free: Whether it is an idea outside those allowed.
    """
    member = context.member(base)
    mechanical = [context.run.get(OFFERS, name, Proposed) for name in offers]
    mechanical = [offer for offer in mechanical if offer.base == base and offer.origin == "mechanical"]
    fitting = fitting_skills(context, base, specialist, mechanical)
    fitting = tuple(sorted(fitting, key=lambda each: each.skill.id != skill))
    return Situation(
        task=context.task,
        base=member.candidate,
        speedup=member.speedup,
        evidence=context.evaluator.evidence,
        gpu=context.evaluator.gpu,
        diagnosis=context.diagnosis(base),
        timings=member.evaluation.timings,
        potentials=outcomes.potentials_of(context, base),
        skills=fitting[:MOST_SKILLS] if specialist else fitting,
        pool=pool_records(context, base, specialist),
        others=_notes(context, specialist, mechanical),
        tried=attempts(context),
        only_kernel=context.config.only_kernel,
        wishes=context.steering.lines(),
        direction=direction,
        is_free=is_free,
        answer_tokens=context.config.answer_tokens,
        structured=not context.answers_by_hand,
    )


def fitting_skills(
    context: RoundContext, base: str, specialist: str, offers: Sequence[Proposed]
) -> tuple[FittingSkill, ...]:
    """Return the skills that answer the diagnosis, the best fitting first."""
    confidence: dict[str, float] = {}
    for limit in context.diagnosis(base).bottlenecks:
        confidence[limit.kind.value] = max(limit.confidence, confidence.get(limit.kind.value, 0.0))
    features = outcomes.features_of(context, base)
    offered = {
        step.skill for offer in offers for p in offer.proposals for step in context.proposal(p).steps[:1]
    }
    declined = {r.skill: r.reason for offer in offers for r in reversed(offer.refusals)}
    found: list[tuple[float, FittingSkill]] = []
    for skill in context.library.all():
        if specialist and skill.specialist != specialist:
            continue
        if context.steering.declines(skill.id):
            continue
        if permitted(skill.exactness, context.task, keep_exact=context.config.keep_exact):
            continue
        if any(features.get(f"source.{name}", 0.0) <= 0 for name in skill.features):
            continue
        fit = max((confidence.get(trigger.value, 0.0) for trigger in skill.triggers), default=_UNTRIGGERED)
        reason = declined.get(skill.id, "") if skill.mechanical else ""
        weight = _OFFERED_WEIGHT if skill.id in offered else _DECLINED_WEIGHT if reason else 1.0
        score = fit * skill.prior.log_speedup * weight
        if score > 0:
            found.append((score, FittingSkill(skill, reason, offered=skill.id in offered)))
    return tuple(each for _, each in sorted(found, key=lambda pair: (-pair[0], pair[1].skill.id)))


def attempts(context: RoundContext) -> tuple[Attempt, ...]:
    """Return what was judged in this run, the latest last."""
    specialists = {e.proposal: e.specialist for e in context.log.events if isinstance(e, Evaluated)}
    judged = [e for e in context.log.events if isinstance(e, Judged)]
    return tuple(
        Attempt(
            round=event.round,
            specialist=specialists.get(event.proposal, ""),
            label=event.label,
            outcome=f"{event.verdict.kind.value}, {event.verdict.reason}",
            gain=event.verdict.speedup,
            won=event.verdict.kind is VerdictKind.ACCEPTED,
        )
        for event in judged[-MOST_TRIED:]
    )


def pool_records(context: RoundContext, base: str, specialist: str) -> tuple[PoolRecord, ...]:
    """Return how skills have done where the same limit came first; if nothing is known of that, anywhere."""
    limits = context.diagnosis(base).bottlenecks
    if context.pool is None or not limits:
        return ()
    measured: tuple[Evidence, ...] = ("none", "measured")
    kinds = measured if context.evaluator.evidence == "measured" else (*measured, "estimated")
    wanted = f"bottleneck.{limits[0].kind.value}"
    known: dict[str, bool] = {}
    rows: dict[str, list[Experience]] = {}
    anywhere: dict[str, list[Experience]] = {}
    for row in context.pool.experiences(evidence=kinds, limit=_LATEST)[-_LATEST:]:
        if specialist and row.specialist != specialist:
            continue
        if row.slate not in known:
            slate = context.pool.slate(row.slate)
            known[row.slate] = slate is not None and _is_first(dict(slate.context), wanted)
        name = " + ".join(dict.fromkeys(step.skill for step in row.steps)) or "a model's change"
        anywhere.setdefault(name, []).append(row)
        if known[row.slate]:
            rows.setdefault(name, []).append(row)
    records = [_pool_record(name, found, same=bool(rows)) for name, found in (rows or anywhere).items()]
    return tuple(sorted(records, key=lambda r: (-r.tried, r.skill))[:MOST_POOL])


def _is_first(context: Mapping[str, float], wanted: str) -> bool:
    limits = {name: value for name, value in context.items() if name.startswith("bottleneck.")}
    return wanted in limits and limits[wanted] >= max(limits.values())


def _pool_record(skill: str, rows: Sequence[Experience], *, same: bool) -> PoolRecord:
    gains = [row.log_speedup for row in rows if row.log_speedup is not None]
    failures = [row.detail for row in rows if row.log_speedup is None and row.detail]
    return PoolRecord(
        skill=skill,
        tried=len(rows),
        won=sum(row.verdict is VerdictKind.ACCEPTED for row in rows),
        mean_speedup=exp(sum(gains) / len(gains)) if gains else None,
        last_failure=failures[-1] if failures else "",
        same_limit=same,
    )


def _notes(context: RoundContext, specialist: str, offers: Sequence[Proposed]) -> tuple[str, ...]:
    """Return a line on each other specialist: what it offers now, and how its last change ended."""
    last = {attempt.specialist: attempt for attempt in attempts(context)}
    notes = []
    for offer in offers:
        if offer.specialist == specialist:
            continue
        labels = ", ".join(offer.labels[:3]) or "nothing"
        text = f"{offer.specialist} offers without a model: {labels}"
        if len(offer.labels) > 3:
            text += f" and {len(offer.labels) - 3} more"
        if offer.specialist in last:
            text += f"; its last change, {last[offer.specialist].label}, was {last[offer.specialist].outcome}"
        notes.append(text)
    return tuple(notes)
