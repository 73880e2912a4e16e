"""Events that come from the user of a run: what was asked of it, which way it went, what was written."""

from __future__ import annotations

from typing import Any, Literal

from kernelskill.schema.base_event import BaseEvent
from kernelskill.schema.evaluation import Verdict
from kernelskill.schema.steering import Rule


class NumberedEvent(BaseEvent):
    """An event that may happen again with the same content."""

    number: int
    """Makes it one of its own: the position in the log at which it was made."""

    @property
    def subject(self) -> str:
        return str(self.number)


class Opened(BaseEvent):
    """The user's files of a run that somebody works with."""

    kind: Literal["opened"] = "opened"
    kernel: str
    """Absolute path of the kernel."""
    files: tuple[tuple[str, str], ...]
    """Path of every file of the original beside the kernel's, and the SHA-256 of its bytes as they were read."""

    @property
    def subject(self) -> str:
        return self.kernel


class Steered(NumberedEvent):
    """The user said what to try or to leave alone."""

    kind: Literal["steered"] = "steered"
    text: str
    rules: tuple[Rule, ...]
    unknown: tuple[str, ...] = ()
    """What was not understood."""


class Forgot(NumberedEvent):
    """The user took rules back."""

    kind: Literal["forgot"] = "forgot"
    rules: tuple[int, ...]


class Preferred(NumberedEvent):
    """The user likes one shown proposal better than another of the same slate."""

    kind: Literal["preferred"] = "preferred"
    slate: str
    better: str
    worse: str


class HeadMoved(NumberedEvent):
    """The user chose the candidate that the run goes on from."""

    kind: Literal["head_moved"] = "head_moved"
    how: Literal["undo", "redo", "move", "pin"]
    candidate: str
    before: str
    speedup: float
    """Of the candidate over the original."""


class Configured(NumberedEvent):
    """Settings that hold from now on."""

    kind: Literal["configured"] = "configured"
    changes: dict[str, Any]


class BorderPassed(BaseEvent):
    """The user need not be asked at this border again in this run."""

    kind: Literal["border_passed"] = "border_passed"
    border: str

    @property
    def subject(self) -> str:
        return self.border


class Remeasured(NumberedEvent):
    """A candidate was timed against the original again."""

    kind: Literal["remeasured"] = "remeasured"
    candidate: str
    evaluation: str
    verdict: Verdict
    before: float
    """Speedup over the original as it was known."""
    speedup: float
    seconds: float = 0.0
    """Of device time."""


class Exported(NumberedEvent):
    """A candidate was written to a file of the user's."""

    kind: Literal["exported"] = "exported"
    candidate: str
    files: tuple[tuple[str, str], ...]
    """Absolute path and SHA-256 of every file written."""
