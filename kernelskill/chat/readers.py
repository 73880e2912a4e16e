"""Where lines come from: a pipe that is read to its end, or a terminal (`prompt.py`)."""

from __future__ import annotations

import io
import sys
from typing import BinaryIO, Protocol

from kernelskill.errors import UsageError


class Reader(Protocol):
    """Gives one entry after another."""

    @property
    def can_ask(self) -> bool:
        """Whether somebody sits there who can be asked."""

    def line(self) -> str | None:
        """Return the next entry; None at the end.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            UsageError: It cannot be read; the next can.
        """

    def answer(self, question: str) -> str | None:
        """Ask something; None where the user goes away instead of answering."""


class PipeReader:
    """Lines of a pipe or file; a backslash at the end of a line joins the next one."""

    can_ask = False

    def __init__(self, stream: BinaryIO | None = None) -> None:
        # There is no standard input at all where it was closed.
        self._stream = stream or (sys.stdin.buffer if sys.stdin is not None else io.BytesIO())
        self._number = 0

    def line(self) -> str | None:
        """Return the next entry.

        Raises:
            UsageError: It is no UTF-8.
        """
        parts: list[str] = []
        while True:
            raw = self._stream.readline()
            if not raw:
                return "\n".join(parts) if parts else None
            self._number += 1
            text = self._decoded(raw)
            if not text.endswith("\\"):
                return "\n".join([*parts, text])
            parts.append(text[:-1])

    def answer(self, question: str) -> str | None:
        """Nobody is there."""
        return None

    def _decoded(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8-sig" if self._number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise UsageError(
                f"line {self._number} of the input is no UTF-8", remedy="save the script as UTF-8"
            ) from None
        return text.rstrip("\r\n")
