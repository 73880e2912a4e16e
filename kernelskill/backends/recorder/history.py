"""Does a launcher ask for the same work whatever it was called with before?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from kernelskill.backends.base import Call
from kernelskill.backends.recorder.addresses import AddressPair, HostAddress, RecordingsDiffer
from kernelskill.backends.recorder.operations import LinePair, operation
from kernelskill.backends.recorder.process import Ending, run_layouts, sandbox_folder
from kernelskill.backends.recorder.programs import recorder_program
from kernelskill.backends.recorder.record import host_files
from kernelskill.backends.recorder.specification import CALLS, specification_text
from kernelskill.backends.recorder.transcript import Line, Transcript, TranscriptError, read_transcript
from kernelskill.backends.toolchain import Toolchain
from kernelskill.schema.build import Build
from kernelskill.schema.device import Gpu
from kernelskill.schema.task import Signature

_WORK = frozenset({"launch", "memset", "copy_device", "copy_device_2d", "copy_host", "graph_launch"})
_PLACES = frozenset({"allocation", "offset"})
_MOST_CALLS = 200
_MOST_OPERATIONS = 2000
"""Of all calls that are recorded to be compared."""
_SHARE = 0.1
"""Of the time allowed, for the repeated calls."""


def history_matters(
    build: Build,
    signature: Signature,
    call: Call,
    before: Call,
    *,
    gpu: Gpu,
    toolchain: Toolchain,
    timeout_s: float = 15,
) -> str:
    """Record a call alone, and many times after another call in the same process, and compare.

    What counts calls in memory of its own is seen after three (`own_data.cpp`); this finds what counts elsewhere, as
    by the addresses and handles that a runtime gives out, and state that only other sizes change.

    Args:
        build: Of a launcher whose plans can be recorded.
        signature: Its parameters.
        call: The call that is compared.
        before: Another one, best of other sizes; it gets buffers of its own.
        gpu: What the launcher is told.
        toolchain: Compiles the recorder on first use.
        timeout_s: For each recording.

    Returns:
        How the two differ, in one line; empty where they do not.
    """
    recorder = _Recorder(build, signature, call, gpu, toolchain, timeout_s)
    began = time.monotonic()
    recorded = _readable(recorder.record(None, 1))
    alone = _work(recorded, 0)
    if alone is None:
        return ""
    repeats = _repeats(len(alone), _seconds(recorded, time.monotonic() - began) / CALLS, timeout_s)
    later = _readable(recorder.record(before, repeats))
    for number in dict.fromkeys((1, 2, repeats // 2, repeats)):
        after = _work(later, number)
        if after != alone:
            what = "does not return" if after is None else "asks for other work"
            calls = "a call with other sizes" if number == 1 else f"{number} calls"
            return f"the launcher keeps state: after {calls} it {what}"
    return ""


@dataclass(frozen=True)
class _Recorder:
    """Records one call, alone or after another."""

    build: Build
    signature: Signature
    call: Call
    gpu: Gpu
    toolchain: Toolchain
    timeout_s: float

    def record(self, before: Call | None, repeats: int) -> tuple[Ending, Ending]:
        """Return how both layouts ended."""
        with sandbox_folder(host_files(self.build, self.signature, self.toolchain)) as folder:
            return run_layouts(
                recorder_program(self.toolchain),
                lambda layout: specification_text(
                    self.build,
                    self.signature,
                    self.call,
                    self.gpu,
                    root=str(folder),
                    layout=layout,
                    timeout_s=self.timeout_s,
                    before=before,
                    repeats=repeats,
                ),
                folder=folder,
                timeout_s=self.timeout_s,
            )


def _seconds(recorded: tuple[Transcript, Transcript] | None, elapsed_s: float) -> float:
    """Return what the calls of a recording took: processor time, since starts and a busy machine take longer.

    The recording says it, so it is believed only where it is less than the time that passed.
    """
    told = [t.processor_us for t in recorded or () if t.processor_us is not None]
    return min(elapsed_s, max(told) / 1e6) if told else elapsed_s


def _repeats(operations: int, call_s: float, timeout_s: float) -> int:
    """Return how often a call can be made with little to read and in a small part of the time allowed."""
    by_size = _MOST_OPERATIONS // max(1, operations)
    by_time = int(_SHARE * timeout_s / max(1e-4, call_s))
    return max(1, min(_MOST_CALLS, by_size, by_time))


def _readable(endings: tuple[Ending, Ending]) -> tuple[Transcript, Transcript] | None:
    try:
        return read_transcript(endings[0].transcript), read_transcript(endings[1].transcript)
    except TranscriptError:
        return None


def _work(transcripts: tuple[Transcript, Transcript] | None, number: int) -> list[Any] | None:
    """Return the device work of one call, with places named by what lies there; None where there is none."""
    if transcripts is None:
        return None
    try:
        first, second = transcripts
        calls = [transcript.calls[number] for transcript in (first, second)]
        if any(call.returned is None for call in calls):
            return None
        names = [_name(line) for line in first.allocations]
        addresses = AddressPair(first, second)
        pairs = zip(_lines(first, number), _lines(second, number), strict=True)
        return [_named(operation(LinePair(a, b, addresses)).model_dump(), names) for a, b in pairs]
    except (RecordingsDiffer, HostAddress, TranscriptError, ValueError, IndexError):
        return None


def _lines(transcript: Transcript, number: int) -> list[Line]:
    """Return what a call asks of the device, graphs opened wherever they were made."""
    graphs: dict[Any, list[Line]] = {}
    for line in [*transcript.loading, *(line for call in transcript.calls for line in call.lines)]:
        if line.get("graph") is not None and line["op"] in _WORK:
            graphs.setdefault(line["graph"], []).append(line)
    found: list[Line] = []
    for line in transcript.calls[number].lines:
        if line["op"] == "graph_launch":
            found += graphs.get(line.get("of"), [])
        elif line["op"] in _WORK and line.get("graph") is None:
            found.append(line)
    return found


def _name(line: Line) -> str:
    return str(line.get("name")) if line.get("kind") in ("buffer", "symbol") else "temporary"


def _named(value: Any, names: list[str]) -> Any:
    """Put names in place of the numbers of allocations, and leave streams out."""
    if isinstance(value, dict):
        if value.keys() >= _PLACES:
            return (names[value["allocation"]], value["offset"])
        return {key: _named(item, names) for key, item in value.items() if key not in ("stream", "graph")}
    if isinstance(value, list | tuple):
        return [_named(item, names) for item in value]
    return value
