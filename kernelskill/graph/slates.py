"""The slates of a round: its own, and one for every later turn in which a model's answers came.

A slate holds all that may be tried at that moment, whoever offered it: one policy ranks it, and its places go to
the best. An answer of a model that is not among them is tried as well, since it was paid for and speaks of its own
base only; a mechanical proposal is offered again in the next round.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kernelskill.graph import outcomes
from kernelskill.graph.context import SLATES, RoundContext
from kernelskill.graph.forecasting import likeliest, outlook, wants_forecasts
from kernelskill.graph.state import RoundState
from kernelskill.policy.features import FEATURE_NAMES, SCHEMA_VERSION
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.event import Proposed, Ranked
from kernelskill.schema.proposal import Proposal, RankedProposal, Refusal, Slate

MOST_ASKED = 24
"""Proposals of a slate whose forecasts were asked for, from which on no more are."""
LEAST_ANSWERED = 3
"""Answers that a turn tries: one of each of three specialists, however small the slate."""


def ranked_slate(context: RoundContext, state: RoundState) -> Slate:
    """Rank all that is offered in a turn; the same turn of the same run always gives the same slate."""
    # A run that was begun by an earlier version has no turns in its checkpoint.
    number, turn = state["round"], state.get("turn", 0)
    # A round's own slate keeps the name that it had before rounds had turns.
    parts = [context.run_id, number, "turn", turn] if turn else [context.run_id, number]
    identity = sha256_text(canonical_json(parts))[:16]
    if context.run.has(SLATES, identity):
        return context.run.get(SLATES, identity, Slate)
    offers = _offers(context, number, turn)
    fresh = {p for event in offers for p in event.proposals}
    offered = fresh | (_left_over(context, number) if turn else set())
    proposals = [context.proposal(p) for p in sorted(offered)]
    answers = sum(p.origin == "model" for p in proposals if p.id in fresh)
    tried = min(answers, max(context.config.slate, LEAST_ANSWERED))
    return Slate(
        id=identity,
        run=context.run_id,
        round=number,
        context=tuple(sorted(outcomes.features_of(context, state["bases"][0]).items())),
        feature_names=FEATURE_NAMES,
        schema_version=SCHEMA_VERSION,
        policy=context.policy.name,
        ranked=tuple(_ranked(context, number, turn, proposals, tried)),
        refusals=_refusals(offers),
    )


def _ranked(
    context: RoundContext, number: int, turn: int, proposals: list[Proposal], answers: int
) -> list[RankedProposal]:
    """Return all proposals in the order of the policy; so many answers are tried in any case."""
    # An answer that came after its round may start from a candidate that no longer leads.
    bases = {proposal.base for proposal in proposals}
    rank = partial(
        context.policy.rank,
        bottlenecks={base: context.diagnosis(base).bottlenecks for base in bases},
        contexts={base: outcomes.features_of(context, base) for base in bases},
        # The round's own places are given in its first turn; later answers open as many as they are.
        take=answers if turn else context.config.slate,
        paid={proposal.id for proposal in proposals if proposal.origin == "model"},
        least_paid=answers,
        potentials={base: outcomes.potentials_of(context, base) for base in bases},
    )
    steering = context.steering
    shifts = {proposal.id: steering.shift(proposal) for proposal in proposals}
    rows = rank(proposals, shifts=shifts, rng=_draws(context, number, turn))
    if len(rows) < 2 or not wants_forecasts(context):
        return rows
    gains: dict[str, float] = {}
    asked: set[str] = set()
    unasked = likeliest(rows, proposals, context.config.forecasts)
    while unasked and len(asked) < MOST_ASKED:
        seen = outlook(context, unasked, rows)
        gains |= seen.gains
        proposals = list({p.id: p for p in (seen.moved.get(p.id, p) for p in proposals)}.values())
        asked |= {proposal.id for proposal in unasked} | {moved.id for moved in seen.moved.values()}
        shifts = {proposal.id: steering.shift(proposal) for proposal in proposals}
        rows = rank(proposals, shifts=shifts, rng=_draws(context, number, turn), forecasts=gains)
        # A place goes to nobody whose forecast was not asked for: a prior alone is easily too high.
        chosen = {row.proposal for row in rows if row.chosen}
        unasked = [p for p in proposals if p.id in chosen and p.id not in asked]
    return rows


def _left_over(context: RoundContext, number: int) -> set[str]:
    """Return what this round offered already, had no place for, and was not tried since."""
    ranked = [e for e in context.log.events if isinstance(e, Ranked) and e.round == number]
    rows = [row for event in ranked for row in context.run.get(SLATES, event.slate, Slate).ranked]
    chosen = {row.proposal for row in rows if row.chosen}
    tried = context.tried()
    return {
        row.proposal
        for row in rows
        if row.proposal not in chosen and context.proposal(row.proposal).candidate.digest not in tried
    }


def _draws(context: RoundContext, number: int, turn: int) -> np.random.Generator:
    seed = [context.config.seed, number]
    return np.random.default_rng([*seed, 1, turn] if turn else seed)


def _offers(context: RoundContext, number: int, turn: int) -> list[Proposed]:
    return [e for e in context.log.events if isinstance(e, Proposed) and (e.round, e.turn) == (number, turn)]


def _refusals(offers: list[Proposed]) -> tuple[Refusal, ...]:
    return tuple(refusal for event in offers for refusal in event.refusals)
