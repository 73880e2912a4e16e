"""PointTrial, ParameterSearch: what the search over a proposal's parameters tried and found."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Step
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Status, VerdictKind

PointOutcome = Literal["kept", "timed", "failed", "pruned", "refused", "known"]
"""`kept`: goes on to the full stage; `timed`: right, but others were faster; `failed`: does not build or
is wrong; `pruned`: its resources rule it out; `refused`: the skill declined; `known`: it was tried before
or is the same source as another point."""


class PointTrial(Record):
    """One point of a parameter space."""

    steps: tuple[Step, ...]
    proposal: str = ""
    """`Proposal.id`; empty where the steps could not be applied."""
    candidate: str = ""
    """Digest of what the steps make of the base."""
    outcome: PointOutcome
    detail: str = ""
    evaluation: str = ""
    """Key of the cheap evaluation, where there is one."""
    status: Status | None = None
    verdict: VerdictKind | None = None
    """Of the cheap evaluation; it never decides about the frontier."""
    log_speedup: float | None = None
    """ln(base time / point's time) at the cheap stage."""
    case_gains: tuple[float, ...] = ()
    """The same of every timed case by itself."""
    evidence: Evidence = "none"


class ParameterSearch(Record):
    """The search over one family's parameters in one round."""

    slate: str
    """Id of the slate that holds every point with its features."""
    family: str
    """Id of the proposal that was chosen in the round's slate."""
    points: int
    """Size of the space."""
    trials: tuple[PointTrial, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """Ids of the proposals that go on to the full stage, the best first."""
        kept = [trial for trial in self.trials if trial.outcome == "kept"]
        return tuple(t.proposal for t in sorted(kept, key=lambda trial: -(trial.log_speedup or 0.0)))

    @property
    def goes_on(self) -> tuple[str, ...]:
        """Ids for the full stage: those kept, or one that shows why no point is right."""
        failed = [trial.proposal for trial in self.trials if trial.outcome == "failed"]
        return self.kept or tuple(failed[:1])

    @property
    def built(self) -> int:
        """Number of points that were built and cost device time."""
        return sum(bool(trial.evaluation) for trial in self.trials)

    def count(self, *outcomes: PointOutcome) -> int:
        """Return how many points ended so."""
        return sum(trial.outcome in outcomes for trial in self.trials)
