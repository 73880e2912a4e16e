"""Refuse a test that proves too little, before anything is built on it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernelskill.tasks.gate import run_gate
from kernelskill.tasks.load import LoadedTask
from kernelskill.tasks.process import TestProcess


def gate(loaded: LoadedTask, *, accept_weak: bool) -> list[str]:
    """Refuse a test that a wrong kernel would pass.

    Returns:
        What a weak test lets through, where that was accepted.

    Raises:
        TaskError: The test proves too little, or its reference cannot be relied on.
    """
    with (
        TestProcess.start(loaded.tests) as process,
        tempfile.TemporaryDirectory(prefix="kernelskill-") as data,
    ):
        report = run_gate(loaded.task, process, Path(data), accept_weak=accept_weak)
    return [f"the test would accept {weak.probe} in place of {weak.output!r}" for weak in report.weak]
