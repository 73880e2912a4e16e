"""Workshop: builds, plan books and workers of one task on one backend."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from kernelskill.backends.base import Backend, Call, Unrecordable
from kernelskill.evaluation.bench import Bench, PlanBook, by_call, by_plan
from kernelskill.evaluation.capabilities import DirectBackend, PreparingBackend
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Role, Task

KEPT_PLANS = 32
KEPT_BENCHES = 3
"""Workers that stay open: the incumbent's, and those of candidates that were checked and are timed next."""
MOST_BUILDERS = 8
WORKERS_READY = 2
"""A pair that is timed needs two at once."""
RESERVED_CORES = 2
"""Where times are measured, no compiler runs on so many cores: they belong to what is checked and timed."""


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
        self._builders = builders(reserve=backend.evidence == "measured")
        self._kept: OrderedDict[str, Bench] = OrderedDict()
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._prepare_workers(WORKERS_READY)

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

    def must_run_directly(self, build: Build, calls: Iterable[Call]) -> Unrecordable | None:
        """Return why a launcher has to run itself; None where it is recorded, or cannot run at all."""
        if not isinstance(self.backend, DirectBackend):
            return None
        plans = self.plans(build)
        for call in calls:
            plan = plans.plan(call)
            if isinstance(plan, Unrecordable) and plan.direct_possible:
                return plan
        return None

    @contextmanager
    def bench(self, build: Build, *, directly: bool = False, reuse: bool = False) -> Iterator[Bench]:
        """Open a worker with a folder of its own.

        Args:
            build: What the worker holds.
            directly: Whether the launcher runs itself instead of its recorded plans.
            reuse: Whether a worker will do that held the same build before; then `bench.keep()` lets this one be
                used again. Both are gone at the end otherwise.
        """
        bench = self._kept.pop(build.key, None) if reuse and not directly else None
        bench = bench or self._fresh(build, directly)
        try:
            yield bench
        except BaseException:
            bench.close()
            raise
        if reuse and not directly and bench.wants_to_be_kept:
            self._keep(build.key, bench)
        else:
            bench.close()

    def _fresh(self, build: Build, directly: bool) -> Bench:
        self._scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="bench-", dir=self._scratch))
        try:
            return self._open(build, folder, directly)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _keep(self, key: str, bench: Bench) -> None:
        """Keep a worker for the next time its build is wanted; the one unused for longest ends."""
        bench.wants_to_be_kept = False
        self._kept[key] = bench
        while len(self._kept) > KEPT_BENCHES:
            self._kept.popitem(last=False)[1].close()

    def _open(self, build: Build, folder: Path, directly: bool) -> Bench:
        if directly and isinstance(self.backend, DirectBackend):
            caller = self.backend.open_direct(build, self._task.signature)
            return Bench(by_call(caller), caller, folder, remembers=True)
        worker = self.backend.open(build)
        scratch = Role.SCRATCH in self._task.roles.values()
        remembers = scratch or any(not variable.constant for variable in build.variables)
        plans = self.plans(build)
        return Bench(by_plan(plans, worker), worker, folder, remembers=remembers, plans=plans)

    def close(self) -> None:
        """Drop builds that have not begun, end what waits and empty the scratch folder."""
        while self._kept:
            self._kept.popitem()[1].close()
        self._prepare_workers(0)
        self._builders.shutdown(wait=True, cancel_futures=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _prepare_workers(self, count: int) -> None:
        if isinstance(self.backend, PreparingBackend):
            self.backend.prepare_workers(count)


def builders(*, reserve: bool, most: int = MOST_BUILDERS) -> ThreadPoolExecutor:
    """Return the threads that compile.

    Args:
        reserve: Whether they and what they start stay off some cores, where there is more than one.
        most: How many there are at most.
    """
    cores = sorted(os.sched_getaffinity(0))
    kept = min(RESERVED_CORES, len(cores) - 1) if reserve else 0
    free = cores[kept:]
    wanted = len(free) if kept else max(2, len(cores) // 2)
    # A thread hands its cores down to the processes that it starts.
    return ThreadPoolExecutor(
        max_workers=min(most, wanted),
        thread_name_prefix="build",
        initializer=os.sched_setaffinity,
        initargs=(0, free),
    )
