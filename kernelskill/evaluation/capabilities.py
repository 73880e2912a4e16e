"""What some backends offer beyond `backends.base.Backend`; asked for by structure, never by name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from kernelskill.backends.base import Backend, Call, RunOutcome, TimingRun, Worker
from kernelskill.schema.build import Build
from kernelskill.schema.device import ClockState
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Signature


class DirectWorker(Protocol):
    """A worker that calls the launcher itself; `load_call` takes the place of `load`."""

    def load_call(self, call: Call, *, guard_bytes: int = 65536, salt: int = 0) -> None:
        """Make `call` the current one and allocate its memory with guard bands."""

    def fill(self, contents: Mapping[str, Path], *, poison: int) -> None:
        """As `Worker.fill`."""

    def put(self, contents: Mapping[str, Path]) -> None:
        """As `Worker.put`."""

    def run(self, *, timeout_s: float) -> RunOutcome:
        """As `Worker.run`."""

    def read(self, buffer: str, destination: Path) -> None:
        """As `Worker.read`."""

    def damaged_guards(self) -> tuple[str, ...]:
        """As `Worker.damaged_guards`."""

    def time(
        self, samples: int, *, flush_l2: bool, timeout_s: float, repeats: int = 0
    ) -> TimingRun | RunOutcome:
        """As `Worker.time`."""

    def close(self) -> None:
        """As `Worker.close`."""


AnyWorker = Worker | DirectWorker


@runtime_checkable
class DirectBackend(Protocol):
    """Can run a launcher that cannot be recorded."""

    def open_direct(self, build: Build, signature: Signature) -> DirectWorker:
        """Start a worker that runs the launcher itself."""


@runtime_checkable
class HistoryBackend(Protocol):
    """Can compare what a launcher asks for in a fresh process with what it asks for after another call."""

    def history(self, build: Build, signature: Signature, call: Call, before: Call) -> str:
        """Return how the two differ; empty where they do not."""


class SanitizerFinding(Protocol):
    """One error that a sanitizer reports."""

    @property
    def tool(self) -> str:
        """`memcheck`, `racecheck` or another."""

    @property
    def severity(self) -> str:
        """`error`, or `warning` for what is only noted."""

    @property
    def message(self) -> str:
        """One line."""

    @property
    def line(self) -> int:
        """Source line; 0 where unknown."""


class SanitizerReport(Protocol):
    """What sanitizers found."""

    @property
    def findings(self) -> tuple[Any, ...]:
        """`SanitizerFinding`s."""

    @property
    def unavailable(self) -> str:
        """Why a tool did not run, with the remedy; empty where all ran."""


@runtime_checkable
class SanitizingBackend(Protocol):
    """Can run a plan under a sanitizer."""

    def sanitize(self, build: Build, plan: LaunchPlan, contents: Mapping[str, Path]) -> SanitizerReport:
        """Run the sanitizers over one execution of a plan."""


@runtime_checkable
class PreparingBackend(Protocol):
    """Can have the processes of its next workers start while something else is done."""

    def prepare_workers(self, count: int) -> None:
        """Keep so many started; 0 ends them."""


@runtime_checkable
class ClockedBackend(Protocol):
    """Tells how fast its device runs."""

    def clocks(self) -> ClockState:
        """Return the clocks of this moment."""


def clocks_of(backend: Backend) -> ClockState:
    """Return how fast a device runs; nothing where it does not tell."""
    return backend.clocks() if isinstance(backend, ClockedBackend) else ClockState()


@runtime_checkable
class ExclusiveBackend(Protocol):
    """Has a device that other processes of this user may want at the same time."""

    def exclusive(self) -> AbstractContextManager[object]:
        """Return the lock of the device, for `with`."""


def exclusive(backend: Backend) -> AbstractContextManager[object]:
    """Return the lock that whoever uses the device holds; a device without one needs none."""
    return backend.exclusive() if isinstance(backend, ExclusiveBackend) else nullcontext()
