"""The seam every device implements: build, record, open a worker, profile.

A backend never compares results and never decides anything; `evaluation` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from kernelskill.schema.base import Record
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Status
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.profile import KernelProfile
from kernelskill.schema.task import Signature


class PointerArgument(Record):
    """Where a pointer parameter points: a buffer and a byte offset into it."""

    buffer: str
    offset: int = 0


class Call(Record):
    """One call of the launcher: sizes, layout and scalars, never the contents of buffers."""

    buffers: dict[str, int]
    """Buffer name to size in bytes. Two parameters may share one buffer (aliasing)."""
    pointers: dict[str, PointerArgument]
    """Pointer parameter name to the place it points to."""
    scalars: dict[str, int | float | bool | str]
    """Scalar parameter name to value, already range-checked for its C type. Half, bfloat16 and
    complex or vector scalars come as `hex:` and their little-endian bytes."""


class Unrecordable(Record):
    """Why a launcher gave no plan."""

    status: Status
    """`unsupported` (direct execution may still work), `launch_error`, `runtime_error`, `out_of_memory`
    or `timeout`."""
    reason: str
    direct_possible: bool = False
    """Whether running the launcher itself on a real GPU could work."""


class RunOutcome(Record):
    """How one execution of a plan ended."""

    status: Status
    """`passed` (finished), `launch_error`, `runtime_error`, `timeout`, `out_of_memory`,
    `out_of_bounds` or `unsupported`."""
    detail: str = ""
    """One line: what happened, with kernel, source line and buffer where they are known."""
    notes: tuple[str, ...] = ()
    """Findings that are not failures by themselves, for example a shared-memory race with its lines."""


class TimingRun(Record):
    """Samples of one plan's device time."""

    samples_ms: tuple[float, ...]
    evidence: Evidence
    repeats: int = 1
    """Runs in a row inside one sample."""
    launch_share: dict[str, float] = Field(default_factory=dict)
    moved_bytes: float | None = None
    notes: tuple[str, ...] = ()
    """How samples were taken where not the ordinary way, for example repeated inside one sample."""


class ProfileRun(Record):
    """What a device can say about one plan beyond its time."""

    source: Literal["ncu", "trace", "static"]
    kernels: tuple[KernelProfile, ...]
    duration_ms: float | None = None
    unavailable: str = ""
    commands: tuple[str, ...] = ()


class Worker(Protocol):
    """A trusted child process that holds one build on one device.

    The calls are synchronous. A kernel that hangs or breaks the context makes `run` or `time` answer
    with a status; after that the worker refuses all further calls with `WorkerDied` and must be
    closed. Contents travel as files of raw bytes, so that nothing large passes through a pipe.
    """

    def load(self, plan: LaunchPlan, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Make `plan` the current one: check it, allocate its memory with guard bands.

        Args:
            plan: A plan of this worker's build.
            guard_bytes: Size of the band before and after every buffer and temporary.
            salt: Different values place the same buffers at different addresses.

        Raises:
            HarnessError: The plan is not one that may be carried out.
        """

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        """Set all memory to the byte `poison`, device variables to their first values, then
        load each named buffer from a file of exactly its size.
        """

    def put(self, contents: Mapping[str, Path]) -> None:
        """Overwrite the named buffers and nothing else."""

    def run(self, *, timeout_s: float) -> RunOutcome:
        """Carry out the plan once and wait for it."""

    def read(self, buffer: str, destination: Path) -> None:
        """Write a buffer's bytes to a file."""

    def damaged_guards(self) -> tuple[str, ...]:
        """Return the buffers (or `temporary N`) whose guard bands no longer hold the poison byte."""

    def time(
        self, samples: int, *, flush_l2: bool, timeout_s: float, repeats: int = 0
    ) -> TimingRun | RunOutcome:
        """Time the plan; every sample starts from the contents of the last `fill`.

        A `RunOutcome` is returned where it failed.

        Args:
            samples: How many.
            flush_l2: Whether the L2 cache is emptied before each.
            timeout_s: Deadline of the whole call.
            repeats: Runs in a row inside one sample, whose mean it is; 0 lets the device choose: one,
                unless the plan is too short for its clock. Two sides of a comparison need the same.
        """

    def close(self) -> None:
        """End the child process; safe to call twice."""

    def __enter__(self) -> Worker: ...

    def __exit__(self, *exception: object) -> None: ...


class Backend(Protocol):
    """One kind of device on this machine."""

    name: str
    """As the user names it: `cuda:0`, `emulated:h200`."""
    gpu: Gpu
    evidence: Evidence

    def conditions(self) -> Conditions:
        """Return what every figure of this device depends on."""

    def build(
        self, candidate: Candidate, signature: Signature, flags: tuple[str, ...]
    ) -> Build | BuildFailure:
        """Compile a candidate, or return the finished build of an equal one from the cache.

        Raises:
            CompilerMissing: No compiler can be used at all.
        """

    def record(self, build: Build, signature: Signature, call: Call) -> LaunchPlan | Unrecordable:
        """Run the launcher once in the sandbox against the recording runtime."""

    def open(self, build: Build) -> Worker:
        """Start a worker that holds this build.

        Raises:
            DeviceUnavailable: The device cannot be used now.
        """

    def profile(
        self,
        build: Build,
        plan: LaunchPlan,
        contents: Mapping[str, Path],
        *,
        depth: Literal["quick", "full"],
    ) -> ProfileRun:
        """Collect figures of one plan on the given contents; never times."""
