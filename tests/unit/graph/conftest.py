"""Whole rounds on the scripted device, with skills that rewrite what its candidates say of themselves."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.forecasts import Forecast, Wanted, always
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.timing import TimingRules
from kernelskill.events import Clock
from kernelskill.schema.candidate import Candidate
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.testsource import read_test_source
from tests.unit.graph.shop import Shop

sys.path.insert(0, str(Path(__file__).parents[2] / "fakes"))
import scripted_backend as scripted

SOURCE = """\
// scripted: right ms=1.0
__global__ void k(const float *x, float *y, int n) { /* plain */ }
extern "C" void scale(const float *x, float *y, int n) { k<<<1, 128>>>(x, y, n); }
"""


class Foretold(LocalEvaluator):
    """Forecasts what its candidates say of themselves; of `unknown` ones nothing."""

    asked: list[str]

    def forecasts(self, candidates: Sequence[Candidate], wanted: Wanted = always) -> dict[str, Forecast]:
        told = [c for c in candidates if wanted()]
        self.asked = [*getattr(self, "asked", []), *(c.digest for c in told)]
        silent = {c.digest: Forecast(candidate=c.digest, seconds=None) for c in candidates}
        return silent | {c.digest: _forecast(c) for c in told}


def _forecast(candidate: Candidate) -> Forecast:
    spilled = 8 if "spills" in candidate.source else 0
    return Forecast(candidate=candidate.digest, seconds=_said(candidate.source), spilled_bytes=spilled)


def _said(text: str) -> float | None:
    found = re.search(r"ms=([0-9.]+)", text)
    return None if found is None or "unknown" in text else float(found[1]) / 1e3


@pytest.fixture(scope="session")
def values(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestProcess]:
    path = tmp_path_factory.mktemp("tests") / "test.py"
    path.write_text(scripted.TESTS)
    with TestProcess.start(read_test_source(path)) as process:
        yield process


@pytest.fixture
def shop(tmp_path: Path, values: TestProcess) -> Iterator[Callable[..., Shop]]:
    opened: list[Shop] = []

    def make(source: str = SOURCE, **settings: Any) -> Shop:
        original = Candidate.of("kernel.cu", {"kernel.cu": source})
        task = scripted.make_task(original, **({"allow": []} if settings.get("keep_exact") else {}))
        backend = scripted.ScriptedBackend()

        def evaluator(root: Path, seeds: SeedFile, clock: Clock) -> Evaluator:
            return Foretold(
                backend, task, original, values,
                seeds=seeds, store=EvaluationStore(root), data=root / "data", clock=clock,
                timing_rules=TimingRules(warm_s=0.01),
            )  # fmt: skip

        opened.append(Shop(tmp_path, task, original, evaluator, **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
