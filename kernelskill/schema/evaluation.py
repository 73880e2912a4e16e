"""Evaluation, Status, Timing, Verdict: measured facts about a candidate."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from kernelskill.schema.base import Record
from kernelskill.schema.build import Diagnostic, KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence

Depth = Literal["cheap", "search", "full"]
"""How much an evaluation looks at."""


class Status(StrEnum):
    """How an evaluation ended. The set is closed."""

    PASSED = "passed"
    COMPILE_ERROR = "compile_error"
    UNSUPPORTED = "unsupported"
    LAUNCH_ERROR = "launch_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    INCORRECT = "incorrect"
    INCORRECT_NAN = "incorrect_nan"
    INPUT_MODIFIED = "input_modified"
    OUT_OF_BOUNDS = "out_of_bounds"
    NONDETERMINISTIC = "nondeterministic"
    SANITIZER_ERROR = "sanitizer_error"
    SUSPICIOUS = "suspicious"
    HARNESS_ERROR = "harness_error"


class Mismatch(Record):
    """The first wrong element of an output and how bad the whole output is."""

    output: str
    index: tuple[int, ...]
    got: str
    expected: str
    wrong: int
    """Number of elements outside the tolerance."""
    total: int
    max_absolute_error: float
    max_relative_error: float
    pattern: str = ""
    """`all`, `tail`, `stride k`, `block`, `nan` or empty: where the wrong elements lie."""


class CheckOutcome(Record):
    """One comparison with the reference."""

    case: int
    """`Case.index`."""
    trial: int
    """Position in the run's seed pool."""
    layout: Literal["plain", "offset", "aliased", "moved", "repeat"]
    """`offset`: pointers one element past an aligned address; `aliased`: in and out are one buffer;
    `moved`: the same call at other addresses; `repeat`: A-B-A without any reset."""
    status: Status
    detail: str = ""
    mismatch: Mismatch | None = None
    max_absolute_error: float | None = None
    max_relative_error: float | None = None
    bit_identical: bool | None = None
    """Whether a repeat gave the same bits; only noted."""
    bits: str = ""
    """Digest of all outputs, where the task lets no bit change; empty elsewhere."""


class Timing(Record):
    """Samples of the device time of one case."""

    case: int
    samples_ms: tuple[float, ...]
    median_ms: float
    low_ms: float
    """First quartile."""
    high_ms: float
    """Third quartile."""
    evidence: Evidence
    launch_share: dict[str, float] = Field(default_factory=dict)
    """Kernel display name to its share of the device time, where known."""
    moved_bytes: float | None = None
    """Bytes that reach device memory, as counted or estimated."""
    call: str = ""
    """What was timed where it is no candidate: the call that the docstring of `baseline()` names."""


class PairedTiming(Record):
    """Incumbent and candidate timed in turns on one case."""

    case: int
    ratios: tuple[float, ...]
    """Incumbent time over candidate time, a pair each."""
    median: float
    low: float
    """Lower end of the 95 % interval by order statistics."""
    high: float


class CaseShape(Record):
    """Sizes of one timed case, without any contents."""

    case: int
    buffers: dict[str, int]
    """Pointer parameter name to bytes."""
    scalars: dict[str, int | float | bool | str]
    """Scalar parameter name to value; `hex:` and little-endian bytes where JSON has no such number."""
    least_bytes: int
    """Bytes that any kernel must move: inputs and outputs once, in-out twice, scratch never."""
    least_reads: int | None = None
    """Those of them that are read; None where an older record does not tell."""

    @property
    def read_share(self) -> float | None:
        """Share of the least bytes that is read, 0 to 1; None where it is unknown."""
        return (
            None if self.least_reads is None or not self.least_bytes else self.least_reads / self.least_bytes
        )


DEVICE_STAGES = ("check", "sanitize", "time", "review", "profile")
"""Stages that count as device time. The user's own `baseline()` (`library`) does not: no search causes it."""


class StageSeconds(Record):
    """Wall time a stage of the evaluation took."""

    stage: str
    seconds: float


class Request(Record):
    """One evaluation asked for. Its digest is the key under which the answer is kept."""

    task: str
    """Digest of the task."""
    candidate: Candidate
    stage: Literal["check", "time"]
    """`check`: build and verify; `time`: verify, then time against `incumbent`."""
    incumbent: Candidate | None = None
    """What to time against in pairs; None for the baseline itself."""
    device: str
    depth: Depth = "full"
    """`cheap`: the smallest case and one awkward one, one trial, and few pairs; `search`: all cases, the
    large ones with one seed and one repeat; `full`: all cases with all that the protocol has."""
    seed_pool: str
    """Digest of the run's secret seeds; the seeds themselves never enter a record."""
    fresh: int = 0
    """Counts repetitions that must be measured again, such as the confirmation."""
    version: int = 2
    """Version of the evaluation protocol."""

    @property
    def key(self) -> str:
        """Content key of the answer."""
        return self.content_digest()


class Evaluation(Record):
    """Everything found out about one candidate in one stage."""

    key: str
    candidate: str
    stage: Literal["check", "time"]
    depth: Depth = "full"
    """As the request asked."""
    status: Status
    detail: str = ""
    """One line for people: what failed, where."""
    diagnostics: tuple[Diagnostic, ...] = ()
    checks: tuple[CheckOutcome, ...] = ()
    timings: tuple[Timing, ...] = ()
    paired: tuple[PairedTiming, ...] = ()
    incumbent_timings: tuple[Timing, ...] = ()
    """The incumbent's own samples from the same pairs."""
    baseline_timings: tuple[Timing, ...] = ()
    """The user's `baseline()`, where test.py has one, timed in the same run."""
    kernels: tuple[KernelResources, ...] = ()
    machine_code: str = ""
    """Digest of what the GPU executes, as `Build.machine_code`; empty where nothing was built."""
    execution: Literal["replayed", "direct", "none"] = "none"
    """`direct`: the launcher could not be recorded and ran itself; a label for people to see."""
    allocations: int = 0
    synchronizations: int = 0
    launches: int = 0
    """Host calls of one call of the launcher, from the plan of the first timed case."""
    shapes: tuple[CaseShape, ...] = ()
    """Sizes of the timed cases."""
    unverified: tuple[str, ...] = ()
    """What was not checked, in words."""
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    conditions: Conditions
    seconds: tuple[StageSeconds, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Evaluation:
        if self.status is not Status.PASSED and (self.timings or self.paired):
            raise ValueError(f"a candidate that ended {self.status} has no times")
        return self

    @property
    def passed(self) -> bool:
        """Whether the candidate was found right."""
        return self.status is Status.PASSED

    def timing(self, case: int) -> Timing | None:
        """Return the timing of one case."""
        return next((timing for timing in self.timings if timing.case == case), None)


class VerdictKind(StrEnum):
    """What the judge made of an evaluation."""

    ACCEPTED = "accepted"
    TIE = "tie"
    SLOWER = "slower"
    REGRESSED_CASE = "regressed_case"
    PASSED_OVER = "passed_over"
    """Faster in a brief look, like others that were faster still; it got no full evaluation."""
    REFUSED = "refused"


class Verdict(Record):
    """The judge's decision about one candidate against one incumbent."""

    kind: VerdictKind
    reason: str
    speedup: float | None = None
    """Weighted geometric mean over the timed cases of incumbent time / candidate time."""
    low: float | None = None
    high: float | None = None
    evidence: Evidence = "none"
