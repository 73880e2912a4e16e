"""A run on disk: its folder, its records, and the state that its events fold to."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from pydantic import ValidationError

from kernelskill.errors import ArtifactCorrupt, UsageError
from kernelskill.schema.base import Record
from kernelskill.schema.chat_event import Configured, Forgot, HeadMoved, Remeasured, Steered
from kernelskill.schema.event import (
    BaselineMeasured,
    Confirmed,
    Event,
    Interrupted,
    RoundFinished,
    RoundStarted,
    RunFinished,
    RunResumed,
    RunStarted,
)
from kernelskill.schema.run import Spend
from kernelskill.schema.steering import Rule

AnyRecord = TypeVar("AnyRecord", bound=Record)
_TEMPORARY = re.compile(r"\..+\.\d+\.[0-9a-f]{8}")
"""The name of a file that `write_atomically` has not finished."""


class SystemClock:
    """The clock of production."""

    def timestamp(self) -> str:
        """Return the UTC time in ISO 8601 with milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    def seconds(self) -> float:
        """Return a monotonic time in seconds."""
        return monotonic()


@dataclass
class StopFlag:
    """Set from outside to stop a run at the next safe point."""

    is_set: bool = False


class RunFolder:
    """The files of one run. It can be copied to another machine and resumed there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def events(self) -> Path:
        """The event log."""
        return self.root / "events.jsonl"

    @property
    def task(self) -> Path:
        """The snapshot of kernel and tests."""
        return self.root / "task"

    @property
    def evaluations(self) -> Path:
        """Finished evaluations by key."""
        return self.root / "evaluations"

    @property
    def seeds(self) -> Path:
        """The secret seeds; readable by the owner only."""
        return self.root / "seeds.json"

    @property
    def checkpoint(self) -> Path:
        """The position inside the current round."""
        return self.root / "checkpoint.sqlite"

    @property
    def data(self) -> Path:
        """Inputs and expected values; can be made again."""
        return self.root / "data"

    @property
    def has_begun(self) -> bool:
        """Whether the log holds a whole line; a run killed before that left nothing to go on with."""
        return b"\n" in self._log()

    def _log(self) -> bytes:
        try:
            return self.events.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return b""
        except OSError as error:
            raise UsageError(
                f"cannot read {str(self.events)!r}: {error.strerror}", remedy="give a readable run folder"
            ) from error

    def require_new(self) -> None:
        """Refuse a folder that holds a run; one that never had a baseline may be started over.

        Raises:
            UsageError: It does.
        """
        if b'"kind":"baseline_measured"' in self._log():
            raise UsageError(
                f"{self.root} already holds a run",
                remedy=f"continue it with `kernelskill resume {self.root}` or choose another --out",
            )

    @staticmethod
    def create(root: Path) -> RunFolder:
        """Make a new run folder.

        Raises:
            UsageError: The folder cannot be made or already holds a run.
        """
        folder = RunFolder(root)
        folder.require_new()
        try:
            root.mkdir(parents=True, exist_ok=True)
            probe = root / f".probe-{secrets.token_hex(4)}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UsageError(
                f"cannot write into {str(root)!r}: {error.strerror}",
                remedy="choose another folder with --out",
            ) from error
        return folder

    @staticmethod
    def open(root: Path) -> RunFolder:
        """Open an existing run folder.

        Raises:
            UsageError: There is no run.
        """
        folder = RunFolder(root)
        if not folder.has_begun:
            raise UsageError(
                f"{str(root)!r} holds no run",
                remedy="a run folder holds events.jsonl; see --out of `kernelskill run`",
            )
        return folder

    def clear(self) -> None:
        """Remove what an earlier attempt without a baseline left; its seeds and answers may stay."""
        self.events.unlink(missing_ok=True)
        self.checkpoint.unlink(missing_ok=True)
        shutil.rmtree(self.task, ignore_errors=True)

    def remove_unfinished_files(self) -> None:
        """Remove what killed processes had begun to write; only for whoever has the run to itself."""
        for path in self.root.rglob(".*"):
            if _TEMPORARY.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def put(self, kind: str, name: str, record: Record) -> None:
        """Keep a record; an existing one of that name is replaced at once or not at all."""
        write_atomically(self.root / kind / f"{name}.json", record.model_dump_json().encode())

    def get(self, kind: str, name: str, model: type[AnyRecord]) -> AnyRecord:
        """Read a record back.

        Raises:
            ArtifactCorrupt: It is missing or cannot be read.
        """
        path = self.root / kind / f"{name}.json"
        try:
            return model.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise ArtifactCorrupt(f"{path} cannot be read back: {error}") from error

    def has(self, kind: str, name: str) -> bool:
        """Return whether a record of that name is kept."""
        return (self.root / kind / f"{name}.json").is_file()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def new_run_name(stem: str, now: str) -> str:
    """Return a folder name for a run of a kernel, for example `saxpy-20260102-030405`."""
    stamp = now[:19].replace("-", "").replace(":", "").replace("T", "-")
    return f"{stem}-{stamp}"


@dataclass
class RunState:
    """What a log says about its run."""

    started: RunStarted | None = None
    baseline: BaselineMeasured | None = None
    frontier: tuple[str, ...] = ()
    best: str = ""
    best_speedup: float = 1.0
    rounds: int = 0
    """Finished rounds."""
    open_round: RoundStarted | None = None
    """A round that began and did not finish."""
    rounds_without_gain: int = 0
    spend: Spend = field(default_factory=Spend)
    confirmed: Confirmed | None = None
    finished: RunFinished | None = None
    attempts: int = 0
    round_limit: int | None = None
    """Raised limit of rounds, where a resume asked for more."""
    interrupted: bool = False
    rules: tuple[Rule, ...] = ()
    """What the user asked for and did not take back."""
    last_rule: int = 0
    """Number of the latest rule, those taken back included."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings that were changed on the way."""
    undone: tuple[str, ...] = ()
    """Candidates to which `redo` goes back, the next one last."""


