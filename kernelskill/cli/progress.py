"""Progress of a run: a rich view where there is a terminal, plain lines where not, events for `--json`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.status import Status
from rich.text import Text

from kernelskill.report.wording import Line, line_of, waiting_for
from kernelskill.schema.event import Event


class Progress(Protocol):
    """Shows events as they come. Use as a context manager."""

    def __call__(self, event: Event) -> None:
        """Show one event."""

    def say(self, text: str) -> None:
        """Show what is waited for."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class JsonProgress:
    """Every event as a line of JSON on standard output."""

    def __call__(self, event: Event) -> None:
        sys.stdout.write(event.model_dump_json() + "\n")
        sys.stdout.flush()

    def say(self, text: str) -> None:
        return None

    def __enter__(self) -> JsonProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


class PlainProgress:
    """One plain line an event; for logs and pipes."""

    def __call__(self, event: Event) -> None:
        line = line_of(event)
        if line is not None:
            sys.stdout.write(line.text + "\n")
            sys.stdout.flush()

    def say(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


class RichProgress:
    """Lines with colour and a spinner that says what is going on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __call__(self, event: Event) -> None:
        line = line_of(event, self._console.width)
        if line is not None:
            self._console.print(_styled(line))
        if self._status is not None:
            self._status.update(waiting_for(event))

    def say(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)

    def __enter__(self) -> RichProgress:
        self._status = self._console.status("reading the kernel and its test", spinner="dots")
        self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class QuietProgress:
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        return None

    def say(self, text: str) -> None:
        return None

    def __enter__(self) -> QuietProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


def make_progress(*, as_json: bool, quiet: bool = False) -> Progress:
    """Return the progress view that fits where the output goes."""
    if as_json:
        return JsonProgress()
    if quiet:
        return QuietProgress()
    console = Console(highlight=False)
    return RichProgress(console) if console.is_terminal else PlainProgress()


@contextmanager
def spinner(text: str, *, shown: bool = True) -> Iterator[None]:
    """Show what is going on while the body runs, where there is a terminal."""
    console = Console(stderr=True)
    if shown and console.is_terminal:
        with console.status(text, spinner="dots"):
            yield
    else:
        yield


_STYLES = {"good": "green", "bad": "red", "dim": "dim", "head": "bold", "plain": ""}


def _styled(line: Line) -> Text:
    return Text(line.text, style=_STYLES[line.tone])
