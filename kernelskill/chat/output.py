"""Where answers go: a terminal of any width, a pipe, or lines of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from pydantic import BaseModel
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text

from kernelskill.chat.progress import Progress, hanging, harmless
from kernelskill.chat.reply import Block, Code, Reply, Rows, Say, Tone
from kernelskill.errors import KernelSkillError
from kernelskill.schema.event import Event

PIPE_WIDTH = 100
STYLES: dict[Tone, str] = {"good": "green", "bad": "red", "dim": "dim", "head": "bold", "plain": ""}
_GAP = "  "
_LEAST_LAST_COLUMN = 24
"""Columns in which the last cell of a row is still wrapped; with fewer, rows become blocks."""


class Output(Protocol):
    """Shows answers, events and errors. It is a sink for events."""

    @property
    def as_json(self) -> bool:
        """Whether programs read it."""

    def __call__(self, event: Event) -> None:
        """Show one event."""

    def waiting(self, text: str) -> None:
        """Show what is waited for."""

    def answer(self, command: str, reply: Reply) -> None:
        """Show the answer of a command."""

    def error(self, message: str, remedy: str, exit_code: int) -> None:
        """Show what went wrong and what to do."""

    def say(self, text: str, tone: Tone = "plain", **facts: Any) -> None:
        """Show a line; programs get the facts."""

    def block(self, block: Block) -> None:
        """Show one block to a person."""

    def status(self, status: BaseModel) -> None:
        """Tell programs how the session stands; people see the status line."""

    def working(self, text: str) -> Any:
        """Return a context in which something long goes on."""

    def paused(self) -> Any:
        """Return a context in which a question stands alone."""


class JsonOutput:
    """One JSON object a line."""

    as_json = True

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout

    def _put(self, facts: dict[str, Any]) -> None:
        self._stream.write(json.dumps(facts) + "\n")
        self._stream.flush()

    def __call__(self, event: Event) -> None:
        self._stream.write(event.model_dump_json() + "\n")
        self._stream.flush()

    def waiting(self, text: str) -> None:
        return None

    def answer(self, command: str, reply: Reply) -> None:
        record = None if reply.record is None else reply.record.model_dump(mode="json")
        self._put({"kind": "answer", "command": command, "ok": not reply.failed, "result": record})

    def error(self, message: str, remedy: str, exit_code: int) -> None:
        self._put({"kind": "error", "message": message, "remedy": remedy, "exit_code": exit_code})

    def say(self, text: str, tone: Tone = "plain", **facts: Any) -> None:
        self._put({"kind": "said", "text": text, **facts})

    def block(self, block: Block) -> None:
        return None

    def status(self, status: BaseModel) -> None:
        self._put({"kind": "status", **status.model_dump(mode="json")})

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        yield


class TextOutput:
    """For people; plain where there is no terminal, without colour where none is wanted."""

    as_json = False

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or make_console()
        self._progress = Progress(self.console)

    @property
    def width(self) -> int:
        """Columns."""
        return self.console.width

    def __call__(self, event: Event) -> None:
        self._progress(event)

    def waiting(self, text: str) -> None:
        self._progress.waiting(text)

    def answer(self, command: str, reply: Reply) -> None:
        for block in reply.blocks:
            self.block(block)

    def error(self, message: str, remedy: str, exit_code: int) -> None:
        self.say(message, "bad")
        if remedy:
            self.say(f"  {remedy}")

    def say(self, text: str, tone: Tone = "plain", **facts: Any) -> None:
        for line in harmless(text, self.console).split("\n"):
            self._print(Text(line, style=STYLES[tone]))

    def block(self, block: Block) -> None:
        match block:
            case Say():
                self.say(block.text, block.tone)
            case Rows():
                self._rows(block)
            case Code():
                self._code(block)

    def status(self, status: BaseModel) -> None:
        return None

    def working(self, text: str) -> Any:
        return self._progress.working(text)

    def paused(self) -> Any:
        return self._progress.paused()

    def _print(self, text: Text) -> None:
        if self.console.is_terminal:
            self.console.print(hanging(text, self.console), soft_wrap=True)
        else:
            self.console.print(text, soft_wrap=True)

    def _rows(self, block: Rows) -> None:
        widths = column_widths(block)
        left = self.width - sum(widths) - len(_GAP) * len(widths)
        wraps = self.console.is_terminal
        if wraps and left < min(last_width(block), _LEAST_LAST_COLUMN):
            self._stacked(block)
            return
        titles = [(block.titles, "dim")] if any(block.titles) else []
        for row, style in [*titles, *((row, STYLES[tone]) for row, tone in _toned(block))]:
            start = "".join(
                set_cell_size(cell, width) + _GAP for cell, width in zip(row, widths, strict=False)
            )
            text = Text(harmless(start + row[-1], self.console), style=style)
            indent = cell_len(start)
            shown = hanging(text, self.console, indent) if wraps else text
            shown.rstrip()
            self.console.print(shown, soft_wrap=True)

    def _stacked(self, block: Rows) -> None:
        """Print every row as a block: its first cells, and the others below."""
        for row, tone in _toned(block):
            row = tuple(harmless(cell, self.console) for cell in row)
            if block.plain:
                start = _GAP.join(cell for cell in row[:-1] if cell)
                self._print(Text(start, style=STYLES[tone] or "bold"))
                self._print(Text(f"  {' ' * _indent(start)}{row[-1].strip()}", style=STYLES[tone]))
                continue
            self._print(Text(row[0], style=STYLES[tone] or "bold"))
            for title, cell in zip(block.titles[1:], row[1:], strict=True):
                if cell.strip():
                    self._print(Text(f"  {title + ': ' if title else ''}{cell}", style=STYLES[tone]))

    def _code(self, block: Code) -> None:
        block = Code(harmless(block.text, self.console), block.language)
        if not self.console.is_terminal:
            self.console.file.write(block.text.rstrip("\n") + "\n")  # as it is, tabs and all
        elif self.console.no_color or block.language == "text":
            # So that it can be copied: no padding, no broken lines.
            self.console.print(Text(block.text.rstrip("\n")), soft_wrap=True)
        elif block.language == "markdown":
            self.console.print(Markdown(block.text))
        elif block.language == "diff":
            for line in block.text.rstrip("\n").split("\n"):
                self.console.print(Text(line, style=_diff_style(line)), soft_wrap=True)
        else:
            code = Syntax(block.text.rstrip("\n"), "cuda", theme="ansi_dark", background_color="default")
            self.console.print(code.highlight(block.text.rstrip("\n")), soft_wrap=True)


def make_console() -> Console:
    """Return a console for standard output that never fails for a character it cannot show."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=PIPE_WIDTH)


def column_widths(block: Rows) -> list[int]:
    """Return the columns that every cell but the last of a row takes."""
    cells = [block.titles, *block.rows]
    return [max(cell_len(row[i]) for row in cells) for i in range(len(block.titles) - 1)]


def last_width(block: Rows) -> int:
    """Return the columns of the widest last cell."""
    return max(cell_len(row[-1]) for row in (block.titles, *block.rows))


def _indent(text: str) -> int:
    return min(len(text) - len(text.lstrip(" *|")), 8)


def show_error(output: Output, error: KernelSkillError) -> None:
    """Show one of our errors."""
    output.error(error.message, error.remedy, error.exit_code)


def _toned(block: Rows) -> Iterator[tuple[tuple[str, ...], Tone]]:
    tones: tuple[Tone, ...] = block.tones or tuple("plain" for _ in block.rows)
    yield from zip(block.rows, tones, strict=True)


def _diff_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
