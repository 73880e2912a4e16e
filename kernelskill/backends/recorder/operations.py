"""From two lines that ask for the same thing to one operation of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from pydantic import ValidationError

from kernelskill.backends.recorder.addresses import AddressPair, RecordingsDiffer
from kernelskill.backends.recorder.transcript import Line, TranscriptError, number
from kernelskill.schema.launch_plan import (
    Address,
    Allocate,
    CopyDevice,
    CopyDevice2D,
    CopyHost,
    CreateStream,
    EncodeTensorMap,
    Launch,
    Memset,
    Operation,
    RecordEvent,
    Release,
    Synchronize,
    WaitEvent,
)

_ADDRESS_FIELDS = frozenset({"destination", "source", "address", "data", "arguments"})
Scope = Literal["device", "stream", "event", "copy"]


class LinePair:
    """The same line of two recordings.

    Raises:
        RecordingsDiffer: The lines differ in more than addresses.
    """

    def __init__(self, first: Line, second: Line, addresses: AddressPair) -> None:
        self.kind: str = first["op"]
        self._lines = (first, second)
        self._addresses = addresses
        plain = [{k: v for k, v in line.items() if k not in _ADDRESS_FIELDS} for line in self._lines]
        if plain[0] != plain[1]:
            raise RecordingsDiffer(f"an operation ({self.kind})")

    def number(self, key: str) -> int:
        """Return a number that is the same in both."""
        return number(self._lines[0], key)

    def optional(self, key: str) -> int | None:
        """Return a number, or None where there is none."""
        return number(self._lines[0], key) if key in self._lines[0] else None

    def has(self, key: str) -> bool:
        """Return whether the lines hold a field."""
        return key in self._lines[0]

    def flag(self, key: str) -> bool:
        """Return a truth value; absent is false."""
        value = self._lines[0].get(key, False)
        if not isinstance(value, bool):
            raise TranscriptError(f"the field {key!r} is neither true nor false")
        return value

    def text(self, key: str) -> str:
        """Return a text that is the same in both."""
        value = self._lines[0].get(key)
        if not isinstance(value, str):
            raise TranscriptError(f"the field {key!r} is no text")
        return value

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a list of numbers that is the same in both."""
        value = self._lines[0].get(key)
        if not isinstance(value, list) or not all(type(v) is int and v >= 0 for v in value):
            raise TranscriptError(f"the field {key!r} is no list of numbers")
        return tuple(value)

    def triple(self, key: str) -> tuple[int, int, int]:
        """Return three numbers that are the same in both."""
        return cast(tuple[int, int, int], self.numbers(key))

    def address(self, key: str) -> Address:
        """Return the place that a field means."""
        return self._addresses.address(*(number(line, key) for line in self._lines))

    def blob(self, key: str) -> Any:
        """Return bytes with their addresses left open."""
        return self._addresses.blob(*(_text(line.get(key)) for line in self._lines))

    def blobs(self, key: str) -> tuple[Any, ...]:
        """Return a list of bytes with their addresses left open."""
        lists = [line.get(key) for line in self._lines]
        if not all(isinstance(values, list) for values in lists):
            raise TranscriptError(f"the field {key!r} is no list")
        first, second = cast(list[list[Any]], lists)
        if len(first) != len(second):
            raise RecordingsDiffer("the number of arguments")
        return tuple(self._addresses.blob(_text(a), _text(b)) for a, b in zip(first, second, strict=True))


def operation(pair: LinePair) -> Operation:
    """Return the operation that a pair of lines asks for.

    Raises:
        RecordingsDiffer: The lines differ in more than addresses.
        HostAddress: A kernel would be handed host memory.
        TranscriptError: The lines are no operation.
    """
    build = _BUILDERS.get(pair.kind)
    if build is None:
        raise TranscriptError(f"there is no operation {pair.kind!r}")
    try:
        return build(pair)
    except ValidationError as error:
        raise TranscriptError(f"an operation {pair.kind!r} is malformed") from error


def _launch(pair: LinePair) -> Operation:
    return Launch(
        kernel=pair.text("kernel"),
        grid=pair.triple("grid"),
        block=pair.triple("block"),
        dynamic_shared_bytes=pair.number("dynamic_shared"),
        max_dynamic_shared_bytes=pair.number("max_dynamic_shared"),
        carveout_percent=pair.optional("carveout"),
        cooperative=pair.flag("cooperative"),
        programmatic=pair.flag("programmatic"),
        cluster=pair.triple("cluster") if pair.has("cluster") else None,
        stream=pair.number("stream"),
        arguments=pair.blobs("arguments"),
    )


def _memset(pair: LinePair) -> Operation:
    return Memset(
        destination=pair.address("destination"),
        value=pair.number("value"),
        size_bytes=pair.number("size"),
        stream=pair.number("stream"),
    )


def _copy_device(pair: LinePair) -> Operation:
    return CopyDevice(
        destination=pair.address("destination"),
        source=pair.address("source"),
        size_bytes=pair.number("size"),
        stream=pair.number("stream"),
    )


def _copy_device_2d(pair: LinePair) -> Operation:
    return CopyDevice2D(
        destination=pair.address("destination"),
        destination_pitch=pair.number("destination_pitch"),
        source=pair.address("source"),
        source_pitch=pair.number("source_pitch"),
        width_bytes=pair.number("width"),
        height=pair.number("height"),
        stream=pair.number("stream"),
    )


def _copy_host(pair: LinePair) -> Operation:
    return CopyHost(
        destination=pair.address("destination"), data=pair.blob("data"), stream=pair.number("stream")
    )


def _create_stream(pair: LinePair) -> Operation:
    return CreateStream(stream=pair.number("stream"), blocking=pair.flag("blocking"))


def _record_event(pair: LinePair) -> Operation:
    return RecordEvent(event=pair.number("event"), stream=pair.number("stream"))


def _wait_event(pair: LinePair) -> Operation:
    return WaitEvent(event=pair.number("event"), stream=pair.number("stream"))


def _synchronize(pair: LinePair) -> Operation:
    return Synchronize(
        scope=cast(Scope, pair.text("scope")), stream=pair.number("stream"), event=pair.number("event")
    )


def _allocate(pair: LinePair) -> Operation:
    return Allocate(
        allocation=pair.number("allocation"),
        asynchronous=pair.flag("asynchronous"),
        stream=pair.number("stream"),
    )


def _release(pair: LinePair) -> Operation:
    return Release(
        allocation=pair.number("allocation"),
        asynchronous=pair.flag("asynchronous"),
        stream=pair.number("stream"),
    )


def _encode_tensor_map(pair: LinePair) -> Operation:
    return EncodeTensorMap(
        id=pair.number("id"),
        data_type=pair.number("data_type"),
        address=pair.address("address"),
        dimensions=pair.numbers("dimensions"),
        strides_bytes=pair.numbers("strides"),
        box=pair.numbers("box"),
        element_strides=pair.numbers("element_strides"),
        modes=cast(tuple[int, int, int, int], pair.numbers("modes")),
    )


_BUILDERS: dict[str, Callable[[LinePair], Operation]] = {
    "launch": _launch,
    "memset": _memset,
    "copy_device": _copy_device,
    "copy_device_2d": _copy_device_2d,
    "copy_host": _copy_host,
    "create_stream": _create_stream,
    "record_event": _record_event,
    "wait_event": _wait_event,
    "synchronize": _synchronize,
    "allocate": _allocate,
    "release": _release,
    "encode_tensor_map": _encode_tensor_map,
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TranscriptError("bytes are no text")
    return value
