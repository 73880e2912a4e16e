"""Once a kept change has a profile: what became of the predictions of its skills."""

from __future__ import annotations

from kernelskill.graph.context import DIAGNOSES, PROPOSALS, RoundContext
from kernelskill.profiling.predictions import observed_changes
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.candidate import Step
from kernelskill.schema.event import Judged, Observed
from kernelskill.schema.experience import Foretold
from kernelskill.schema.proposal import MetricOutcome


def observe(context: RoundContext, candidate: str) -> None:
    """Say what the changes that led to a profiled candidate did to the metrics that they speak of.

    Nothing for the original, for a change that predicts nothing, and where the base has no profile.
    """
    led_here = [e for e in context.log.events if isinstance(e, Judged) and e.candidate == candidate]
    for event in led_here:
        if not context.run.has(PROPOSALS, event.proposal):
            continue
        proposal = context.proposal(event.proposal)
        if not proposal.predicted_metrics or not context.run.has(DIAGNOSES, proposal.base):
            continue
        outcomes = observed_changes(
            proposal.predicted_metrics,
            context.diagnosis(proposal.base).profile,
            context.diagnosis(candidate).profile,
            {changed_kernel(step) for step in proposal.steps},
        )
        _keep(context, event.proposal, candidate, outcomes)
        context.log.emit(
            Observed(
                round=event.round,
                proposal=event.proposal,
                candidate=candidate,
                base=proposal.base,
                outcomes=outcomes,
            )
        )


def _keep(context: RoundContext, proposal: str, candidate: str, outcomes: tuple[MetricOutcome, ...]) -> None:
    """Give the pool what became of the predictions, for `kernelskill report --pool`."""
    if context.pool is None:
        return
    traced = context.diagnosis(candidate).profile.source == "trace"
    context.pool.record_foretold(
        Foretold(
            id=sha256_text(canonical_json([context.run_id, proposal, candidate, outcome.canonical()])),
            task=context.task.name,
            gpu=context.evaluator.gpu.name,
            evidence="estimated" if traced else "measured",
            outcome=outcome,
        )
        for outcome in outcomes
        if outcome.skill
    )


def changed_kernel(step: Step) -> str:
    """Return the kernel that a step's site begins with."""
    return step.site.partition("/")[0]
