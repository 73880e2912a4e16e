"""Does a launcher ask for the same work whatever it was called with before?"""

from __future__ import annotations

from typing import Any

from kernelskill.backends.base import Call
from kernelskill.backends.recorder.addresses import AddressPair, HostAddress, RecordingsDiffer
from kernelskill.backends.recorder.operations import LinePair, operation
from kernelskill.backends.recorder.process import Ending, run_layouts, sandbox_folder
from kernelskill.backends.recorder.programs import recorder_program
from kernelskill.backends.recorder.record import host_files
from kernelskill.backends.recorder.specification import specification_text
from kernelskill.backends.recorder.transcript import Line, Transcript, TranscriptError, read_transcript
from kernelskill.backends.toolchain import Toolchain
from kernelskill.schema.build import Build
from kernelskill.schema.device import Gpu
from kernelskill.schema.task import Signature

_WORK = frozenset({"launch", "memset", "copy_device", "copy_device_2d", "copy_host", "graph_launch"})
_PLACES = frozenset({"allocation", "offset"})


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
    """Record a call alone, and once more after another call in the same process, and compare.

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
    program = recorder_program(toolchain)

    def ended(first: Call | None) -> tuple[Ending, Ending]:
        with sandbox_folder(host_files(build, signature, toolchain)) as folder:
            return run_layouts(
                program,
                lambda layout: specification_text(
                    build,
                    signature,
                    call,
                    gpu,
                    root=str(folder),
                    layout=layout,
                    timeout_s=timeout_s,
                    before=first,
                ),
                folder=folder,
                timeout_s=timeout_s,
            )

    alone = _work(ended(None), 0)
    after = _work(ended(before), 1)
    if alone is None or alone == after:
        return ""
    what = "does not return" if after is None else "asks for other work"
    return f"the launcher keeps state: after a call with other sizes it {what}"


def _work(endings: tuple[Ending, Ending], number: int) -> list[Any] | None:
    """Return the device work of one call, with places named by what lies there; None where there is none."""
    try:
        first, second = (read_transcript(ending.transcript) for ending in endings)
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
