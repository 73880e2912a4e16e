"""The event log of a run: append-only, flushed a line at a time, safe to read after a kill."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.schema.event import EVENT_ADAPTER, Event

Sink = Callable[[Event], None]


class Clock(Protocol):
    """Where times come from; injected, so that a scripted run is byte-stable."""

    def timestamp(self) -> str:
        """Return the UTC time in ISO 8601 with milliseconds."""

    def seconds(self) -> float:
        """Return a monotonic time in seconds."""


class EventLog:
    """Appends events to `events.jsonl` and hands each to the sinks.

    An event of the same kind, round and subject as one already logged is dropped, so that work
    repeated after a kill leaves no second trace.
    """

    def __init__(self, path: Path, *, run: str, clock: Clock, sinks: tuple[Sink, ...] = ()) -> None:
        self._path = path
        self._run = run
        self._clock = clock
        self._sinks = list(sinks)
        self._lock = threading.Lock()
        _drop_torn_line(path)
        self._events: list[Event] = list(read_events(path)) if path.exists() else []
        self._known = {_identity(event) for event in self._events}
        self._stream = path.open("a", encoding="utf-8")

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Tell a sink of every event from now on; what is returned ends that."""
        self._sinks.append(sink)

        def end() -> None:
            if sink in self._sinks:
                self._sinks.remove(sink)

        return end

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far."""
        return tuple(self._events)

    def emit(self, event: Event) -> None:
        """Append an event, unless the log already says so.

        Raises:
            HarnessError: The log cannot be written.
        """
        with self._lock:
            if _identity(event) in self._known:
                return
            stamped = event.model_copy(
                update={"seq": len(self._events), "ts": self._clock.timestamp(), "run": self._run}
            )
            try:
                self._stream.write(stamped.model_dump_json() + "\n")
                self._stream.flush()
            except OSError as error:
                raise HarnessError(f"cannot write {self._path}: {error.strerror}") from error
            self._events.append(stamped)
            self._known.add(_identity(stamped))
            for sink in self._sinks:
                sink(stamped)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Flush to the disk and close the file."""
        with self._lock:
            if not self._stream.closed:
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._stream.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a log in order; a last line cut short by a kill is left out.

    Raises:
        ArtifactCorrupt: A line before the last is no event.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            yield EVENT_ADAPTER.validate_json(line)
        except (ValidationError, json.JSONDecodeError) as error:
            if number == len(lines):
                return
            raise ArtifactCorrupt(f"{path}:{number} is no event of this version") from error


def _identity(event: Event) -> tuple[str, int, str]:
    return event.kind, event.round, event.subject


def _drop_torn_line(path: Path) -> None:
    """Cut off what a kill left behind the last newline, so that appending starts on a fresh line."""
    if not path.exists():
        return
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        with path.open("r+b") as stream:
            stream.truncate(data.rfind(b"\n") + 1)
