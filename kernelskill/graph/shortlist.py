"""A brief look at everything that was chosen, where device time is limited: only the best get a full evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from kernelskill.errors import RunInterrupted
from kernelskill.graph import outcomes
from kernelskill.graph.context import RoundContext
from kernelskill.schema.evaluation import Evaluation, Verdict, VerdictKind
from kernelskill.schema.event import Evaluated
from kernelskill.schema.proposal import Proposal

MOST_FULL = 3
"""Candidates of a round's slate that get a full evaluation."""
LEAST_SHARE = 0.8
"""Of the best one's ln(speedup): who brings less is passed over."""
MOST_BEHIND = 0.05
"""In ln(speedup), behind the best one: who is farther behind is passed over."""
LEAST_APART = 0.02
"""ln(speedup) with which the best change of another kernel is joined with what gained most."""


def wants_shortlist(context: RoundContext, proposals: Sequence[Proposal]) -> bool:
    """Whether a brief look at all is cheaper than a full one at each."""
    limited = context.budget.device_seconds is not None and context.evaluator.evidence == "measured"
    return limited and len(proposals) > 1


def shortlist(
    context: RoundContext, number: int, proposals: Sequence[Proposal]
) -> tuple[list[Proposal], list[Proposal]]:
    """Time every proposal briefly, until the budget is spent; what the round looked at before counts all the same.

    Returns:
        Those that deserve a full evaluation, the best first, and all that were looked at, in their order. Who is
        not among the first has its brief evaluation in the log, and is judged by it.

    Raises:
        RunInterrupted: The user asked to stop.
    """
    context.evaluator.prefetch([context.request(proposal, depth="cheap") for proposal in proposals])
    found: list[tuple[float, int, Proposal]] = []
    looked: list[Proposal] = []
    for position, proposal in enumerate(proposals):
        if context.stop.is_set:
            raise RunInterrupted("stopped between two evaluations")
        seen = _was_seen(context, number, proposal)
        if not seen and context.is_spent_for_now():
            continue
        evaluation = context.evaluation(proposal, depth="cheap")
        if not seen:
            brief = outcomes.evaluated(number, proposal, evaluation).model_copy(update={"depth": "cheap"})
            context.log.emit(brief)
        looked.append(proposal)
        gain = _gain(context, proposal, evaluation)
        if gain is not None:
            found.append((gain, -position, proposal))
    best_first = sorted(found, key=lambda entry: entry[:2], reverse=True)
    if not best_first:
        return [], looked
    return going_on([(gain, proposal) for gain, _, proposal in best_first]), looked


def going_on(best_first: Sequence[tuple[float, Proposal]]) -> list[Proposal]:
    """Return who gets a full evaluation: the best one, and who is close to it.

    The best of another kernel is not among them: it is evaluated together with the best one, see `set_apart`.

    Args:
        best_first: ln(speedup) and the proposal.
    """
    best, first = best_first[0]
    least = max(0.0, LEAST_SHARE * best, best - MOST_BEHIND)
    close = [proposal for gain, proposal in best_first[1:] if gain > least]
    return [first, *close][:MOST_FULL]


def set_apart(first: Proposal, passed: Sequence[tuple[float, Proposal]]) -> list[Proposal]:
    """Return what adds to the best change of a round: the best of the other kernels of the launcher.

    Args:
        first: What gained most.
        passed: ln(speedup) of what was passed over after a brief look, and the proposal.

    Returns:
        Changes of which no two share a kernel, the larger gain first.
    """
    taken = set(first.kernels)
    found: list[Proposal] = []
    for gain, proposal in sorted(passed, key=lambda entry: -entry[0]):
        if gain > LEAST_APART and proposal.kernels and taken and taken.isdisjoint(proposal.kernels):
            found.append(proposal)
            taken |= proposal.kernels
    return found


def _was_seen(context: RoundContext, number: int, proposal: Proposal) -> bool:
    """Whether the round, or an attempt at it that was stopped, gave a proposal its brief look already."""
    looks = (e for e in context.log.events if isinstance(e, Evaluated) and e.round == number)
    return any(e.candidate == proposal.candidate.digest and e.depth == "cheap" for e in looks)


def passed_over(verdict: Verdict) -> Verdict:
    """Return the verdict of a candidate that had a brief look only: nothing is accepted on that."""
    if verdict.kind is not VerdictKind.ACCEPTED:
        return verdict
    reason = f"passed over after a brief look, others of the round brought more: {verdict.reason}"
    return verdict.model_copy(update={"kind": VerdictKind.PASSED_OVER, "reason": reason})


def _gain(context: RoundContext, proposal: Proposal, evaluation: Evaluation) -> float | None:
    """Return ln(speedup); of what will be refused whatever its time, none: it takes nobody's place."""
    verdict = outcomes.verdict(context, proposal, evaluation)
    return None if verdict.speedup is None else log(verdict.speedup)
