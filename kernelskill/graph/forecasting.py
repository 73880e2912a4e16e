"""Forecasts in a round: what the emulated device gives the likeliest proposals, before a GPU looks at any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np

from kernelskill.agents.families import Values, far_points, size_of, steps_at
from kernelskill.evaluation.forecasts import Forecasting
from kernelskill.graph.context import PROPOSALS, RoundContext
from kernelskill.graph.points import made_point
from kernelskill.policy.rank import choose
from kernelskill.schema.proposal import Proposal, RankedProposal
from kernelskill.schema.run import Member

GOOD_GAIN = 0.2
"""ln(speedup) at its first values with which a family needs no second look."""
LEAST_SPACE = 8
"""Points of a family worth a second look."""
MOST_DOUBTFUL = 4
BETTER_START = 0.05
"""ln(speedup) by which another first point of a family must promise more, to be taken instead."""


def wants_forecasts(context: RoundContext) -> bool:
    """Whether an estimate may save device time: it is limited, it is measured, and the evaluator can tell."""
    limited = context.budget.device_seconds is not None and context.evaluator.evidence == "measured"
    return limited and context.config.forecasts > 0 and isinstance(context.evaluator, Forecasting)


def likeliest(ranked: Sequence[RankedProposal], proposals: Sequence[Proposal], most: int) -> list[Proposal]:
    """Return the proposals that could gain most by what is known, spread over skills."""
    places = {row.proposal: row.mean + row.deviation for row in ranked}
    hopes = np.array([places[proposal.id] for proposal in proposals])
    return [proposals[index] for index in choose(hopes, proposals, most)]


@dataclass(frozen=True)
class Outlook:
    """What forecasts say of a slate."""

    gains: dict[str, float]
    """Id of a proposal to ln(estimated speedup over its base)."""
    moved: dict[str, Proposal]
    """Id of a family to the same family, begun at the point of it that promises more than its first values."""


def outlook(
    context: RoundContext, proposals: Sequence[Proposal], ranked: Sequence[RankedProposal]
) -> Outlook:
    """Forecast proposals, and of families that begin badly also the far points of their space.

    First values are made for large sizes; a family that brings nothing there may be the best for small ones.
    """
    gains = forecast_gains(context, proposals)
    hopes = {row.proposal: row.mean + row.deviation for row in ranked}
    doubtful = [
        p for p in proposals if size_of(p.choices) >= LEAST_SPACE and gains.get(p.id, GOOD_GAIN) < GOOD_GAIN
    ]
    doubtful.sort(key=lambda proposal: -hopes[proposal.id])
    begun = [
        (family.id, elsewhere)
        for family in doubtful[:MOST_DOUBTFUL]
        for values in far_points(family.choices)
        if (elsewhere := _begun_at(context, family, values)) is not None
    ]
    told = forecast_gains(context, [elsewhere for _, elsewhere in begun])
    starts = better_starts([(family, elsewhere.id) for family, elsewhere in begun], gains, told)
    moved = {family: elsewhere for family, elsewhere in begun if starts.get(family) == elsewhere.id}
    for elsewhere in moved.values():
        context.run.put(PROPOSALS, elsewhere.id, elsewhere)
    return Outlook({**gains, **told}, moved)


def better_starts(
    begun: Sequence[tuple[str, str]], gains: Mapping[str, float], told: Mapping[str, float]
) -> dict[str, str]:
    """Return the families that had better begin elsewhere, each with the id of the best such beginning.

    Args:
        begun: Families and other beginnings of theirs, by id.
        gains: ln(speedup) that forecasts give families at their first values.
        told: The same of the other beginnings.
    """
    found: dict[str, str] = {}
    for family, elsewhere in sorted(begun, key=lambda pair: told.get(pair[1], -inf)):
        if told.get(elsewhere, -inf) >= max(0.0, gains.get(family, 0.0)) + BETTER_START:
            found[family] = elsewhere
    return found


def _begun_at(context: RoundContext, family: Proposal, values: Values) -> Proposal | None:
    """Return a family with another first point, or None where it cannot be applied."""
    point = made_point(context, family, steps_at(family.steps, family.choices, values))
    if not isinstance(point, Proposal):
        return None
    own = ("candidate", "steps", "exactness", "assumptions")
    return family.model_copy(update={name: getattr(point, name) for name in own})


def _measured_s(member: Member) -> float:
    return member.evaluation.timings[0].median_ms / 1e3


def forecast_gains(
    context: RoundContext, proposals: Sequence[Proposal], *, spills: bool = True
) -> dict[str, float]:
    """Return ln(estimated speedup over its base) by id of a proposal, of those that the emulated device can tell.

    A base that it cannot trace counts with its measured time: the estimates are of that size too. Forecasts end with
    the budget and with the user's patience; what is not told by then has no gain.

    Args:
        context: Of the round.
        proposals: What is asked about.
        spills: Whether to tell also of those that spill more registers than their base.
    """
    evaluator = context.evaluator
    if not isinstance(evaluator, Forecasting) or not proposals:
        return {}
    bases = {proposal.base: context.member(proposal.base) for proposal in proposals}
    candidates = {member.candidate.digest: member.candidate for member in bases.values()}
    candidates |= {proposal.candidate.digest: proposal.candidate for proposal in proposals}
    found = evaluator.forecasts(
        list(candidates.values()), lambda: not (context.stop.is_set or context.is_spent_for_now())
    )
    gains: dict[str, float] = {}
    for proposal in proposals:
        told, base = found[proposal.candidate.digest], found[proposal.base]
        after, before = told.seconds, base.seconds or _measured_s(bases[proposal.base])
        may_spill = spills or told.spilled_bytes <= base.spilled_bytes
        if may_spill and after is not None and after > 0 and before > 0:
            gains[proposal.id] = log(before / after)
    return gains
