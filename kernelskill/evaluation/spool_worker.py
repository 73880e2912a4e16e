"""The worker of a spool folder: takes jobs, answers them with the device of this machine.

Run as `python -m kernelskill.evaluation.spool_worker DIR`. Needs only numpy, pydantic and, for a GPU,
cupy; parsers, databases and models stay on the other side.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kernelskill.backends.base import Backend
from kernelskill.backends.devices import open_backend
from kernelskill.errors import ArtifactCorrupt, HarnessError, KernelSkillError, TaskError
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.seeds import SeedFile, SeedPool
from kernelskill.evaluation.spool_folder import (
    Announcement,
    Answer,
    EvaluateJob,
    Lease,
    ProfileJob,
    SpoolFolder,
    Watch,
)
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.task_parts import fetch_task
from kernelskill.runs import StopFlag, SystemClock
from kernelskill.tasks.process import TestProcess
from kernelskill.tasks.snapshot import StoredTask

LEASE_S = 60.0
BEATS_A_LEASE = 6
ARRIVAL_S = 60.0
"""A task or seed file that stays unusable for so long will not arrive any more."""
ATTEMPTS = 3
"""After so many workers died on a job it is answered as failed."""

Job = EvaluateJob | ProfileJob
Log = Callable[[str], None]


def serve(
    root: Path,
    device: str = "auto",
    *,
    until_empty: bool = False,
    poll_s: float = 1.0,
    lease_s: float = LEASE_S,
    backend: Backend | None = None,
    log: Log | None = None,
    stop: StopFlag | None = None,
) -> int:
    """Answer the jobs of a spool folder.

    Args:
        root: The folder; made where it is missing.
        device: `cuda:N`, `emulated[:GPU]` or `auto`.
        until_empty: Return when no job waits; else go on until interrupted.
        poll_s: Pause between two looks at the folder.
        lease_s: A claimed job whose lease stays unchanged for so long is taken over.
        backend: Used instead of `device` where given.
        log: Told in one line what happens.
        stop: Ends the work after the job in hand once it is set.

    Returns:
        The number of jobs answered.

    Raises:
        DeviceUnavailable: The device cannot be used.
    """
    chosen = backend or open_backend(device)
    worker = SpoolWorker(SpoolFolder(root), chosen, lease_s=lease_s, log=log or (lambda text: None))
    stop = stop or StopFlag()
    with worker:
        while not stop.is_set:
            worker.take_over()
            if not worker.work() and (until_empty and worker.is_empty()):
                break
            if worker.idle and not stop.is_set:
                time.sleep(poll_s)
    return worker.answered


class SpoolWorker:
    """One worker process on one spool folder. Use as a context manager."""

    def __init__(self, folder: SpoolFolder, backend: Backend, *, lease_s: float, log: Log) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.answered = 0
        self.idle = True
        self._folder = folder
        self._backend = backend
        self._log = log
        self._clock = SystemClock()
        self._leases = Watch(lease_s)
        self._arrivals = Watch(ARRIVAL_S)
        self._heart = Heart(folder, self.name, backend, lease_s / BEATS_A_LEASE)
        self._evaluator: tuple[str, LocalEvaluator] | None = None
        self._scratch = Path(tempfile.mkdtemp(prefix="kernelskill-worker-"))

    def take_over(self) -> None:
        """Let jobs wait again whose worker shows no life."""
        for key in self._folder.claimed():
            if self._leases.is_silent(key, self._folder.lease_text(key), self._clock.seconds()):
                self._leases.forget(key)
                if self._folder.give_back(key):
                    self._log(f"job {key[:12]} came back from a worker that died")

    def work(self) -> bool:
        """Take and answer the oldest job that can be done; False where there is none."""
        self.idle = True
        for key in self._folder.waiting():
            if self._folder.result(key) is not None:
                if self._folder.claim(key):
                    self._folder.give_back(key)
                continue
            job = self._folder.read_job(key)
            if job is None or not self._has_arrived(job):
                continue
            if self._folder.claim(key):
                self.idle = False
                self._do(job)
                return True
        return False

    def is_empty(self) -> bool:
        """Whether no job waits or may come back."""
        return not self._folder.waiting() and not self._folder.claimed()

    def __enter__(self) -> SpoolWorker:
        self._heart.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._heart.stop()
        self._close_evaluator()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _has_arrived(self, job: Job) -> bool:
        """Whether task and seeds are there; what never arrives is answered with its reason."""
        try:
            self._task(job)
            self._seeds(job)
        except (TaskError, ArtifactCorrupt, HarnessError) as error:
            if self._arrivals.is_silent(job.key, error.message, self._clock.seconds()):
                self._arrivals.forget(job.key)
                self._reply(Answer(key=job.key, error=error.message, remedy=error.remedy))
            return False
        return True

    def _do(self, job: Job) -> None:
        with self._heart.holding(job.key):
            if self._folder.attempt(job.key) > ATTEMPTS:
                text = f"{ATTEMPTS} workers died on this job"
                self._reply(Answer(key=job.key, error=text))
                return
            self._log(f"job {job.key[:12]}: {job.kind}")
            self._reply(self._answer(job))

    def _answer(self, job: Job) -> Answer:
        try:
            evaluator = self._open(job)
            if isinstance(job, EvaluateJob):
                return Answer(key=job.key, evaluation=evaluator.evaluate(job.request))
            profile = evaluator.profile(job.candidate, self._seeds(job), depth=job.depth)
            return Answer(key=job.key, profile=profile)
        except KernelSkillError as error:
            return Answer(key=job.key, error=error.message, remedy=error.remedy)
        except Exception as error:  # noqa: BLE001 - the border of the process: one job must not end the worker
            self._close_evaluator()
            return Answer(key=job.key, error=f"{type(error).__name__}: {error}")

    def _reply(self, answer: Answer) -> None:
        self._folder.answer(answer.model_copy(update={"worker": self.name}))
        self.answered += 1
        said = answer.evaluation.status if answer.evaluation is not None else answer.error or "profiled"
        self._log(f"job {answer.key[:12]}: {said}")

    def _task(self, job: Job) -> StoredTask:
        if self._evaluator is not None and self._evaluator[0] == job.task:
            return self._stored
        return fetch_task(self._folder.tasks, job.task)

    def _seeds(self, job: Job) -> SeedPool:
        return SeedFile(self._folder.seeds / f"{job.seed_pool}.json").find(job.seed_pool)

    def _open(self, job: Job) -> LocalEvaluator:
        """Return the evaluator of a job's task; the last one is kept."""
        pool = self._seeds(job)
        own_seeds = SeedFile(self._scratch / "seeds.json")
        own_seeds.add(pool.digest, pool)
        if self._evaluator is not None and self._evaluator[0] == job.task:
            return self._evaluator[1]
        self._close_evaluator()
        self._stored = fetch_task(self._folder.tasks, job.task)
        values = TestProcess.start(self._stored.tests)
        evaluator = LocalEvaluator(
            self._backend,
            self._stored.task,
            self._stored.original,
            values,
            seeds=own_seeds,
            store=EvaluationStore(self._folder.store / job.task),
            data=self._scratch / "data",
            clock=self._clock,
            closes=(values,),
        )
        self._evaluator = job.task, evaluator
        return evaluator

    def _close_evaluator(self) -> None:
        if self._evaluator is not None:
            self._evaluator[1].close()
            self._evaluator = None


