"""Once a kept change has a profile: what became of the predictions of its skills."""

from __future__ import annotations

from kernelskill.graph.context import DIAGNOSES, PROPOSALS, RoundContext
from kernelskill.profiling.predictions import observed_changes
from kernelskill.schema.candidate import Step
from kernelskill.schema.event import Judged, Observed


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
        context.log.emit(
            Observed(
                round=event.round,
                proposal=event.proposal,
                candidate=candidate,
                base=proposal.base,
                outcomes=outcomes,
            )
        )


def changed_kernel(step: Step) -> str:
    """Return the kernel that a step's site begins with."""
    return step.site.partition("/")[0]
