"""Progress of work that takes a while: a line an event, and at a terminal what goes on just now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console
from rich.status import Status
from rich.text import Text

from kernelskill.report.wording import line_of, waiting_for
from kernelskill.schema.event import Event

_STYLES = {"good": "green", "bad": "red", "dim": "dim", "head": "bold", "plain": ""}
_NARROWEST = 60
"""Columns for which the lines of events are laid out at least; narrower terminals wrap them."""
_SPINNER_ROOM = 4
_OBEYED = {
    code: f"<{code:02X}>"
    for code in (
        *range(0x09),
        *range(0x0B, 0x20),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}
"""What a terminal obeys or is confused by instead of showing it, and what is shown in its place."""


class Progress:
    """Shows events of one console; the spinner turns only inside `working`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None

    def __call__(self, event: Event) -> None:
        line = line_of(event, max(_NARROWEST, self._console.width))
        if line is not None:
            text = Text(harmless(line.text, self._console), style=_STYLES[line.tone])
            wrapped = hanging(text, self._console) if self._console.is_terminal else text
            self._console.print(wrapped, soft_wrap=True)
        self.waiting(waiting_for(event))

    def waiting(self, text: str) -> None:
        """Show what goes on, where a spinner turns."""
        if self._status is not None:
            self._status.update(self._fitted(text))

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Turn a spinner while the body runs, at a terminal that can move its cursor."""
        if self._status is not None or not self._console.is_terminal or self._console.is_dumb_terminal:
            yield
            return
        self._status = self._console.status(self._fitted(text), spinner="dots")
        try:
            with self._status:
                yield
        finally:
            self._status = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the spinner while the body asks something."""
        status = self._status
        if status is not None:
            status.stop()
        try:
            yield
        finally:
            if status is not None:
                status.start()

    def _fitted(self, text: str) -> Text:
        fitted = Text(harmless(text, self._console), no_wrap=True)
        fitted.truncate(max(8, self._console.width - _SPINNER_ROOM), overflow="ellipsis")
        return fitted


def harmless(text: str, console: Console) -> str:
    """Return a text whose control characters cannot reach a terminal: sources may be a model's."""
    return text.replace("\r\n", "\n").translate(_OBEYED) if console.is_terminal else text


def hanging(text: Text, console: Console, indent: int | None = None) -> Text:
    """Return a text wrapped to the terminal, its further lines indented.

    Args:
        text: One line.
        console: How wide the terminal is.
        indent: Columns before further lines; by default two more than before the first word.
    """
    if cell_len(text.plain) <= console.width:
        return text
    if indent is None:
        indent = len(text.plain) - len(text.plain.lstrip(" ")) + 2
        indent = indent if indent < console.width // 2 else 0
    start, rest = text.divide([indent]) if text.plain[:indent].isascii() else (Text(), text)
    joined = Text(style=text.style)
    joined.append_text(start)
    for number, line in enumerate(rest.wrap(console, console.width - indent, overflow="fold")):
        line.rstrip()
        if number:
            joined.append("\n" + " " * indent)
        joined.append_text(line)
    return joined
