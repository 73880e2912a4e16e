"""Read a recorder's transcript: lines of JSON, sorted into load time and calls. All of it is outside input."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kernelskill.backends.recorder.process import MAX_TRANSCRIPT_BYTES

Line = dict[str, Any]
_MAX_LINES = 1_000_000


class TranscriptError(Exception):
    """What was written is no transcript."""


@dataclass
class RecordedCall:
    """One call of the launcher."""

    lines: list[Line] = field(default_factory=list)
    returned: Line | None = None
    """The line that its return wrote; None where it did not return."""


@dataclass
class Transcript:
    """One recording."""

    ready: bool = False
    """Whether the sandbox stood before candidate code ran."""
    loading: list[Line] = field(default_factory=list)
    """What constructors of the host object asked for."""
    calls: list[RecordedCall] = field(default_factory=list)
    allocations: list[Line] = field(default_factory=list)
    pinned: list[tuple[int, int]] = field(default_factory=list)
    """First and last address of host memory that `cudaMallocHost` gave."""
    notes: list[str] = field(default_factory=list)
    """Of the time until the first return."""
    own_data: list[int] = field(default_factory=list)
    """Words of its own memory that each call changed, addresses left out."""
    processor_us: int | None = None
    """Processor time of all calls, where they came to their end."""
    ending: Line | None = None
    """The line that ended the recording early: `refuse`, `harness`, `fault` or `system_call`."""

    @property
    def first_call_returned(self) -> bool:
        """Whether the call that counts is complete."""
        return bool(self.calls) and self.calls[0].returned is not None


def read_transcript(data: bytes) -> Transcript:
    """Sort the lines of a transcript.

    Raises:
        TranscriptError: The bytes are no transcript.
    """
    if len(data) > MAX_TRANSCRIPT_BYTES:
        raise TranscriptError("it is larger than a recording can be")
    lines = data.split(b"\n")
    if len(lines) > _MAX_LINES:
        raise TranscriptError("it has more lines than a recording can have")
    transcript = Transcript()
    for line in lines:
        if line:
            _sort(_parse(line), transcript)
    return transcript


def _parse(line: bytes) -> Line:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TranscriptError("a line is not JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get("op"), str):
        raise TranscriptError("a line is not an operation")
    return value


def _sort(line: Line, transcript: Transcript) -> None:
    kind = line["op"]
    call = transcript.calls[-1] if transcript.calls else None
    if kind == "allocation":
        _allocation(line, transcript)
    elif kind in ("refuse", "harness", "fault", "system_call"):
        transcript.ending = transcript.ending or line
    elif kind == "note":
        if not transcript.first_call_returned:
            transcript.notes.append(str(line.get("text"))[:500])
    elif kind == "pinned":
        base, size = number(line, "base"), number(line, "size")
        transcript.pinned.append((base, base + size))
    elif kind == "call":
        transcript.calls.append(RecordedCall())
    elif kind == "return" and call is not None and call.returned is None:
        call.returned = line
    elif kind in ("own_data", "ready", "end"):
        _state(line, transcript)
    else:
        (call.lines if call is not None else transcript.loading).append(line)


def _state(line: Line, transcript: Transcript) -> None:
    if line["op"] == "ready":
        transcript.ready = True
    elif line["op"] == "end":
        transcript.processor_us = number(line, "processor_us") if "processor_us" in line else None
    else:
        transcript.own_data.append(number(line, "changed"))


def _allocation(line: Line, transcript: Transcript) -> None:
    if number(line, "id") != len(transcript.allocations):
        raise TranscriptError("an allocation has a wrong number")
    number(line, "base")
    number(line, "size")
    line["first_call"] = not transcript.first_call_returned
    transcript.allocations.append(line)


def number(line: Line, key: str) -> int:
    """Return a field that must be a number from 0 to 2^64 - 1.

    Raises:
        TranscriptError: It is none.
    """
    value = line.get(key)
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise TranscriptError(f"the field {key!r} of {line.get('op')!r} is no number")
    return value
