from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.timing import TimingRules
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Request
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testsource import read_test_source

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))
import scripted_backend as scripted


@pytest.fixture(scope="session")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestProcess]:
    path = tmp_path_factory.mktemp("tests") / "test.py"
    path.write_text(scripted.TESTS)
    with TestProcess.start(read_test_source(path)) as process:
        yield process


class Laboratory:
    """An evaluator on the scripted backend, and requests that fit it."""

    def __init__(
        self, folder: Path, values: TestProcess, backend: Any, original: Any, **changes: Any
    ) -> None:
        self.folder, self.backend, self.original = folder, backend, original
        self.task = scripted.make_task(original, **changes)
        self.seeds = SeedFile(folder / "seeds.json", random.Random(7))
        self.pool = self.seeds.pool(size=3)
        self.store = EvaluationStore(folder)
        self.evaluator = LocalEvaluator(
            backend, self.task, original, values,
            seeds=self.seeds, store=self.store, data=folder / "data", clock=SystemClock(),
            timing_rules=TimingRules(warm_s=0.05),
        )  # fmt: skip

    def request(self, candidate: Any, **changes: Any) -> Request:
        facts: dict[str, Any] = {
            "task": self.task.content_digest(),
            "candidate": candidate,
            "stage": "check",
            "device": self.evaluator.device,
            "seed_pool": self.pool.digest,
        }
        return Request(**(facts | changes))

    def check(self, behaviour: str, **settings: Any) -> Any:
        return self.evaluator.evaluate(self.request(scripted.source(behaviour, **settings)))

    def time(self, behaviour: str, **settings: Any) -> Any:
        candidate = scripted.source(behaviour, **settings)
        return self.evaluator.evaluate(self.request(candidate, stage="time", incumbent=self.original))


@pytest.fixture
def laboratory(tmp_path: Path, values: TestProcess) -> Callable[..., Laboratory]:
    def make(
        original: str = "right",
        *,
        evidence: str = "measured",
        settings: dict[str, Any] | None = None,
        full: bool = False,
        **changes: Any,
    ) -> Laboratory:
        kind = scripted.FullBackend if full else scripted.ScriptedBackend
        backend = kind(evidence=evidence)
        return Laboratory(tmp_path, values, backend, scripted.source(original, **(settings or {})), **changes)

    return make
