"""Workshop: builds, plan books and workers of one task on one backend."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from kernelskill.backends.base import Backend
from kernelskill.evaluation.bench import Bench, PlanBook
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Task

KEPT_PLANS = 32
BUILD_THREADS = 2


class Workshop:
    """Everything that has to be made before a candidate can run.

    Args:
        backend: The device.
        task: Its signature and flags hold for every candidate.
        scratch: Folder for what workers write; emptied when the workshop closes.
    """

    def __init__(self, backend: Backend, task: Task, scratch: Path) -> None:
        self.backend = backend
        self._task = task
        self._scratch = scratch
        self._plans: OrderedDict[str, PlanBook] = OrderedDict()
        self._builders = ThreadPoolExecutor(max_workers=BUILD_THREADS, thread_name_prefix="build")
        self._asked: set[str] = set()
        self._lock = threading.Lock()

    def prefetch(self, candidates: Sequence[Candidate]) -> None:
        """Start building candidates in the background; what fails shows when it is asked for."""
        for candidate in candidates:
            with self._lock:
                if candidate.digest in self._asked:
                    continue
                self._asked.add(candidate.digest)
            self._builders.submit(self.build, candidate)

    def build(self, candidate: Candidate) -> Build | BuildFailure:
        """Compile a candidate, or return the finished build of an equal one."""
        return self.backend.build(candidate, self._task.signature, self._task.flags)

    def plans(self, build: Build) -> PlanBook:
        """Return the plan book of a build; the last few are kept."""
        with self._lock:
            book = self._plans.pop(build.key, None) or PlanBook(self.backend, build, self._task.signature)
            self._plans[build.key] = book
            while len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
            return book

    @contextmanager
    def bench(self, build: Build) -> Iterator[Bench]:
        """Open a worker with a folder of its own; both are gone afterwards."""
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="bench-", dir=self._scratch))
        try:
            bench = Bench(self.plans(build), self.backend.open(build), folder)
            try:
                yield bench
            finally:
                bench.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Drop builds that have not begun and empty the scratch folder."""
        self._builders.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self._scratch, ignore_errors=True)
