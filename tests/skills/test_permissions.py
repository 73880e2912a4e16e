"""What skills write needs the ALLOW that the skills need, by the evaluator's own reading of the build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.toolchain import Toolchain
from kernelskill.evaluation.permissions import refusal_of
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.resources import data_folder
from kernelskill.schema.build import Build
from kernelskill.schema.task import Allowance
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.skills.transformation import SkillContext
from kernelskill.tasks.load import load_task
from tests.skills.applying import LIBRARY

CASES: list[tuple[str, str, Allowance | None]] = [
    ("swiglu", "compute/fast_intrinsics", Allowance.FAST_MATH),
    ("matmul_half", "compute/tensor_cores", None),
]
WANTED = CASES if os.environ.get("KERNELSKILL_CORE") == "all" else CASES[:1]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "skill", "needs"), WANTED)
def test_results_need_what_the_skill_needs(
    tmp_path: Path, kernel: str, skill: str, needs: Allowance | None
) -> None:
    folder = data_folder("benchmarks") / "core" / kernel
    loaded = load_task(folder / "kernel.cu", folder / "test.py", allow=[needs] if needs else [])
    context = SkillContext(task=loaded.task)
    found, refusals = find_steps(loaded.original, LIBRARY.get(skill), LIBRARY, context)
    assert found, refusals
    result = apply_step(loaded.original, found[0].step, LIBRARY, context).candidate
    with BuildCache(tmp_path / "builds") as cache:
        builds = []
        for candidate in (loaded.original, result):
            build = compile_candidate(
                candidate,
                loaded.task.signature,
                flags=loaded.task.flags,
                architecture="sm_90a",
                toolchain=Toolchain.find(),
                cache=cache,
            )
            assert isinstance(build, Build)
            builds.append(build)
    original, rewritten = builds
    assert refusal_of(loaded.task, rewritten, original) == ""
    strict = loaded.task.model_copy(update={"allow": frozenset({Allowance.REORDER})})
    refused = refusal_of(strict, rewritten, original)
    assert (str(needs) in refused) if needs else not refused
