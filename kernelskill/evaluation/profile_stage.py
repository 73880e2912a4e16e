"""The profiling stage: figures of a right candidate on its first timed case."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from kernelskill.backends.base import Backend, Unrecordable
from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.evaluation.calls import plain
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.trials import TrialSource
from kernelskill.evaluation.workshop import Workshop
from kernelskill.profiling.profile import join_profile
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.build import BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.profile import Profile, ProfileDepth
from kernelskill.schema.task import Task


class ProfileStage:
    """Profiles candidates of one task.

    Args:
        task: The task.
        backend: The device.
        workshop: Has the builds and their plans.
        trials: Where values come from.
        store: Where finished profiles are kept.
        hold: Gives the device to the caller alone.
    """

    def __init__(
        self,
        task: Task,
        backend: Backend,
        workshop: Workshop,
        trials: TrialSource,
        store: EvaluationStore,
        *,
        hold: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._task = task
        self._backend = backend
        self._workshop = workshop
        self._trials = trials
        self._store = store
        self._hold = hold

    def profile(self, candidate: Candidate, pool: SeedPool, depth: ProfileDepth) -> Profile:
        """Collect the figures of a candidate; finished ones are returned without work.

        Raises:
            HarnessError: The candidate does not build or gives no plan; only right ones are profiled.
            WorkerDied: The device's process did, twice.
        """
        parts = [self._task.content_digest(), candidate.digest, self._backend.name, pool.digest, depth]
        key = sha256_text(canonical_json(["profile", *parts]))
        found = self._store.get_profile(key)
        if found is None:
            try:
                found = self._collect(candidate, pool, depth)
            except WorkerDied:
                found = self._collect(candidate, pool, depth)
            self._store.put_profile(key, found)
        return found

    def _collect(self, candidate: Candidate, pool: SeedPool, depth: ProfileDepth) -> Profile:
        case = self._task.timed_cases[0]
        build = self._workshop.build(candidate)
        if isinstance(build, BuildFailure):
            raise HarnessError(f"candidate {candidate.digest[:12]} does not build and has no profile")
        trial = self._trials.trial(case, 0, pool)
        plan = self._workshop.plans(build).plan(plain(trial.extents, trial.bundle.scalars).call)
        if isinstance(plan, Unrecordable):
            raise HarnessError(f"candidate {candidate.digest[:12]} has no launch plan: {plan.reason}")
        with self._hold():
            run = self._backend.profile(build, plan, trial.bundle.contents(), depth=depth)
        return join_profile(
            run,
            build,
            plan,
            candidate=candidate.digest,
            case=case.index,
            gpu=self._backend.gpu,
            conditions=self._backend.conditions(),
        )
