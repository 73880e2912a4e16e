"""Two variants, each best on other sizes, end in one file that chooses; on the emulated device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.events import Clock
from kernelskill.runs import fold
from kernelskill.schema.event import Judged
from kernelskill.tasks.load import load_task
from tests.unit.graph.shop import Shop

pytestmark = pytest.mark.slow

KERNEL = """\
#define BLOCK 256

__global__ void scale_all(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 2.0f * x[i] + 1.0f;
}

extern "C" void scale(const float *x, float *y, int n)
{
    scale_all<<<1, BLOCK>>>(x, y, n);
}
"""
ONE_BLOCK = "    scale_all<<<1, BLOCK>>>(x, y, n);"
MANY_BLOCKS = """\
    scale_all<<<64, BLOCK>>>(x, y, 0);
    scale_all<<<64, BLOCK>>>(x, y, 0);
    scale_all<<<64, BLOCK>>>(x, y, n);"""
TEST = """\
import numpy as np

CASES = [dict(n=1), dict(n=999), dict(n=2000, time=True), dict(n=100_000, time=True)]


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x, n):
    return {"y": 2 * x + 1}
"""


def test_the_sizes_choose_between_a_rewrite_and_the_original(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    (tmp_path / "test.py").write_text(TEST)
    loaded = load_task(tmp_path / "kernel.cu", tmp_path / "test.py")

    def evaluator(root: Path, seeds: SeedFile, clock: Clock) -> Evaluator:
        return open_evaluator("emulated", loaded, run_folder=root, seeds=seeds, clock=clock)

    shop = Shop(tmp_path, loaded.task, loaded.original, evaluator, device="emulated")
    try:
        shop.skill("parallelism/spread", ONE_BLOCK, MANY_BLOCKS)
        context = shop.run(shop.context())
        alone, both = [event for event in context.log.events if isinstance(event, Judged)]
        best = context.member(fold(context.log.events).best)
        assert alone.verdict.kind in ("accepted", "regressed_case")
        assert (both.combined, both.verdict.kind.value) == (True, "accepted"), both.verdict
        assert both.label.startswith("where n ")
        assert both.candidate == best.candidate.digest
        assert alone.speedup_to_original is not None
        assert best.speedup > 1.15 * max(1.0, alone.speedup_to_original)
        source = best.candidate.source
        assert 'extern "C" void scale(const float *x, float *y, int n)' in source
        assert "scale_all<<<1, BLOCK>>>" in source
        assert "<<<64, BLOCK>>>" in source
        assert best.lineage.patches[-1].diff.count("\n+") > 5
    finally:
        shop.close()
