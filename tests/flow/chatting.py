"""A chat driven through a pseudo-terminal, as a person would: type, wait for the prompt, read."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pexpect

from tests.flow.small_task import environment

READY = r"\x1b\[\?2004h"
"""What the prompt tells the terminal first: paste is welcome from here on."""
WHERE = r"\x1b\[6n"
"""The question where the cursor is; terminals answer it."""
TAKEN = r"\x1b\[\?2004l"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7])m")


class Terminal:
    """One chat."""

    def __init__(self, folder: Path, *arguments: str, size: tuple[int, int] = (40, 100), **env: str) -> None:
        merged = environment(TERM="xterm-256color", **env)
        merged.pop("COLUMNS")
        self.transcript = ""
        self.raw = ""
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "kernelskill", "chat", *arguments],
            cwd=str(folder),
            env={name: value for name, value in merged.items() if value},
            dimensions=size,
            timeout=400,
            encoding="utf-8",
        )
        self.child.delaybeforesend = None

    def until(self, pattern: str) -> str:
        """Wait for something and return what was shown before and with it."""
        raw = ""
        found = 1
        while found:
            found = self.child.expect([pattern, WHERE])
            raw += (self.child.before or "") + (self.child.after if isinstance(self.child.after, str) else "")
            if found:
                self.child.send("\x1b[1;1R")
        self.raw += raw
        shown = plain(raw)
        self.transcript += shown
        return shown

    def ready(self) -> str:
        """Wait until something can be typed; returns what was shown before."""
        return self.until(READY)

    def say(self, text: str) -> str:
        """Type a line and return what was answered before the next prompt."""
        self.child.send(text + "\r")
        self.until(TAKEN)
        return self.ready()

    def begin(self, text: str, until: str) -> None:
        """Type a line whose answer takes a while, and wait for a first sign of it."""
        self.child.send(text + "\r")
        self.until(TAKEN)
        self.until(until)

    def interrupt(self) -> None:
        """Press Ctrl-C; one that stands still sees it as it goes on."""
        self.child.send("\x03")
        self.thaw()

    def freeze(self) -> None:
        """Let it stand still where it is, so that what it does does not end before the next key is pressed."""
        os.kill(self.child.pid, signal.SIGSTOP)
        self.child.expect(pexpect.TIMEOUT, timeout=0)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.child.pid, signal.SIGCONT)

    def waits(self) -> bool:
        """Whether it waits for a line already, by what has been taken of what it shows."""
        return re.search(READY, self.child.buffer) is not None

    def comes(self, sign: Callable[[], bool], what: str, seconds: float = 300.0, pause: float = 0.1) -> None:
        """Wait for something that isn't shown; what is shown meanwhile is taken, or the chat would stand still."""
        deadline = time.monotonic() + seconds
        while not sign():
            shown = plain(self.child.buffer)
            assert time.monotonic() < deadline, f"{what} never came: {self.transcript}{shown}"
            self.child.expect(pexpect.TIMEOUT, timeout=pause)

    def end(self) -> None:
        """End it, whatever it does."""
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
            self.child.wait()

    def ended(self) -> int:
        """Wait for the end and return the exit code, or minus the signal."""
        self.until(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus


def plain(raw: str) -> str:
    """Return what was shown, without escapes."""
    return ESCAPE.sub("", raw).replace("\r\n", "\n").replace("\r", "\n")
