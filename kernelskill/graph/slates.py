"""The slates of a round: its own, and one for every later turn in which a model's answers came."""

from __future__ import annotations

from functools import partial

import numpy as np

from kernelskill.graph import outcomes
from kernelskill.graph.context import SLATES, RoundContext
from kernelskill.graph.forecasting import likeliest, outlook, wants_forecasts
from kernelskill.graph.state import RoundState
from kernelskill.policy.features import FEATURE_NAMES, SCHEMA_VERSION
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.event import Proposed
from kernelskill.schema.proposal import Refusal, Slate

LEAST_ANSWERED = 3
"""Places of a model's answers: each of three specialists may have one, however small the slate."""


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
    offered = {p for event in offers for p in event.proposals}
    proposals = [context.proposal(p) for p in sorted(offered)]
    diagnoses = {base: context.diagnosis(base) for base in state["bases"]}
    contexts = {base: outcomes.features_of(context, base) for base in diagnoses}
    steering, ranked = context.steering, []
    # A model's answers were paid for and have places of their own; the others keep what they had without it.
    for mechanical in (True, False):
        group = [p for p in proposals if (p.origin != "model") is mechanical]
        rank = partial(
            context.policy.rank,
            bottlenecks={base: d.bottlenecks for base, d in diagnoses.items()},
            contexts=contexts,
            take=context.config.slate if mechanical else max(context.config.slate, LEAST_ANSWERED),
            potentials={base: outcomes.potentials_of(context, base) for base in diagnoses},
        )
        shifts = {proposal.id: steering.shift(proposal) for proposal in group}
        rows = rank(group, shifts=shifts, rng=_draws(context, number, turn, mechanical=mechanical))
        if mechanical and len(rows) > 1 and wants_forecasts(context):
            seen = outlook(context, likeliest(rows, group, context.config.forecasts), rows)
            group = list({p.id: p for p in (seen.moved.get(p.id, p) for p in group)}.values())
            shifts = {proposal.id: steering.shift(proposal) for proposal in group}
            rng = _draws(context, number, turn, mechanical=mechanical)
            rows = rank(group, shifts=shifts, rng=rng, forecasts=seen.gains)
        ranked += rows
    return Slate(
        id=identity,
        run=context.run_id,
        round=number,
        context=tuple(sorted(contexts[state["bases"][0]].items())),
        feature_names=FEATURE_NAMES,
        schema_version=SCHEMA_VERSION,
        policy=context.policy.name,
        ranked=tuple(ranked),
        refusals=_refusals(offers),
    )


def _draws(context: RoundContext, number: int, turn: int, *, mechanical: bool) -> np.random.Generator:
    seed = [context.config.seed, number]
    return np.random.default_rng(seed if mechanical else [*seed, 1, turn])


def _offers(context: RoundContext, number: int, turn: int) -> list[Proposed]:
    return [e for e in context.log.events if isinstance(e, Proposed) and (e.round, e.turn) == (number, turn)]


def _refusals(offers: list[Proposed]) -> tuple[Refusal, ...]:
    return tuple(refusal for event in offers for refusal in event.refusals)
