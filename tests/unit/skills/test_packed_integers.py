"""The skill that computes two bytes in a word: on kernels of the core suite, behind the one that tells borders apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.schema.candidate import Candidate, Step
from kernelskill.skills.apply import apply_step, combine, find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY

SKILL = "compute/packed_integers"
CORE = Path(__file__).parents[3] / "benchmarks" / "core"
CONTEXT = SkillContext()


def inner(site: str, points: str = "8x4") -> Step:
    return Step(
        skill="parallelism/inner_points", site=site, parameters=(("points", points), ("threads", "8x32"))
    )


def packed(site: str, points: str = "8x8") -> Step:
    return Step(skill=SKILL, site=site, parameters=(("points", points),))


@pytest.mark.parametrize(("task", "kernel"), [("sobel", "sobel_kernel"), ("game_of_life", "generation")])
def test_kernels_over_bytes_are_packed(task: str, kernel: str) -> None:
    start = Candidate.of("kernel.cu", {"kernel.cu": (CORE / task / "kernel.cu").read_text()})
    alone, refusals = find_steps(start, LIBRARY.get(SKILL), LIBRARY, CONTEXT)
    assert not alone
    assert "inner_points comes first" in refusals[0].reason
    begun = apply_step(start, inner(kernel), LIBRARY, CONTEXT).candidate
    found, _ = find_steps(begun, LIBRARY.get(SKILL), LIBRARY, CONTEXT)
    assert {step.site.key for step in found} == {kernel}
    made = combine(start, [inner(kernel), packed(kernel, "4x16")], LIBRARY, CONTEXT).candidate
    text = made.text_of("kernel.cu")
    assert "__byte_perm(" in text
    assert [move.move for move in made.scheduled[0].moves] == ["inner_points", "pack_integers"]


def test_it_is_asked_behind_inner_points() -> None:
    assert SKILL in {skill.id for skill in LIBRARY.followers(LIBRARY.get("parallelism/inner_points"))}


def test_floats_are_refused_with_the_reason() -> None:
    text = (CORE / "stencil" / "kernel.cu").read_text()
    begun = apply_step(
        Candidate.of("kernel.cu", {"kernel.cu": text}), inner("jacobi", "4x4"), LIBRARY, CONTEXT
    )
    found, refusals = find_steps(begun.candidate, LIBRARY.get(SKILL), LIBRARY, CONTEXT)
    assert not found
    assert any("results are no bytes" in refusal.reason for refusal in refusals)
