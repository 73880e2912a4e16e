"""Kernels with one known fault each: the first limit named on the emulated device is a right one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parents[2] / "benchmarks" / "emulation" / "diagnoses.py"
SAMPLE = ("transpose_naive", "tiny_grid")


def test_the_fault_is_what_is_named_first() -> None:
    """Two of the fifteen; KERNELSKILL_PATTERNS=all tries the rest, some minutes."""
    only = [] if os.environ.get("KERNELSKILL_PATTERNS") == "all" else ["--only", *SAMPLE]
    done = subprocess.run(
        [sys.executable, PROGRAM, *only], capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