class Heart(threading.Thread):
    """Rewrites the worker's announcement and the lease of the job in hand while the process lives."""

    def __init__(self, folder: SpoolFolder, worker: str, backend: Backend, every_s: float) -> None:
        super().__init__(name="heart", daemon=True)
        self._folder = folder
        self._worker = worker
        self._backend = backend
        self._every_s = every_s
        self._stopped = threading.Event()
        self._key = ""
        self._beat = time.time_ns()

    def run(self) -> None:
        """Beat until stopped."""
        while not self._stopped.wait(self._every_s):
            # A full disk or a lost mount costs a beat, not the worker.
            with suppress(OSError):
                self.beat()

    def start(self) -> None:
        """Beat once, then in the background."""
        self.beat()
        super().start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self.join()

    def holding(self, key: str) -> _Holding:
        """Renew the lease of a job while the `with` block runs."""
        return _Holding(self, key)

    def hold(self, key: str) -> None:
        """Change the job in hand; empty for none."""
        self._key = key
        if key:
            self._folder.renew(key, Lease(worker=self._worker, beat=self._beat))

    def beat(self) -> None:
        """Rewrite everything once."""
        self._beat += 1
        self._folder.announce(
            Announcement(
                worker=self._worker,
                device=self._backend.name,
                gpu=self._backend.gpu,
                conditions=self._backend.conditions(),
                beat=self._beat,
            )
        )
        if self._key:
            self._folder.renew(self._key, Lease(worker=self._worker, beat=self._beat))


class _Holding:
    def __init__(self, heart: Heart, key: str) -> None:
        self._heart, self._key = heart, key

    def __enter__(self) -> None:
        self._heart.hold(self._key)

    def __exit__(self, *exception: object) -> None:
        self._heart.hold("")


def main(arguments: list[str] | None = None) -> int:
    """Run a worker from the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kernelskill.evaluation.spool_worker", description=serve.__doc__
    )
    parser.add_argument("folder", type=Path, help="the spool folder")
    parser.add_argument("--device", default="auto", help="cuda:N, emulated[:GPU] or auto (default)")
    parser.add_argument("--until-empty", action="store_true", help="end when no job waits")
    parser.add_argument("--poll", type=float, default=1.0, metavar="SECONDS", help="pause between two looks")
    parser.add_argument(
        "--lease", type=float, default=LEASE_S, metavar="SECONDS", help="silence of a dead worker"
    )
    options = parser.parse_args(arguments)
    try:
        serve(
            options.folder,
            options.device,
            until_empty=options.until_empty,
            poll_s=options.poll,
            lease_s=options.lease,
            log=lambda text: print(text, file=sys.stderr, flush=True),  # noqa: T201
        )
    except KernelSkillError as error:
        print(f"error: {error.message}\n{error.remedy}".strip(), file=sys.stderr)  # noqa: T201
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
