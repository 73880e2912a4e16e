"""From two transcripts of the same call to one LaunchPlan."""

from __future__ import annotations

from itertools import zip_longest

from kernelskill.backends.recorder.addresses import TENSOR_MAP_MARK, AddressPair, RecordingsDiffer
from kernelskill.backends.recorder.operations import LinePair, operation
from kernelskill.backends.recorder.ordering import unjoined_streams
from kernelskill.backends.recorder.transcript import Line, RecordedCall, Transcript, TranscriptError, number
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    Allocation,
    Blob,
    CopyDevice,
    CopyDevice2D,
    CopyHost,
    CreateStream,
    EncodeTensorMap,
    GraphLaunch,
    HostCalls,
    Launch,
    LaunchPlan,
    Memset,
    Operation,
    Release,
    Synchronize,
    walk,
)

LOADING_NOTE = "the host object asks for CUDA operations while it is loaded; they stand at the plan's start"


class BadLauncher(Exception):
    """The launcher does something that ends badly on a real GPU too."""


def assemble(
    first: Transcript, second: Transcript, *, symbol: str, device_code: str, returned: int | None
) -> LaunchPlan:
    """Return the plan of the first call.

    Raises:
        RecordingsDiffer: The launcher asked for different things.
        HostAddress: A kernel would be handed host memory.
        BadLauncher: Memory is used after it was freed, or a capture ends with unjoined work.
        TranscriptError: The transcripts are malformed.
    """
    addresses = AddressPair(first, second)
    operations = _operations(_first_lines(first), _first_lines(second), addresses)
    allocations = _allocations(first)
    blocking = {op.stream: op.blocking for op in operations if isinstance(op, CreateStream)}
    _require_live_memory(operations)
    _require_joined_graphs(operations)
    notes = [
        *first.notes,
        *([LOADING_NOTE] if first.loading else ()),
        *sorted(addresses.notes),
        *_leftovers(operations, allocations, blocking),
        *filter(None, [_state(first, second)]),
    ]
    return LaunchPlan(
        device_code=device_code,
        symbol=symbol,
        allocations=_used(allocations, operations),
        operations=operations,
        returned=returned,
        host_calls=_host_calls(operations),
        notes=tuple(notes),
        leaked_bytes=_leaked(first),
        escapes=_state(first, second, work_only=True)
        or _counts(first, second)
        or _unjoined(operations, blocking),
    )


def _first_lines(transcript: Transcript) -> list[Line]:
    return [*transcript.loading, *transcript.calls[0].lines]


def _operations(first: list[Line], second: list[Line], addresses: AddressPair) -> tuple[Operation, ...]:
    if len(first) != len(second):
        raise RecordingsDiffer("the number of operations")
    top: list[Operation] = []
    graphs: dict[int, list[Operation]] = {}
    for lines in zip(first, second, strict=True):
        if lines[0]["op"] != lines[1]["op"]:
            raise RecordingsDiffer("the order of operations")
        pair = LinePair(*lines, addresses)
        if pair.kind == "graph_launch":
            top.append(
                GraphLaunch(
                    stream=pair.number("stream"),
                    origin=pair.number("origin"),
                    operations=tuple(graphs.get(pair.number("of"), ())),
                )
            )
            continue
        graph = pair.optional("graph")
        (top if graph is None else graphs.setdefault(graph, [])).append(operation(pair))
    return tuple(top)


def _allocations(transcript: Transcript) -> tuple[Allocation, ...]:
    found = []
    for line in transcript.allocations:
        kind, name = line.get("kind"), line.get("name")
        if kind not in ("buffer", "temporary", "symbol") or not isinstance(name, str):
            raise TranscriptError("an allocation is malformed")
        if line["first_call"]:
            found.append(Allocation(id=line["id"], kind=kind, name=name, size_bytes=line["size"]))
    return tuple(found)


def _used(allocations: tuple[Allocation, ...], operations: tuple[Operation, ...]) -> tuple[Allocation, ...]:
    """Leave out device variables that no operation names."""
    named = {a.allocation for op in walk(operations) for a in _addresses(op)}
    return tuple(a for a in allocations if a.kind != "symbol" or a.id in named)


def _addresses(op: Operation) -> list[Address]:
    if isinstance(op, Launch):
        return [p.address for blob in op.arguments for p in blob.pointers]
    if isinstance(op, CopyHost):
        return [op.destination, *_pointers(op.data)]
    if isinstance(op, CopyDevice | CopyDevice2D):
        return [op.destination, op.source]
    if isinstance(op, Memset):
        return [op.destination]
    if isinstance(op, EncodeTensorMap):
        return [op.address]
    return []


def _pointers(blob: Blob) -> list[Address]:
    return [patch.address for patch in blob.pointers]


