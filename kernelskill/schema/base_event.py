"""BaseEvent: what every event of a run holds."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.base import Record


class BaseEvent(Record):
    """What every event holds."""

    v: Literal[1] = 1
    seq: int = 0
    """Position in the log, from 0; set by the log."""
    ts: str = ""
    """UTC time in ISO 8601; set by the log."""
    run: str = ""
    """Run id; set by the log."""
    round: int = 0
    """0 outside the rounds."""

    @property
    def subject(self) -> str:
        """What the event is about: a second event of the same kind, round and subject says nothing new."""
        return ""
