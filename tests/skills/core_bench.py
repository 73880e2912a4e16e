"""Evaluate candidates of a core benchmark on its untimed cases, on the emulated device."""

from __future__ import annotations

from pathlib import Path

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.task_parts import TaskParts
from kernelskill.resources import data_folder
from kernelskill.runs import SystemClock
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.task import Promise, Task
from kernelskill.tasks.load import LoadedTask, load_task
from kernelskill.tasks.testsource import TestSource

CORE = sorted(path.parent for path in data_folder("benchmarks").glob("core/*/kernel.cu"))
TRIALS = 2


class SmallTask:
    """A task without its timed cases; a task needs one, so the last of the others stands for them."""

    def __init__(self, loaded: LoadedTask, promises: frozenset[Promise]) -> None:
        small = [case for case in loaded.task.cases if not case.timed] or list(loaded.task.cases)
        small[-1] = small[-1].model_copy(update={"timed": True})
        self.task: Task = loaded.task.model_copy(
            update={"cases": tuple(small), "promise": loaded.task.promise | promises, "has_baseline": False}
        )
        self.original: Candidate = loaded.original
        self.tests: TestSource = loaded.tests


class CoreBench:
    """One evaluator for every candidate of one task; its answers are kept in a folder.

    Args:
        folder: Of the benchmark.
        results: Where answers are kept by their content.
        promises: What is promised besides what the test promises.
    """

    def __init__(self, folder: Path, results: Path, promises: frozenset[Promise] = frozenset()) -> None:
        parts: TaskParts = SmallTask(load_task(folder / "kernel.cu", folder / "test.py"), promises)
        self.task, self.original = parts.task, parts.original
        place = results / f"{folder.name}-{self.task.content_digest()[:16]}"
        place.mkdir(parents=True, exist_ok=True)
        seeds = SeedFile(place / "seeds.json")
        self._pool = seeds.pool("main", TRIALS)
        self._evaluator: Evaluator = open_evaluator(
            "emulated", parts, run_folder=place, seeds=seeds, clock=SystemClock()
        )

    def evaluate(self, candidate: Candidate) -> Evaluation:
        """Build and check a candidate; an answer that is kept is returned."""
        request = Request(
            task=self.task.content_digest(),
            candidate=candidate,
            stage="check",
            device=self._evaluator.identity,
            depth="full",
            seed_pool=self._pool.digest,
        )
        return self._evaluator.evaluate(request)

    def close(self) -> None:
        """End its processes."""
        self._evaluator.close()
