"""Forecasts in a round: what the emulated device gives the likeliest proposals, before a GPU looks at any."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from kernelskill.evaluation.forecasts import Forecasting
from kernelskill.graph.context import RoundContext
from kernelskill.policy.rank import choose
from kernelskill.schema.proposal import Proposal, RankedProposal


def wants_forecasts(context: RoundContext) -> bool:
    """Whether an estimate may save device time: it is limited, it is measured, and the evaluator can tell."""
    limited = context.budget.device_seconds is not None and context.evaluator.evidence == "measured"
    return limited and context.config.forecasts > 0 and isinstance(context.evaluator, Forecasting)


def likeliest(ranked: Sequence[RankedProposal], proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Return the proposals that could gain most by what is known, spread over skills."""
    places = {row.proposal: row.mean + row.deviation for row in ranked}
    hopes = np.array([places[proposal.id] for proposal in proposals])
    return [proposals[index] for index in choose(hopes, proposals, most)]


def forecast_gains(context: RoundContext, proposals: Sequence[Proposal]) -> dict[str, float]:
    """Return ln(estimated speedup over its base) by id of a proposal, of those that the emulated device can tell.

    A base that it cannot trace counts with its measured time: the estimates are of that size too.
    """
    evaluator = context.evaluator
    if not isinstance(evaluator, Forecasting) or not proposals:
        return {}
    bases = {proposal.base: context.member(proposal.base) for proposal in proposals}
    candidates = {member.candidate.digest: member.candidate for member in bases.values()}
    candidates |= {proposal.candidate.digest: proposal.candidate for proposal in proposals}
    found = evaluator.forecasts(list(candidates.values()))
    gains: dict[str, float] = {}
    for proposal in proposals:
        after = found[proposal.candidate.digest].seconds
        before = found[proposal.base].seconds or bases[proposal.base].evaluation.timings[0].median_ms / 1e3
        if after is not None and after > 0 and before > 0:
            gains[proposal.id] = log(before / after)
    return gains
