"""Events: everything a run does, one record each. Progress, resume and reports are folds of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from kernelskill.schema.base_event import BaseEvent
from kernelskill.schema.chat_event import (
    BorderPassed,
    Configured,
    Exported,
    Forgot,
    HeadMoved,
    Opened,
    Preferred,
    Remeasured,
    Steered,
)
from kernelskill.schema.device import Conditions, Evidence
from kernelskill.schema.evaluation import Depth, Status, Timing, Verdict
from kernelskill.schema.profile import Bottleneck, Roofline
from kernelskill.schema.proposal import MetricOutcome, Refusal
from kernelskill.schema.run import Round, Spend, StopReason
from kernelskill.schema.task import Task


class RunStarted(BaseEvent):
    """A run begins: the task, all settings, the conditions."""

    kind: Literal["run_started"] = "run_started"
    task: Task
    config: dict[str, Any]
    original: str
    conditions: Conditions
    specialists: tuple[str, ...] = ()
    skills: int = 0


class RunResumed(BaseEvent):
    """A run goes on after it ended or was killed."""

    kind: Literal["run_resumed"] = "run_resumed"
    conditions: Conditions
    attempt: int
    rounds: int | None = None
    """The limit of rounds from now on, where it was raised."""

    @property
    def subject(self) -> str:
        return str(self.attempt)


class BaselineMeasured(BaseEvent):
    """The original was built, found right and timed."""

    kind: Literal["baseline_measured"] = "baseline_measured"
    evaluation: str
    timings: tuple[Timing, ...]
    rooflines: tuple[Roofline, ...]
    notes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return self.evaluation


class RoundStarted(BaseEvent):
    """A round begins from one or two members of the frontier."""

    kind: Literal["round_started"] = "round_started"
    base: str
    others: tuple[str, ...] = ()
    """Further bases of this round."""
    frontier: tuple[str, ...]


class Diagnosed(BaseEvent):
    """A candidate was profiled and its limits named."""

    kind: Literal["diagnosed"] = "diagnosed"
    candidate: str
    source: str
    unavailable: str = ""
    bottlenecks: tuple[Bottleneck, ...]

    @property
    def subject(self) -> str:
        return self.candidate


class Observed(BaseEvent):
    """A change that was kept has a profile now: what it did to the metrics that its skills speak of."""

    kind: Literal["observed"] = "observed"
    proposal: str
    candidate: str
    base: str
    outcomes: tuple[MetricOutcome, ...]

    @property
    def subject(self) -> str:
        return self.proposal


class Proposed(BaseEvent):
    """A specialist offered its proposals."""

    kind: Literal["proposed"] = "proposed"
    specialist: str
    base: str
    proposals: tuple[str, ...]
    labels: tuple[str, ...]
    refusals: tuple[Refusal, ...] = ()
    origin: Literal["mechanical", "model"] = "mechanical"
    turn: int = 0
    """Position of the slate in its round: answers of a model that came later have slates of their own."""

    @property
    def subject(self) -> str:
        plain = f"{self.specialist} {self.base}"
        return plain if self.origin == "mechanical" else f"{plain} {self.origin} {self.turn}"


class Asked(BaseEvent):
    """A model was asked something; the whole text stands in the run folder under `questions`."""

    kind: Literal["asked"] = "asked"
    request: str
    """Digest of the request."""
    role: str
    purpose: Literal["change", "reformat", "repair", "plan", "question"]
    prompt: str
    """Hash of the prompt."""
    sample: int = 0
    attempt: int = 0
    """Repairs before this one."""
    tokens: int
    """Upper estimate of what is sent."""

    @property
    def subject(self) -> str:
        return self.request


class Answered(BaseEvent):
    """A model answered, and what became of it."""

    kind: Literal["answered"] = "answered"
    request: str
    role: str
    model: str
    outcome: Literal[
        "proposal", "duplicate", "nothing", "malformed", "unusable", "not_permitted", "plan", "answer"
    ]
    """`malformed`: not the form that was asked for; `unusable`: the change cannot be carried out."""
    detail: str = ""
    proposal: str = ""
    idea: bool = False
    """Whether the change is an idea of the model's own, outside the skills or directions it was given."""
    input_tokens: int
    output_tokens: int
    requests: int = 1
    cost_usd: float | None = None
    """None where no price is known."""
    truncated: bool = False

    @property
    def subject(self) -> str:
        return self.request