def _require_live_memory(operations: tuple[Operation, ...]) -> None:
    freed: set[int] = set()
    for op in walk(operations):
        if isinstance(op, Release):
            freed.add(op.allocation)
        elif freed and any(address.allocation in freed for address in _addresses(op)):
            raise BadLauncher(f"memory is used after it was freed ({op.op})")


def _require_joined_graphs(operations: tuple[Operation, ...]) -> None:
    for op in operations:
        if isinstance(op, GraphLaunch):
            others = {inner.stream: False for inner in op.operations if isinstance(inner, Launch)}
            if unjoined_streams(op.operations, others, main=op.origin):
                raise BadLauncher("a capture ends with unjoined work (cudaErrorStreamCaptureUnjoined)")


def _leftovers(
    operations: tuple[Operation, ...], allocations: tuple[Allocation, ...], blocking: dict[int, bool]
) -> list[str]:
    notes = []
    live = {op.allocation for op in operations if isinstance(op, Allocate)}
    live -= {op.allocation for op in operations if isinstance(op, Release)}
    if live:
        size = sum(a.size_bytes for a in allocations if a.id in live)
        notes.append(f"memory not freed at return: {size} bytes in {len(live)} allocations")
    side = _unjoined(operations, blocking)
    if side:
        notes.append(side)
    if not any(isinstance(op, Launch) for op in walk(operations)):
        notes.append("no kernel is launched")
    return notes


def _host_calls(operations: tuple[Operation, ...]) -> HostCalls:
    return HostCalls(
        allocations=sum(isinstance(op, Allocate) for op in operations),
        synchronizations=sum(isinstance(op, Synchronize) for op in operations),
        launches=sum(isinstance(op, Launch | GraphLaunch) for op in operations),
    )


def _unjoined(operations: tuple[Operation, ...], blocking: dict[int, bool]) -> str:
    """Say how much work nobody who called the launcher can wait for by its stream."""
    side = unjoined_streams(operations, blocking)
    return f"work is left on {len(side)} non-blocking stream(s) at return, joined by nothing" if side else ""


def _state(first: Transcript, second: Transcript, *, work_only: bool = False) -> str:
    """Say whether later calls of the same process ask for something else than the first.

    Args:
        first: One recording.
        second: The other.
        work_only: Whether only work on the device counts: memory and graphs may be made once and kept.
    """
    shapes = [_shape(a, b, work_only) for a, b in zip(first.calls, second.calls, strict=False)]
    for n, shape in enumerate(shapes[1:], start=1):
        if first.calls[n].returned is None or second.calls[n].returned is None:
            return f"the launcher keeps state: call {n} does not return"
        if shape != shapes[0]:
            return f"the launcher keeps state: call {n} asks for something else than call 0"
    return ""


def _leaked(transcript: Transcript) -> int:
    """Return by how much the last call made the memory in use grow."""
    last = transcript.calls[-1]
    if len(transcript.calls) < _SETTLED or last.returned is None:
        return 0
    sizes = {line["id"]: number(line, "size") for line in transcript.allocations}
    signs = {"allocate": 1, "release": -1}
    changes = [signs.get(line["op"], 0) * sizes.get(line.get("allocation"), 0) for line in last.lines]
    return max(0, sum(changes))


def _counts(first: Transcript, second: Transcript) -> str:
    """Say whether the launcher's own data is still changing when the same call is made again and again.

    What the first call sets up once is no matter; a counter or a clock is.
    """
    for transcript in (first, second):
        if len(transcript.own_data) > _SETTLED and any(transcript.own_data[_SETTLED:]):
            return "the launcher keeps state: every call changes host memory of its own that outlives it"
    return ""


_SETTLED = 2
"""After so many calls nothing is set up any more."""
_WORK = frozenset({"launch", "memset", "copy_device", "copy_device_2d", "copy_host", "graph_launch"})
_NOT_COMPARED = frozenset(
    {"destination", "source", "address", "allocation", "graph", "of", "origin", "id", "stream", "event"}
)


def _shape(first: RecordedCall, second: RecordedCall, work_only: bool) -> list[object]:
    """Return what a call asks for, without where its memory lies and what its handles are called."""
    lines = zip_longest(
        _compared(first, work_only), _compared(second, work_only), fillvalue={"op": "nothing"}
    )
    return [
        {key: _common(value, b.get(key)) for key, value in a.items() if key not in _NOT_COMPARED}
        for a, b in lines
    ]


def _compared(call: RecordedCall, work_only: bool) -> list[Line]:
    """Leave out what the runtime itself does once a process, on first use."""
    if work_only:
        return [line for line in call.lines if line["op"] in _WORK and line.get("graph") is None]
    return [line for line in call.lines if line["op"] != "create_stream"]


def _common(first: object, second: object) -> object:
    if isinstance(first, list) and isinstance(second, list):
        return [_common(a, b) for a, b in zip_longest(first, second)]
    if first != second or (isinstance(first, str) and TENSOR_MAP_MARK in first):
        return "differs"
    return first
