"""What the evaluator promises on a real GPU: races of an original, values in turn, waiting after a hang, noise."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.backends.cuda.backend import CudaBackend
from kernelskill.backends.cuda.occupants import utilization
from kernelskill.errors import TaskError
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Evaluation, Request, Status
from kernelskill.tasks.load import LoadedTask, load_task
from tests.flow.test_bad_input import KERNEL, RACE, TEST, write

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
NOISE = Path(__file__).parents[2] / "benchmarks" / "noise" / "run.py"
LARGE = TEST.replace("n=4096", "n=1 << 24")


class Table:
    """One task on the first GPU."""

    def __init__(self, folder: Path, kernel: str, test: str) -> None:
        self.loaded: LoadedTask = load_task(*write(folder / "task", kernel, test))
        self.seeds = SeedFile(folder / "seeds.json", random.Random(2))
        self.pool = self.seeds.pool(size=3)
        evaluator = open_evaluator(
            "cuda:0", self.loaded, run_folder=folder / "run", seeds=self.seeds, clock=SystemClock()
        )
        assert isinstance(evaluator, LocalEvaluator)
        evaluator._check_rules = CheckRules(least_timeout_s=3.0)
        self.evaluator = evaluator

    def time(self, text: str) -> Evaluation:
        return self.evaluator.evaluate(
            Request(
                task=self.loaded.task.content_digest(),
                candidate=self.loaded.original.with_text(self.loaded.original.main, text),
                stage="time",
                incumbent=self.loaded.original,
                device=self.evaluator.identity,
                seed_pool=self.pool.digest,
            )
        )


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    table = Table(tmp_path, KERNEL, LARGE)
    yield table
    table.evaluator.close()


def test_values_take_turns_while_pairs_are_timed(table: Table) -> None:
    found = table.time(KERNEL.replace("2.0f * x[i]", "x[i] + x[i]"))
    assert found.status is Status.PASSED, found.detail
    assert found.paired[0].median == pytest.approx(1.0, rel=0.05)


def test_after_a_hang_the_gpu_is_free_for_the_next_candidate(table: Table) -> None:
    endless = "volatile const float *seen = x; while (seen[0] == seen[0]) {} if (i < n) y[i] = 2.0f * x[i];"
    hangs = table.time(KERNEL.replace("if (i < n) y[i] = 2.0f * x[i];", endless))
    assert hangs.status is Status.TIMEOUT
    assert (utilization(CudaBackend(0).found.uuid) or 0.0) < 100
    assert table.time(KERNEL.replace("2.0f * x[i]", "x[i] * 2.0f")).status is Status.PASSED


def test_an_original_that_races_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, RACE, TEST)
    try:
        with pytest.raises(TaskError, match="the original kernel ends with"):
            establish_baseline(
                table.evaluator, table.loaded.task, table.loaded.original, seed_pool=table.pool.digest
            )
    finally:
        table.evaluator.close()


def test_clocks_are_told() -> None:
    assert CudaBackend(0).clocks().sm_mhz


def test_a_short_recording_of_noise(tmp_path: Path) -> None:
    out = tmp_path / "noise.json"
    command = [
        sys.executable,
        str(NOISE),
        "--device",
        "cuda:0",
        "--out",
        str(out),
        "--same",
        "3",
        "--gains",
        "3",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert out.exists()
