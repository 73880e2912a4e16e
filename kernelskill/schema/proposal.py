"""Skill, Proposal, Slate: what can be tried, what is offered, and all that was offered at once."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from kernelskill.schema.base import Record, canonical_json, sha256_text
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.task import Promise

Origin = Literal["mechanical", "model", "combined", "user"]
"""Who made a proposal."""

Specialist = str
"""Name of a specialist: the folder under `skills/` and the prompt under `prompts/`."""


def needs(promise: Promise) -> str:
    """Return what a reason says where a promise is wanted; `Refusal.promise` finds it there."""
    return f'it needs PROMISE = {{"{promise.value}"}}'


class Exactness(StrEnum):
    """How a rewrite may change results."""

    EXACT = "exact"
    """Every output keeps its bits."""
    ROUNDING = "rounding"
    """Single operations may round otherwise (contraction, float for double literals)."""
    REORDERS = "reorders"
    """Floating-point sums are taken in another order."""
    FAST_MATH = "fast_math"
    """Needs `ALLOW = {"fast_math"}`."""
    LOWER_PRECISION = "lower_precision"
    """Needs `ALLOW = {"lower_precision"}`."""


class Effect(Record):
    """What a skill is expected to do where its trigger holds."""

    log_speedup: float
    """Mean of ln(speedup)."""
    deviation: float
    """Standard deviation of ln(speedup)."""


class SkillParameter(Record):
    """One parameter with the values worth trying, the most promising first."""

    name: str
    values: tuple[str, ...]
    meaning: str = ""


class MetricChange(Record):
    """A metric and the direction it should move."""

    metric: str
    """A figure of `profiling/metrics.toml`, or the profiler's own name."""
    direction: Literal["down", "up", "same"]
    skill: str = ""
    """Id of the skill that predicts it, in a proposal."""


class MetricOutcome(Record):
    """What became of one predicted change."""

    metric: str
    direction: Literal["down", "up", "same"]
    skill: str
    before: float | None
    """Of the base; None where its profile lacks the metric."""
    after: float | None
    held: bool | None
    """None where one side lacks the metric."""


class Skill(Record):
    """A reusable technique with its trigger; the record of a `SKILL.md`."""

    id: str
    """`<specialist>/<folder>`."""
    title: str
    specialist: Specialist
    mechanical: bool
    """Whether a `transform.py` stands beside the text."""
    triggers: tuple[BottleneckKind, ...]
    """Bottlenecks that it removes; empty: always worth asking."""
    features: tuple[str, ...] = ()
    """Source features that must hold, by the names in `source.features`."""
    parameters: tuple[SkillParameter, ...] = ()
    exactness: Exactness = Exactness.EXACT
    promises: tuple[str, ...] = ()
    """Promises that it needs and cannot guard."""
    prior: Effect
    predicts: tuple[MetricChange, ...] = ()
    pitfalls: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    enables: tuple[str, ...] = ()
    """Ids of skills that apply, or gain more, once this one was applied."""
    after: tuple[str, ...] = ()
    """Ids of skills behind which this one is worth trying; the other end of `enables`."""
    summary: str
    """First paragraph of the text."""
    text: str
    """The whole text that a model reads."""
    folder: str


class Choice(Record):
    """One parameter of a proposal's steps that may take other values."""

    name: str
    values: tuple[str, ...]
    """The most promising first."""
    steps: tuple[int, ...]
    """Positions of the steps that take the value."""


class Part(Record):
    """What one skill of a chain is expected to add."""

    log_speedup: float
    triggers: tuple[BottleneckKind, ...] = ()


class Proposal(Record):
    """One planned change from one base.

    Where it leaves choices open it stands for a family: it carries the first values that can be
    applied, and the others are searched once the family is chosen.
    """

    base: str
    """Digest of the candidate it starts from."""
    candidate: Candidate
    """What it makes of the base."""
    specialist: Specialist
    origin: Origin
    steps: tuple[Step, ...]
    predicted: Effect
    predicted_metrics: tuple[MetricChange, ...] = ()
    exactness: Exactness
    assumptions: tuple[str, ...] = ()
    """What it relies on, in words, each covered by a promise or a guard."""
    rationale: str
    triggers: tuple[BottleneckKind, ...] = ()
    choices: tuple[Choice, ...] = ()
    parts: tuple[Part, ...] = ()
    """A chain's skills, each with its own effect and triggers; empty where one skill made it."""
    title: str = ""
    """Short name of a change that no steps describe."""
    kernel: str = ""
    """Name of the kernel that a change without steps is about; empty where unknown."""
    request: str = ""
    """Digest of the request that a model answered with it."""

    @property
    def id(self) -> str:
        """Digest of base and result: the same change offered twice is one proposal."""
        return sha256_text(canonical_json([self.base, self.candidate.digest]))[:16]

    @property
    def kernels(self) -> frozenset[str]:
        """Names of the kernels that it changes; empty where unknown."""
        named = {kernel for step in self.steps for kernel in step.kernels}
        return frozenset(named or ({self.kernel} if self.kernel else ()))

    @property
    def label(self) -> str:
        """Short form for people."""
        return " + ".join(step.label for step in self.steps) or self.title or self.rationale[:60]


class Refusal(Record):
    """A skill that was asked and declined."""

    skill: str
    kernel: str
    reason: str

    @property
    def promise(self) -> Promise | None:
        """The promise for want of which it declined, if that is why."""
        return next((promise for promise in Promise if needs(promise) in self.reason), None)


class RankedProposal(Record):
    """A proposal's place in a slate."""

    proposal: str
    """`Proposal.id`."""
    steps: tuple[Step, ...]
    specialist: Specialist
    features: tuple[float, ...]
    mean: float
    """Expected ln(speedup)."""
    deviation: float
    sampled: float
    """The draw that ordered this slate."""
    chance: float
    """Probability with which the policy would have chosen it among the tried ones, 0 to 1."""
    chosen: bool
    origin: Origin = "mechanical"
    forecast: float | None = None
    """ln(speedup) that the emulated device gives it, where it was asked before a GPU looked at any."""


class Slate(Record):
    """Everything offered in one decision; what later learning needs to be sound."""

    id: str
    run: str
    round: int
    context: tuple[tuple[str, float], ...]
    """Context features by name, sorted."""
    feature_names: tuple[str, ...]
    schema_version: int
    """Version of the feature schema."""
    policy: str
    """Name and version of the policy."""
    ranked: tuple[RankedProposal, ...]
    refusals: tuple[Refusal, ...] = ()
    family: str = ""
    """The proposal whose parameter points were offered here; empty for a round's own slate."""
