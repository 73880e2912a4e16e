"""The three borders at which a session asks: first run of generated code, the user's file, the budget."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Literal

from kernelskill.errors import RunInterrupted
from kernelskill.events import EventLog
from kernelskill.schema.base import Record
from kernelskill.schema.chat_event import BorderPassed

_MOST_QUESTIONS = 20
"""Times that a question is put again where the answer settles nothing."""

AnswerKind = Literal["yes", "no", "edit", "diff", "always"]


class Border(StrEnum):
    """What the user is asked about."""

    FIRST_RUN = "first_run"
    WRITE = "write"
    BUDGET = "budget"


class BorderQuestion(Record):
    """What is about to happen."""

    border: Border
    text: str
    """One sentence."""
    detail: str = ""
    path: str = ""
    source: str = ""
    """The code, or the new text of the file."""
    diff: str = ""
    answers: tuple[AnswerKind, ...] = ("yes", "no", "edit", "diff", "always")
    """Those that make sense."""


class BorderAnswer(Record):
    """What the user said."""

    kind: AnswerKind
    text: str = ""
    """Of `edit`: the source as it should be; at the budget the new limit."""


Asker = Callable[[BorderQuestion], BorderAnswer]


class BorderRefused(RunInterrupted):
    """The user said no at a border; what was finished is kept."""


class EditGiven(RunInterrupted):
    """The user gave another text for code that was about to run.

    Args:
        candidate: Digest of the code that was not run.
        text: What is to take its place.
    """

    def __init__(self, candidate: str, text: str) -> None:
        super().__init__("the generated code was edited before it ran")
        self.candidate = candidate
        self.text = text


class Borders:
    """Asks, and remembers what need not be asked again.

    Args:
        log: Keeps `always`.
        ask: The front end; None: code may run, files may be written, and a budget is a budget.
    """

    def __init__(self, log: EventLog, ask: Asker | None) -> None:
        self._log = log
        self._ask = ask
        self._passed: set[Border] = set()

    def answer(self, question: BorderQuestion) -> BorderAnswer:
        """Return the user's answer, one of those that make sense."""
        border = question.border
        if self.is_open(border):
            return BorderAnswer(kind="yes")
        if self._ask is None:
            return BorderAnswer(kind="no" if border is Border.BUDGET else "yes")
        for _ in range(_MOST_QUESTIONS):
            answer = self._ask(question)
            if answer.kind != "diff" and answer.kind in question.answers:
                break
        else:
            return BorderAnswer(kind="no")
        if answer.kind == "always":
            self._log.emit(BorderPassed(border=border.value))
        if border is Border.FIRST_RUN and answer.kind in ("yes", "always"):
            self._passed.add(border)
        return answer

    def is_open(self, border: Border) -> bool:
        """Return whether the user need not be asked."""
        known = {event.border for event in self._log.events if isinstance(event, BorderPassed)}
        return border in self._passed or border.value in known