class ModelFailed(BaseEvent):
    """A request got no answer; the run goes on without it."""

    kind: Literal["model_failed"] = "model_failed"
    request: str
    role: str
    failure: str
    message: str
    remedy: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    cost_usd: float | None = None
    attempt: int = 0
    """Of the run, counted up at every resume."""

    @property
    def subject(self) -> str:
        return f"{self.attempt} {self.request}"


class Ranked(BaseEvent):
    """The policy ordered the slate and chose what to evaluate."""

    kind: Literal["ranked"] = "ranked"
    slate: str
    policy: str
    chosen: tuple[str, ...]
    offered: int
    forecast: int = 0
    """Offered ones whose time was estimated before the device looked at any."""
    turn: int = 0

    @property
    def subject(self) -> str:
        return str(self.turn) if self.turn else ""


class Searched(BaseEvent):
    """The parameters of a chosen proposal were searched at the cheap stage."""

    kind: Literal["searched"] = "searched"
    slate: str
    """Of the points."""
    family: str
    """The proposal that was chosen."""
    label: str
    points: int
    """Size of the space."""
    timed: int
    pruned: int
    failed: int
    kept: tuple[str, ...]
    """Proposals that go on to the full stage."""
    labels: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return self.slate


class Evaluated(BaseEvent):
    """A candidate was built, checked and, where right, timed."""

    kind: Literal["evaluated"] = "evaluated"
    proposal: str
    label: str
    specialist: str
    candidate: str
    evaluation: str
    status: Status
    detail: str = ""
    seconds: float = 0.0
    evidence: Evidence = "none"
    depth: Depth = "search"
    """`cheap`: one point of a parameter search."""

    @property
    def subject(self) -> str:
        return self.evaluation


class Judged(BaseEvent):
    """The verifier and the judge decided about a candidate."""

    kind: Literal["judged"] = "judged"
    proposal: str
    label: str
    candidate: str
    verdict: Verdict
    speedup_to_original: float | None = None
    combined: bool = False

    @property
    def subject(self) -> str:
        return self.candidate + self.proposal


class Learned(BaseEvent):
    """Outcomes went to the experience pool and the policy was updated."""

    kind: Literal["learned"] = "learned"
    experiences: int
    policy: str


class RoundFinished(BaseEvent):
    """A round ended; the frontier after it."""

    kind: Literal["round_finished"] = "round_finished"
    result: Round
    frontier: tuple[str, ...]
    best: str
    spend: Spend


class Confirmed(BaseEvent):
    """The winner was measured against the original again, with fresh seeds in a fresh process."""

    kind: Literal["confirmed"] = "confirmed"
    candidate: str
    evaluation: str
    verdict: Verdict
    timings: tuple[Timing, ...] = ()
    original_timings: tuple[Timing, ...] = ()

    @property
    def subject(self) -> str:
        return self.evaluation


class Interrupted(BaseEvent):
    """The user stopped the run."""

    kind: Literal["interrupted"] = "interrupted"
    where: str
    attempt: int = 0

    @property
    def subject(self) -> str:
        return f"{self.attempt} {self.where}"


class Failed(BaseEvent):
    """The harness failed; the run can be resumed."""

    kind: Literal["failed"] = "failed"
    error: str
    remedy: str = ""

    @property
    def subject(self) -> str:
        return self.error


class RunFinished(BaseEvent):
    """A run ended and its files were written."""

    kind: Literal["run_finished"] = "run_finished"
    reason: StopReason
    best: str
    speedup: float
    evidence: Evidence
    files: tuple[str, ...]
    spend: Spend
    attempt: int = 0
    again: int = 0
    """Times that the same attempt ended before: a session may write its results more than once."""

    @property
    def subject(self) -> str:
        return f"{self.attempt} {self.again}" if self.again else str(self.attempt)


class Note(BaseEvent):
    """Something a reader of the run should know."""

    kind: Literal["note"] = "note"
    text: str

    @property
    def subject(self) -> str:
        return self.text


Event = Annotated[
    RunStarted
    | RunResumed
    | BaselineMeasured
    | RoundStarted
    | Diagnosed
    | Observed
    | Proposed
    | Asked
    | Answered
    | ModelFailed
    | Ranked
    | Searched
    | Evaluated
    | Judged
    | Learned
    | RoundFinished
    | Confirmed
    | Interrupted
    | Failed
    | RunFinished
    | Note
    | Opened
    | Steered
    | Forgot
    | Preferred
    | HeadMoved
    | Configured
    | BorderPassed
    | Remeasured
    | Exported,
    Field(discriminator="kind"),
]

EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)
