"""Processes that a test starts and kills, and what they leave behind."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_earlier: set[int] = set()
"""Processes that other tests of this worker still hold open; they are none of ours."""


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    _earlier.update(descendants())


def descendants(root: int | None = None) -> dict[int, str]:
    """Return the living processes below a process, with their command lines."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: dict[int, str] = {}
    waiting = list(parents.get(root or os.getpid(), []))
    while waiting:
        pid = waiting.pop()
        waiting.extend(parents.get(pid, []))
        try:
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def until(condition: Callable[[], bool], seconds: float = 30.0, what: str = "") -> None:
    """Wait for something; fails where it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what or "nothing happened in time"
        time.sleep(0.02)


def no_descendants_left(seconds: float = 20.0) -> None:
    """Insist that everything below this process ends by itself, but for what earlier tests hold open."""
    deadline = time.monotonic() + seconds
    while left := {pid: line for pid, line in descendants().items() if pid not in _earlier}:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.05)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process alone, not its children, as an out-of-memory killer does."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
