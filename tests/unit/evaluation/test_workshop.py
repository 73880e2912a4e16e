"""Compilers and timing share a machine without getting in each other's way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kernelskill.evaluation.workshop import MOST_BUILDERS, RESERVED_CORES, builders

CORES = sorted(os.sched_getaffinity(0))
ASK = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]


def cores_of_a_compiler(reserve: bool) -> list[int]:
    """Return the cores of a process that a builder starts."""
    with builders(reserve=reserve) as pool:
        assert pool._max_workers <= MOST_BUILDERS
        said = pool.submit(subprocess.run, ASK, capture_output=True, text=True, check=True).result().stdout
    return [int(word) for word in said.strip("[]\n").split(",")]


@pytest.mark.skipif(len(CORES) < 2, reason="there is nothing to reserve")
def test_compilers_stay_off_the_reserved_cores_where_times_are_measured():
    free = cores_of_a_compiler(reserve=True)
    assert free == CORES[min(RESERVED_CORES, len(CORES) - 1) :]
    assert sorted(os.sched_getaffinity(0)) == CORES, "everybody else keeps all"


def test_all_cores_compile_where_times_are_estimated():
    assert cores_of_a_compiler(reserve=False) == CORES
