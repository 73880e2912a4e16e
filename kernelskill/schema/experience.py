"""Experience and Preference: what happened when a proposal met a context."""

from __future__ import annotations

from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Step
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Status, VerdictKind
from kernelskill.schema.proposal import MetricOutcome


class Experience(Record):
    """One outcome, won or lost."""

    id: str
    """Digest over slate and proposal: recording it twice changes nothing."""
    slate: str
    proposal: str
    task: str
    """Task name, for people."""
    round: int
    steps: tuple[Step, ...]
    specialist: str
    features: tuple[float, ...]
    """The proposal's row of the slate."""
    schema_version: int
    status: Status
    verdict: VerdictKind
    log_speedup: float | None
    """ln(incumbent time / candidate time); None where nothing was timed."""
    evidence: Evidence
    gpu: str
    kernelskill: str
    """Version that recorded it."""
    predicted: float
    """Expected ln(speedup) at the time of the decision."""
    detail: str = ""


class Preference(Record):
    """Two outcomes of one context of which the first is better."""

    context: str
    """Slate id."""
    better: tuple[float, ...]
    worse: tuple[float, ...]
    weight: float
    """How clearly: grows with the difference of ln(speedup)."""
    evidence: Evidence


class Foretold(Record):
    """What became of one prediction of a skill, once the change was profiled."""

    id: str
    """Digest over run, proposal, candidate and prediction: recording it twice changes nothing."""
    task: str
    """Task name, for people."""
    gpu: str
    evidence: Evidence
    """`estimated` where both profiles are of the emulated device."""
    outcome: MetricOutcome
