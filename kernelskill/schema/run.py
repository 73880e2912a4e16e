"""Budget, Spend, Round: the limits of a run and what one loop of it did."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate, Lineage
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Evaluation, Verdict


class Budget(Record):
    """Limits of a run; None is no limit."""

    rounds: int
    patience: int
    """Rounds without gain after which the run stops."""
    seconds: float | None = None
    """Wall time."""
    device_seconds: float | None = None
    """Time in which the device worked or was held for this run."""
    evaluations: int | None = None
    near_roof: float | None = None
    """Stop at this fraction of the roof, 0 to 1."""


class Spend(Record):
    """What a run has used so far."""

    seconds: float = 0.0
    device_seconds: float = 0.0
    evaluations: int = 0
    rounds: int = 0


StopReason = Literal[
    "rounds",
    "patience",
    "seconds",
    "device_seconds",
    "evaluations",
    "near_roof",
    "nothing_to_do",
    "interrupted",
    "model_budget",
    "user",
]
"""`user`: somebody who works step by step had enough."""


class Member(Record):
    """One candidate of the frontier with what is known of it."""

    candidate: Candidate
    lineage: Lineage
    evaluation: Evaluation
    speedup: float
    """Against the original; 1.0 for the original itself."""
    proven: bool
    """Whether it beat the best before it beyond doubt; a level step is kept, but never the result."""
    exact: bool
    """Whether no step reorders sums or rounds otherwise."""
    assumptions: tuple[str, ...] = ()


class Tried(Record):
    """One proposal that was evaluated in a round."""

    proposal: str
    label: str
    candidate: str
    evaluation: str
    """`Evaluation.key`."""
    verdict: Verdict
    speedup_to_original: float | None = None
    combined: bool = False


class Round(Record):
    """One propose-to-verdict loop."""

    number: int
    base: str
    tried: tuple[Tried, ...]
    accepted: tuple[str, ...]
    """Digests of the candidates that entered the frontier as gains."""
    best_speedup: float
    evidence: Evidence = "measured"
    """Of the speedup."""
