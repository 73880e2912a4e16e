"""Blocks that look back over many tiles wait for those that are late, on the emulated device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Status
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY
from tests.skills.core_bench import CORE, CoreBench

SKILL = "parallelism/single_pass_scan"
LATE = """ = next_tile(tiles);
    if (tile % 40 == 0 && threadIdx.x == 0)
        while (*(volatile unsigned long long *)tiles < gridDim.x && *(volatile unsigned long long *)tiles < tile + 39ull)
            ;
    __syncthreads();
"""


@pytest.mark.slow
def test_tiles_that_are_late_are_waited_for(tmp_path: Path) -> None:
    bench = CoreBench(next(folder for folder in CORE if folder.name == "scan"), tmp_path)
    try:
        context = SkillContext(task=bench.task)
        found, _ = find_steps(bench.original, LIBRARY.get(SKILL), LIBRARY, context)
        wanted = {"items": "4", "threads": "128"}
        step = next(entry.step for entry in found if dict(entry.step.parameters) == wanted)
        text = apply_step(bench.original, step, LIBRARY, context).candidate.source
        assert text.count(" = next_tile(tiles);\n") == 1
        text = text.replace(" = next_tile(tiles);\n", LATE)
        main = bench.original.main
        evaluation = bench.evaluate(Candidate.of(main, {main: text}))
    finally:
        bench.close()
    assert evaluation.status is Status.PASSED, evaluation.detail
