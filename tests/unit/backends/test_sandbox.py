"""A compiler that somebody killed is told from one that refuses its source."""

from __future__ import annotations

import signal

import pytest

from kernelskill.backends.sandbox import require_not_killed
from kernelskill.isolation.child import ChildKilled, ChildResult


def ended(returncode: int, stderr: str = "", *, timed_out: bool = False) -> ChildResult:
    return ChildResult(returncode=returncode, timed_out=timed_out, stdout="", stderr=stderr, seconds=1.0)


@pytest.mark.parametrize(
    ("returncode", "stderr"),
    [
        (-signal.SIGKILL, ""),
        (128 + signal.SIGKILL, ""),
        (9, "nvcc error   : 'cicc' died due to signal 9 (Kill signal)"),
        (1, "Killed"),
        (1, "kernel.cu(3): warning: unused\nsh: Killed\n"),
        (1, "g++: fatal error: Killed signal terminated program cc1plus"),
        (1, "collect2: fatal error: ld terminated with signal 9 [Killed]"),
        (255, ""),
    ],
)
def test_who_was_killed_is_not_to_blame(returncode: int, stderr: str) -> None:
    with pytest.raises(ChildKilled, match="nvcc was killed while it compiled"):
        require_not_killed(ended(returncode, stderr), "nvcc")


@pytest.mark.parametrize(
    "result",
    [
        ended(0),
        ended(0, "kernel.cu(3): warning: Killed is never used"),
        ended(1, 'kernel.cu(3): error: identifier "Killed" is undefined'),
        ended(2, "kernel.cu:3: error: #error Killed"),
        ended(11, "nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)"),
        ended(-signal.SIGSEGV),
        ended(-signal.SIGKILL, timed_out=True),
    ],
)
def test_who_refuses_crashes_or_takes_too_long_was_not_killed(result: ChildResult) -> None:
    require_not_killed(result, "nvcc")
