"""Forecasts: the time that the emulated device gives a candidate, so that the GPU looks at the promising ones only.

A forecast orders what is tried. It is never a figure of a run: nothing is accepted, refused or reported for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from kernelskill.backends.base import Unrecordable
from kernelskill.backends.emulated import EmulatedBackend
from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.evaluation.calls import plain
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.trials import Trial, TrialSource
from kernelskill.evaluation.workshop import Workshop, builders
from kernelskill.schema.base import Record, canonical_json, sha256_text
from kernelskill.schema.build import BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Gpu
from kernelskill.schema.task import Task

TRACE_S = 20.0
"""Longest trace of one candidate; who takes longer has no forecast."""
MOST_TRACES = 16
MEMORY_SHARE = 0.25
"""Of the free memory, for the arrays of all traces that run at once."""


Wanted = Callable[[], bool]
"""Whether forecasts are still wanted: asked, from several threads, before each is begun."""


def always() -> bool:
    """Return True: whoever asks waits for every forecast."""
    return True


class Forecast(Record):
    """What is expected of one candidate on the first timed case."""

    candidate: str
    seconds: float | None
    reason: str = ""
    """Why there is none."""
    spilled_bytes: int = 0
    """Written to and read from local memory by a thread, over all kernels: their cost is no part of the time."""


@runtime_checkable
class Forecasting(Protocol):
    """What an evaluator offers that can tell times before the device looks."""

    def forecasts(self, candidates: Sequence[Candidate], wanted: Wanted = always) -> dict[str, Forecast]:
        """Return the forecasts of candidates by their digests; without a time where they are no longer wanted."""


class Forecaster:
    """Traces candidates of one task on the emulated form of a GPU, several at once.

    Args:
        task: The task.
        gpu: The GPU that is measured on.
        trials: Where values come from.
        store: Where finished forecasts are kept.
        scratch: Folder for what workers write.
    """

    def __init__(
        self, task: Task, gpu: Gpu, trials: TrialSource, store: EvaluationStore, scratch: Path
    ) -> None:
        self._task = task
        self._trials = trials
        self._store = store
        self._gpu = gpu
        self._scratch = scratch

    def forecasts(
        self, candidates: Sequence[Candidate], pool: SeedPool, wanted: Wanted = always
    ) -> dict[str, Forecast]:
        """Return the forecasts of candidates by their digests, finished ones without work.

        One that is no longer wanted when its turn comes is not made and not kept.

        Raises:
            TaskError: test.py could not make the values.
        """
        found: dict[str, Forecast] = {}
        missing: list[Candidate] = []
        for candidate in candidates:
            known = self._store.read("forecasts", self._key(candidate, pool), Forecast)
            if known is None:
                missing.append(candidate)
            else:
                found[candidate.digest] = known
        if missing:
            trial = self._trials.trial(self._task.timed_cases[0], 0, pool)
            with builders(reserve=True, most=most_at_once(trial.total_bytes)) as threads:
                answers = list(
                    threads.map(
                        lambda candidate: self._forecast(candidate, trial) if wanted() else None, missing
                    )
                )
            for candidate, answer in zip(missing, answers, strict=True):
                if answer is not None:
                    self._store.write("forecasts", self._key(candidate, pool), answer)
                found[candidate.digest] = answer or Forecast(
                    candidate=candidate.digest, seconds=None, reason="it was no longer wanted"
                )
        return found

    def close(self) -> None:
        """Release processes and files, if there are any."""
        if "_workshop" in self.__dict__:
            self._workshop.close()

    @cached_property
    def _backend(self) -> EmulatedBackend:
        return EmulatedBackend(self._gpu, threads=1, profile_s=TRACE_S)

    @cached_property
    def _workshop(self) -> Workshop:
        return Workshop(self._backend, self._task, self._scratch)

    def _key(self, candidate: Candidate, pool: SeedPool) -> str:
        parts = ["forecast", self._task.content_digest(), candidate.digest, self._backend.name, pool.digest]
        return sha256_text(canonical_json(parts))

    def _forecast(self, candidate: Candidate, trial: Trial) -> Forecast:
        try:
            return self._traced(candidate, trial)
        except (HarnessError, WorkerDied) as error:
            return Forecast(candidate=candidate.digest, seconds=None, reason=error.message)

    def _traced(self, candidate: Candidate, trial: Trial) -> Forecast:
        build = self._workshop.build(candidate)
        if isinstance(build, BuildFailure):
            return Forecast(candidate=candidate.digest, seconds=None, reason="it does not build")
        plan = self._workshop.plans(build).plan(plain(trial.extents, trial.bundle.scalars).call)
        if isinstance(plan, Unrecordable):
            return Forecast(candidate=candidate.digest, seconds=None, reason=plan.reason)
        run = self._backend.profile(build, plan, trial.bundle.contents(), depth="quick")
        if run.duration_ms is None:
            return Forecast(candidate=candidate.digest, seconds=None, reason=run.unavailable)
        spilled = sum(kernel.spill_store_bytes + kernel.spill_load_bytes for kernel in build.kernels)
        return Forecast(candidate=candidate.digest, seconds=run.duration_ms / 1e3, spilled_bytes=spilled)


def most_at_once(trial_bytes: int) -> int:
    """Return how many traces may hold their arrays at once.

    Args:
        trial_bytes: Bytes of all arrays of one.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(MOST_TRACES, int(MEMORY_SHARE * free / max(1, trial_bytes))))
