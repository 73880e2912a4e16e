"""What the mechanical skills can make of a candidate right now, whether or not a round has asked them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from kernelskill.agents.brief import Brief
from kernelskill.agents.specialist import Offer, propose
from kernelskill.graph import outcomes
from kernelskill.graph.context import RoundContext
from kernelskill.schema.proposal import Proposal, RankedProposal
from kernelskill.schema.run import Member


@dataclass(frozen=True)
class Expected:
    """A proposal with what the policy expects of it."""

    proposal: Proposal
    row: RankedProposal

    @property
    def speedup(self) -> float:
        """Over its base."""
        return exp(self.row.mean)

    @property
    def span(self) -> tuple[float, float]:
        """One standard deviation to both sides."""
        return exp(self.row.mean - self.row.deviation), exp(self.row.mean + self.row.deviation)


class Offers:
    """Asks specialists; costs no device time. Answers are kept as long as nothing changes."""

    def __init__(self, context: RoundContext) -> None:
        self._context = context
        self._known: dict[tuple[str, str, int], Offer] = {}

    def of(self, specialist: str, member: Member) -> Offer:
        """Return what a specialist offers on a candidate."""
        context = self._context
        key = (specialist, member.candidate.digest, len(context.log.events))
        if key not in self._known:
            brief = Brief(
                base=member.candidate,
                lineage=member.lineage,
                task=context.task,
                only_kernel=context.config.only_kernel,
                keep_exact=context.config.keep_exact,
                tried=context.tried(),
                potentials=outcomes.potentials_of(context, member.candidate.digest),
                steering=context.steering,
            )
            self._known[key] = propose(specialist, brief, context.library)
        return self._known[key]

    def expected(self, proposals: Sequence[Proposal], base: str) -> list[Expected]:
        """Return proposals of one base with what the policy expects, the most first."""
        context = self._context
        rows = context.policy.rank(
            proposals,
            {base: context.diagnosis(base).bottlenecks},
            {base: outcomes.features_of(context, base)},
            take=len(proposals),
            rng=np.random.default_rng(context.config.seed),
            potentials={base: outcomes.potentials_of(context, base)},
        )
        by_id = {proposal.id: proposal for proposal in proposals}
        found = [Expected(by_id[row.proposal], row) for row in rows]
        return sorted(found, key=lambda each: (-each.row.mean, each.proposal.id))
