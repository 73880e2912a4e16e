"""Random algorithms: printed plainly, lifted, scheduled and emitted, they stay what they are.

A fixed sample; KERNELSKILL_RANDOM=N takes N algorithms a test, other ones with KERNELSKILL_SEED.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.model import CannotLift, IllegalMove
from kernelskill.source.unit import SourceUnit
from tests.algorithm.choosing import Rolled
from tests.algorithm.emission import HEAD, Case, compare, differences, emitted_text, expected, is_exact, plans
from tests.algorithm.sample import Sample
from tests.algorithm.strategies import sample, samples

FULL = int(os.environ.get("KERNELSKILL_RANDOM", "0"))
SEED = int(os.environ.get("KERNELSKILL_SEED", "0"))
BATCH = 16
"""Kernels compiled together."""
SHAPES = {
    "any": ("value", "value", "reduction", "contraction", "window"),
    "sums": ("contraction", "contraction", "window", "reduction"),
}


def rolled(count: int, shape: str = "any") -> Iterator[Sample]:
    for number in range(FULL or count):
        yield sample(Rolled(SEED * 1_000_000 + number), 3, SHAPES[shape])


def checked(cases: list[Case], folder: Path) -> None:
    """Compile and run cases in batches; fails with the first kernels that are wrong."""
    for first in range(0, len(cases), BATCH):
        problems = compare(cases[first : first + BATCH], folder)
        assert not problems, "\n\n".join(problems[:3])


@settings(
    max_examples=FULL or 25,
    derandomize=not FULL,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(samples())
def test_lifting_gives_the_algorithm_back(given_sample: Sample) -> None:
    unit = SourceUnit.parse(given_sample.text)
    try:
        lifted = lift_kernel(unit, unit.kernels[0])
    except CannotLift:
        return  # with a reason: nothing wrong comes of it
    arguments = given_sample.arguments
    wanted = expected(given_sample.algorithm, arguments)
    assert not differences(wanted, expected(lifted.algorithm, arguments), exact=True)


def test_most_plain_kernels_are_lifted() -> None:
    refusals = []
    for one in rolled(40):
        unit = SourceUnit.parse(one.text)
        try:
            lift_kernel(unit, unit.kernels[0])
        except CannotLift as refused:
            refusals.append(refused.reason)
    assert len(refusals) <= (FULL or 40) // 10, refusals


@pytest.mark.slow
def test_plain_kernels_do_what_the_interpreter_says(tmp_path: Path) -> None:
    cases = []
    for one in rolled(32):
        arguments = one.arguments
        cases.append(Case(repr(one), one.text, arguments, expected(one.algorithm, arguments), exact=True))
    checked(cases, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_moved_kernels_do_what_the_interpreter_says(shape: str, tmp_path: Path) -> None:
    cases = []
    for number, one in enumerate(rolled(8, shape)):
        arguments = one.arguments
        wanted = expected(one.algorithm, arguments)
        try:
            for label, plan in plans(one.algorithm, np.random.default_rng(number), 4):
                if is_exact(plan) or not one.specials:
                    text = f"{label}\n{one!r}"
                    cases.append(Case(text, emitted_text(plan), arguments, wanted, exact=is_exact(plan)))
        except IllegalMove:
            continue
    assert cases
    checked(cases, tmp_path)


@pytest.mark.slow
def test_moved_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    texts: dict[str, None] = {}
    for number, one in enumerate(rolled(10, "sums")):
        try:
            moved = list(plans(one.algorithm, np.random.default_rng(number), 3))
        except IllegalMove:
            continue
        texts.update(dict.fromkeys(emitted_text(plan) for _, plan in moved[-2:]))
    parts = [HEAD]
    for number, text in enumerate(texts):
        body = text.removeprefix(HEAD).replace('extern "C" ', "")
        parts.append(f"namespace v{number} {{\n{body}\n}}\n")
    (tmp_path / "all.cu").write_text("".join(parts))
    command = ["nvcc", "-std=c++17", "-arch=sm_80", "-ptx", "-w", "all.cu", "-o", "all.ptx"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:3000]
