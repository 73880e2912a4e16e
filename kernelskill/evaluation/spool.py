"""SpoolEvaluator: hands requests to workers on other machines through a folder that they share or copy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kernelskill.errors import DeviceUnavailable, HarnessError, JobsWaiting
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.spool_folder import (
    Announcement,
    Answer,
    EvaluateJob,
    ProfileJob,
    SpoolFolder,
    Watch,
)
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.task_parts import TaskParts, publish_task
from kernelskill.events import Clock
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import Evaluation, Request, StageSeconds, Status
from kernelskill.schema.profile import Profile, ProfileDepth

Progress = Callable[[str], None]
UNREADABLE_S = 30.0
"""An answer that cannot be read for so long is not arriving but broken."""


class SpoolRules(Record):
    """How long the client waits, and for what."""

    wait: bool = True
    """Whether to wait for answers at all; if not, open jobs end the program with `JobsWaiting`."""
    poll_s: float = 0.5
    patience_s: float = 1800.0
    """How long no worker may give a sign of life."""
    lease_s: float = 60.0
    """A claimed job whose lease stays unchanged for so long waits again."""


class SpoolEvaluator:
    """Implements `evaluation.base.Evaluator` through a folder.

    Args:
        root: The spool folder.
        parts: The task with its kernel and tests.
        seeds: The run's secret seeds.
        store: Where finished answers are kept on this side.
        clock: Measures waits.
        rules: How long to wait.
        progress: Told in one line what is waited for, whenever that changes.
    """

    def __init__(
        self,
        root: Path,
        parts: TaskParts,
        *,
        seeds: SeedFile,
        store: EvaluationStore,
        clock: Clock,
        rules: SpoolRules | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.device = "spool"
        self._folder = SpoolFolder(root)
        self._task = parts.task.content_digest()
        self._seeds = seeds
        self._store = store
        self._clock = clock
        self._rules = rules or SpoolRules()
        self._progress = progress or (lambda text: None)
        self._leases = Watch(self._rules.lease_s)
        self._unreadable = Watch(UNREADABLE_S)
        self._said = ""
        publish_task(parts, self._folder.tasks)

    @property
    def gpu(self) -> Gpu:
        """The GPU of the worker that was last heard of; waits for the first one.

        Raises:
            DeviceUnavailable: No worker ever showed itself.
            JobsWaiting: None did yet, and waiting was not asked for.
        """
        known = self._announced()
        if known is not None:
            return known.gpu
        if not self._rules.wait:
            raise self._waiting()
        started = self._clock.seconds()
        while known is None:
            if self._clock.seconds() - started > self._rules.patience_s:
                raise self._nobody()
            self._say("waiting for a worker to show itself")
            time.sleep(self._rules.poll_s)
            known = self._announced()
        return known.gpu

    @property
    def evidence(self) -> Evidence:
        """As the worker's device says; `none` before a worker was heard of."""
        return self.conditions().evidence

    def conditions(self) -> Conditions:
        """Return the conditions of the worker that was last heard of."""
        known = self._announced()
        if known is None:
            return Conditions(device="spool", gpu="unknown until a worker answers", evidence="none")
        return known.conditions.model_copy(update={"device": f"spool ({known.device})"})

    @property
    def identity(self) -> str:
        """Whichever worker answers; its conditions stand in the answer."""
        return self.device

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Put jobs into the folder ahead, so that workers have several at once."""
        self.submit(requests)

    def submit(self, requests: Sequence[Request]) -> int:
        """Add requests to the folder without waiting; return how many were not there yet."""
        added = 0
        for request in requests:
            if self._store.get(request.key) is None:
                self._share_seeds(request.seed_pool)
                added += self._folder.submit(EvaluateJob(request=request))
        return added

    def evaluate(self, request: Request) -> Evaluation:
        """Answer a request by whichever worker takes it.

        Raises:
            JobsWaiting: The answer is not there and waiting was not asked for.
            DeviceUnavailable: No worker gave a sign of life for too long.
            HarnessError: The worker could not answer.
        """
        found = self._store.get(request.key)
        if found is not None:
            return found
        job = EvaluateJob(request=request)
        self._share_seeds(request.seed_pool)
        started = self._clock.seconds()
        answer = self._wait(job)
        if answer.evaluation is None or answer.evaluation.key != request.key:
            raise self._failed(answer)
        if answer.evaluation.status is Status.HARNESS_ERROR:
            self._folder.forget(answer.key)
        wait = StageSeconds(stage="wait", seconds=self._clock.seconds() - started)
        evaluation = answer.evaluation.model_copy(update={"seconds": (*answer.evaluation.seconds, wait)})
        self._store.put(evaluation)
        return evaluation

    def profile(self, candidate: Candidate, *, depth: ProfileDepth = "quick") -> Profile:
        """Collect the figures of a candidate by whichever worker takes the job.

        Raises:
            JobsWaiting, DeviceUnavailable, HarnessError: As for `evaluate`.
        """
        pool = self._seeds.pool().digest
        job = ProfileJob(task=self._task, candidate=candidate, seed_pool=pool, depth=depth)
        found = self._store.get_profile(job.key)
        if found is not None:
            return found
        self._share_seeds(pool)
        answer = self._wait(job)
        if answer.profile is None:
            raise self._failed(answer)
        self._store.put_profile(job.key, answer.profile)
        return answer.profile

    def close(self) -> None:
        """Leave everything as it is: open jobs are answered for the next time."""

    def _share_seeds(self, digest: str) -> None:
        target = SeedFile(self._folder.seeds / f"{digest}.json")
        if not target.path.is_file():
            target.add("main", self._seeds.find(digest))

    def _wait(self, job: EvaluateJob | ProfileJob) -> Answer:
        """Submit a job, watch it until it is answered, and revive it when its worker died."""
        life = Watch(self._rules.patience_s)
        self._folder.submit(job)
        while True:
            answer = self._folder.result(job.key)
            if answer is not None:
                return answer
            if not self._rules.wait:
                raise self._waiting()
            now = self._clock.seconds()
            self._revive(job, now)
            beats = "".join(f"{a.worker}:{a.beat};" for a in self._folder.announcements())
            if life.is_silent("workers", beats, now):
                raise self._nobody()
            time.sleep(self._rules.poll_s)

    def _revive(self, job: EvaluateJob | ProfileJob, now: float) -> None:
        """Bring a job back that its worker, a broken answer or a careless copy lost."""
        key = job.key
        state = self._folder.state(key)
        if state == "answered" and self._unreadable.is_silent(key, state, now):
            self._folder.forget(key)
        elif state == "claimed":
            lease = self._folder.lease_text(key)
            self._say(f"a worker has job {key[:12]}")
            if self._leases.is_silent(key, lease, now):
                self._leases.forget(key)
                self._folder.give_back(key)
        elif state == "waiting":
            self._say(f"{_count(len(self._folder.waiting()))} in {self._folder.root}")
        else:
            self._folder.submit(job)

    def _announced(self) -> Announcement | None:
        known = self._folder.announcements()
        return max(known, key=lambda announcement: announcement.beat) if known else None

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._progress(text)

    def _waiting(self) -> JobsWaiting:
        jobs = len(self._folder.waiting()) + len(self._folder.claimed())
        return JobsWaiting(
            f"{_count(jobs)} in {self._folder.root}",
            remedy=f"run `kernelskill worker {self._folder.root}` on a machine with a GPU, then resume",
        )

    def _nobody(self) -> DeviceUnavailable:
        return DeviceUnavailable(
            f"no worker gave a sign of life in {self._folder.root} for {self._rules.patience_s:g} s",
            remedy=f"start one with `kernelskill worker {self._folder.root}`; the jobs stay there",
        )

    def _failed(self, answer: Answer) -> HarnessError:
        self._folder.forget(answer.key)
        worker = f"worker {answer.worker}" if answer.worker else "the worker"
        return HarnessError(f"{worker}: {answer.error or 'it gave no answer'}", remedy=answer.remedy)


def _count(jobs: int) -> str:
    return "1 job waits" if jobs == 1 else f"{jobs} jobs wait"