def fold(events: Iterable[Event]) -> RunState:
    """Return the state that events lead to."""
    state = RunState()
    for event in events:
        _apply(state, event)
    return state


def _apply(state: RunState, event: Event) -> None:
    match event:
        case RunStarted():
            state.started, state.best, state.frontier = event, event.original, (event.original,)
        case RunResumed():
            _resumed(state, event)
        case BaselineMeasured():
            state.baseline = event
        case RoundStarted():
            state.open_round = event
        case RoundFinished():
            _round_finished(state, event)
        case Confirmed():
            state.confirmed = event
        case Interrupted():
            state.interrupted = True
        case RunFinished():
            state.finished = event
        case _:
            _apply_wish(state, event)


def _apply_wish(state: RunState, event: Event) -> None:
    """Take note of what the user asked for."""
    match event:
        case Steered():
            state.rules = (*state.rules, *event.rules)
            state.last_rule = max((state.last_rule, *(rule.number for rule in event.rules)))
        case Forgot():
            state.rules = tuple(rule for rule in state.rules if rule.number not in event.rules)
        case Configured():
            state.settings = {**state.settings, **event.changes}
        case HeadMoved():
            _head_moved(state, event)
        case Remeasured() if event.candidate == state.best:
            state.best_speedup = event.speedup
        case _:
            pass


def _head_moved(state: RunState, event: HeadMoved) -> None:
    """Make a candidate what the run goes on from: the frontier is it alone, and it is the best there is."""
    if event.how == "undo":
        state.undone = (*state.undone, event.before)
    else:
        state.undone = state.undone[:-1] if event.how == "redo" else ()
    state.frontier, state.best, state.best_speedup = (event.candidate,), event.candidate, event.speedup
    # Whoever chooses a way wants it gone, however many rounds brought nothing before.
    state.rounds_without_gain, state.finished = 0, None
    if state.confirmed is not None and state.confirmed.candidate != event.candidate:
        state.confirmed = None


def _resumed(state: RunState, event: RunResumed) -> None:
    state.attempts, state.finished, state.interrupted = event.attempt, None, False
    if event.rounds is not None:
        # Whoever asks for more rounds wants them run, however many brought nothing before.
        state.round_limit, state.rounds_without_gain = event.rounds, 0


def _round_finished(state: RunState, event: RoundFinished) -> None:
    gained = event.result.best_speedup > state.best_speedup
    state.rounds_without_gain = 0 if gained else state.rounds_without_gain + 1
    state.best_speedup = event.result.best_speedup
    if event.best != state.best:
        state.undone = ()
    state.frontier, state.best, state.spend = event.frontier, event.best, event.spend
    state.rounds, state.open_round = event.result.number, None
    if state.confirmed is not None and state.confirmed.candidate != event.best:
        state.confirmed = None
