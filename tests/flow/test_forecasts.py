"""Forecasts of a real task: the emulated device stands in before a GPU looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.backends.emulated import EmulatedBackend
from kernelskill.evaluation.forecasts import Forecaster, most_at_once
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.trials import TrialSource
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.candidate import Candidate
from kernelskill.tasks.load import load_task
from kernelskill.tasks.process import TestProcess

KERNEL = """\
__global__ void copy(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[(i * 32) % n];
}
extern "C" void launch(const float *x, float *y, int n) { copy<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
TESTS = """\
import numpy as np
LAUNCHER = "launch"
CASES = [dict(n=1 << 20, time=True), dict(n=31)]
def make_inputs(rng, n, **_):
    return dict(x=rng.standard_normal(n, dtype=np.float32), y=np.zeros(n, np.float32), n=n)
def reference(x, n, **_):
    return dict(y=x[(np.arange(n) * 32) % n])
"""


@pytest.mark.slow
def test_what_moves_less_is_expected_to_be_faster_and_what_does_not_build_to_be_nothing(
    tmp_path: Path,
) -> None:
    kernel, tests = tmp_path / "kernel.cu", tmp_path / "test.py"
    kernel.write_text(KERNEL)
    tests.write_text(TESTS)
    loaded = load_task(kernel, tests)
    with TestProcess.start(loaded.tests) as values:
        trials = TrialSource(loaded.task, values, tmp_path / "values")
        store = EvaluationStore(tmp_path / "run")
        gpu = find_gpu("h200")
        forecaster = Forecaster(loaded.task, gpu, trials, store, tmp_path / "scratch")
        # What it says need not be right: only how long it takes is asked.
        dense, broken = (
            Candidate.of("kernel.cu", {"kernel.cu": KERNEL.replace("(i * 32) % n", text)})
            for text in ("i", "nowhere")
        )
        pool = SeedFile(tmp_path / "seeds.json").pool()
        unwanted = forecaster.forecasts([loaded.original, broken], pool, lambda: False)
        assert [forecast.seconds for forecast in unwanted.values()] == [None, None]
        found = forecaster.forecasts([loaded.original, dense, broken], pool)
        slow, fast = found[loaded.original.digest].seconds, found[dense.digest].seconds
        assert slow is not None
        assert fast is not None
        assert slow > 1.5 * fast
        assert found[broken.digest].seconds is None
        assert found[broken.digest].reason == "it does not build"
        again = Forecaster(loaded.task, gpu, trials, EvaluationStore(tmp_path / "run"), tmp_path / "none")
        assert again.forecasts([dense, broken], pool) == {
            digest: found[digest] for digest in (dense.digest, broken.digest)
        }
        again.close()
        assert not (tmp_path / "none").exists()
        forecaster.close()
    assert EmulatedBackend.evidence == "estimated"


def test_no_more_run_at_once_than_the_memory_holds() -> None:
    assert most_at_once(1 << 60) == 1
    assert most_at_once(1) >= 2
