"""Workers of one GPU tell each other when it last worked, so that none warms what is warm."""

from __future__ import annotations

from typing import Any, cast

from kernelskill.backends.cuda.client import Activity, CudaWorker
from kernelskill.backends.cuda.prepared import WorkerProcess
from kernelskill.schema.build import Build

TIMED = {"samples_ms": [1.0], "notes": [], "repeats": 1, "launch_share": {}}


class Written:
    """Stands where a worker's process would: writes down what it is asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def call(self, message: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
        self.asked.append(message)
        return {"ok": TIMED if message["do"] == "time" else {}}

    def close(self) -> None:
        """Nothing to end."""


def worker(process: Written, build: Build, activity: Activity | None) -> CudaWorker:
    return CudaWorker(cast(WorkerProcess, process), build, activity=activity)


def test_work_of_another_worker_counts(build: Build) -> None:
    shared, first, second = Activity(), Written(), Written()
    worker(first, build, shared).run(timeout_s=1)
    ran = shared.busy_until
    assert ran > 0
    worker(second, build, shared).time(1, flush_l2=True, timeout_s=1)
    assert second.asked[-1]["busy_until"] == ran
    assert shared.busy_until >= ran


def test_a_worker_alone_says_that_nothing_ran(build: Build) -> None:
    alone = Written()
    worker(alone, build, None).time(1, flush_l2=True, timeout_s=1)
    assert alone.asked[-1]["busy_until"] == 0.0
