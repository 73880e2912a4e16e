"""What the skills must make of the core benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for


def applied(skill: str, benchmark: str, symbol: str, *promises: Promise) -> tuple[str, tuple[str, ...]]:
    """Return what the first step of a skill makes of a benchmark, and its assumptions."""
    folder: Path = data_folder("benchmarks") / "core" / benchmark
    candidate = Candidate.of("kernel.cu", {"kernel.cu": (folder / "kernel.cu").read_text()})
    context = context_for(symbol, *promises)
    found, refusals = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)
    assert found, refusals
    result = apply_step(candidate, found[0].step, LIBRARY, context)
    return result.candidate.source, result.assumptions


def test_powers_of_three_halves_are_roots() -> None:
    text, _ = applied("compute/small_powers", "nbody", "accelerations")
    assert "pow(" not in text
    assert "const float inverse_root = rsqrtf(d2);" in text
    assert "float s = bodies[j].w * inverse_root * inverse_root * inverse_root;" in text


def test_sums_in_memory_are_guarded_without_a_promise() -> None:
    text, assumptions = applied("memory/accumulate_in_register", "nbody", "accelerations")
    assert not assumptions
    assert "if (ax_is_apart && ay_is_apart && az_is_apart) {" in text
    assert text.count("for (int j = 0; j < n; ++j) {") == 2
    assert "ay_sum += dy * s;" in text
    assert "ay[i] += dy * s;" in text


def test_sums_in_memory_are_plain_with_the_promise() -> None:
    text, assumptions = applied("memory/accumulate_in_register", "nbody", "accelerations", Promise.NO_ALIAS)
    assert len(assumptions) == 1
    assert "_is_apart" not in text
    assert text.count("for (int j = 0; j < n; ++j) {") == 1
    assert "ay[i] = ay_sum;" in text


@pytest.mark.parametrize(
    ("benchmark", "symbol", "line"),
    [
        ("matmul", "matmul", "int row = blockIdx.x * blockDim.y + threadIdx.y;"),
        ("transpose", "transpose_f32", "int x = blockIdx.x * blockDim.y + threadIdx.y;"),
    ],
)
def test_strided_threads_are_swapped(benchmark: str, symbol: str, line: str) -> None:
    assert line in applied("memory/swap_thread_axes", benchmark, symbol)[0]
