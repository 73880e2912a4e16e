"""Which work is ordered before what: streams, events and waits of a plan, as vector clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelskill.schema.launch_plan import (
    CopyDevice,
    CopyDevice2D,
    CopyHost,
    GraphLaunch,
    Launch,
    Memset,
    Operation,
    RecordEvent,
    Synchronize,
    WaitEvent,
)

_WORK = (Launch, Memset, CopyDevice, CopyDevice2D, CopyHost, GraphLaunch)
_Clock = dict[int, int]


def unjoined_streams(
    operations: Iterable[Operation], blocking: Mapping[int, bool], *, main: int = 0
) -> tuple[int, ...]:
    """Return the streams whose work nothing waits for at the end.

    Args:
        operations: In order; graphs count as one piece of work.
        blocking: Stream to whether it orders itself with the default stream.
        main: The stream that the caller waits for.
    """
    clocks = _Clocks()
    for operation in operations:
        clocks.follow(operation)
    return tuple(
        stream
        for stream, last in sorted(clocks.issued.items())
        if stream != main and not blocking.get(stream, True) and clocks.known_to(main, stream) < last
    )


class _Clocks:
    """How much of each stream's work each stream, event and the host know to be finished."""

    def __init__(self) -> None:
        self.issued: _Clock = {}
        self._streams: dict[int, _Clock] = {}
        self._events: dict[int, _Clock] = {}
        self._host: _Clock = {}

    def follow(self, operation: Operation) -> None:
        """Take one operation into account."""
        if isinstance(operation, _WORK):
            stream = operation.stream
            self.issued[stream] = self.issued.get(stream, 0) + 1
            self._clock(stream)[stream] = self.issued[stream]
        elif isinstance(operation, RecordEvent):
            self._events[operation.event] = dict(self._clock(operation.stream))
        elif isinstance(operation, WaitEvent):
            _merge(self._clock(operation.stream), self._events.get(operation.event, {}))
        elif isinstance(operation, Synchronize):
            self._synchronize(operation)

    def known_to(self, main: int, stream: int) -> int:
        """Return how much of a stream's work is finished for the main stream or the host."""
        return max(self._clock(main).get(stream, 0), self._host.get(stream, 0))

    def _synchronize(self, operation: Synchronize) -> None:
        if operation.scope == "device":
            _merge(self._host, self.issued)
        elif operation.scope in ("stream", "copy"):
            _merge(self._host, self._clock(operation.stream))
        else:
            _merge(self._host, self._events.get(operation.event, {}))

    def _clock(self, stream: int) -> _Clock:
        return self._streams.setdefault(stream, {})


def _merge(into: _Clock, other: Mapping[int, int]) -> None:
    for stream, count in other.items():
        into[stream] = max(into.get(stream, 0), count)
