"""Ctrl-C and its kin while a command works: once stops at the next safe point, twice leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from kernelskill.runs import StopFlag


class Interrupts:
    """What signals mean. One object for a whole chat."""

    def __init__(self, stop: StopFlag, end_prompt: Callable[[], bool]) -> None:
        self.stop = stop
        self.leaving = False
        """Whether somebody wants the program to end, not only the work at hand."""
        self.pressed = False
        """Whether Ctrl-C came since the work at hand began, or since it was said that it goes on."""
        self._working = False
        self._end_prompt = end_prompt

    @contextmanager
    def of_a_chat(self) -> Iterator[None]:
        """Leave in good order where the program is told to end or its terminal goes away."""
        with _handlers(dict.fromkeys((signal.SIGTERM, signal.SIGHUP), self._end)):
            yield

    @contextmanager
    def while_working(self) -> Iterator[None]:
        """Set the flag at the first Ctrl-C; the second raises KeyboardInterrupt."""
        self.go_on()
        self._working = True
        try:
            with _handlers({signal.SIGINT: self._interrupt}):
                yield
        finally:
            self._working = False

    def go_on(self) -> None:
        """Take a Ctrl-C for answered."""
        self.stop.is_set = self.pressed = False

    @contextmanager
    def while_a_shell_works(self) -> Iterator[None]:
        """Leave Ctrl-C to the child."""
        with _handlers({signal.SIGINT: lambda _number, _frame: None}):
            yield

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.pressed:
            self.leaving = True
            os.write(2, b"\n")
            raise KeyboardInterrupt
        self.stop.is_set = self.pressed = True
        # Not through a stream: the signal may have come in the middle of a write to it.
        os.write(2, b"\nstopping soon; Ctrl-C again leaves, all is kept\n")

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self.leaving = True
        if self._working and not self.pressed:
            self.stop.is_set = self.pressed = True
        elif self._working or not self._end_prompt():
            raise KeyboardInterrupt


@contextmanager
def _handlers(wanted: dict[signal.Signals, signal._HANDLER]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
