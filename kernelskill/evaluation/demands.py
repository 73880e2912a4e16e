"""Demands: which layouts a candidate must survive, because the original survives them."""

from __future__ import annotations

from pydantic import Field

from kernelskill.schema.base import Record


class Demands(Record):
    """What the original itself supports; no candidate has to support more."""

    offset: bool = False
    """Whether it is right with every pointer one element past an aligned address."""
    aliases: tuple[tuple[str, str], ...] = ()
    """(input, output) pairs that may share one buffer."""
    races: bool = False
    """Whether it shows races itself; then a candidate's are only noted."""
    leaks: bool = False
    """Whether each of its calls keeps device memory for good; then a candidate's may too."""
    run_seconds: dict[int, float] = Field(default_factory=dict)
    """Case index to the longest wall time of one run."""
    errors: dict[int, dict[str, float]] = Field(default_factory=dict)
    """Case index to the largest absolute error of each output, on the values of the first seed."""
    notes: tuple[str, ...] = ()
    """What is not demanded, and why."""


NOTHING_KNOWN = Demands(races=True, leaks=True)
"""Used while the original is looked at; its races must not end the look."""
