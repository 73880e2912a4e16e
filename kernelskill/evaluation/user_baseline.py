"""Time the user's own `baseline()`, where test.py has one and the device is a real one."""

from __future__ import annotations

from contextlib import suppress
from statistics import median
from typing import Protocol, runtime_checkable

import numpy as np

from kernelskill.errors import TaskError
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.task import Task
from kernelskill.tasks.description import BaselineTiming


@runtime_checkable
class BaselineSource(Protocol):
    """A test process that can run `baseline()`."""

    def ready_baseline(self, case: int, seed: int) -> None:
        """Do what needs no GPU."""

    def baseline(self, case: int, seed: int) -> BaselineTiming:
        """Time it on this process's GPU."""


def ready_user_baseline(task: Task, values: object, pool: SeedPool, evidence: Evidence) -> None:
    """Do what `baseline()` of the first timed case needs, before the device is held; it will tell what fails."""
    if task.has_baseline and evidence == "measured" and isinstance(values, BaselineSource):
        with suppress(TaskError):
            values.ready_baseline(task.timed_cases[0].index, pool.seeds[0])


def time_user_baseline(
    task: Task, values: object, pool: SeedPool, evidence: Evidence
) -> tuple[tuple[Timing, ...], tuple[str, ...]]:
    """Return the times of `baseline()` on every timed case, and what to know of them or why there are none.

    Args:
        task: Says whether there is one.
        values: The process that holds test.py.
        pool: The secret seeds.
        evidence: What the device's own times are; estimates cannot be compared with a library.
    """
    if not task.has_baseline:
        return (), ()
    if evidence != "measured" or not isinstance(values, BaselineSource):
        return (), ("baseline() of the test was not timed: this device only estimates",)
    timings, notes = [], dict[str, None]()
    for case in task.timed_cases:
        try:
            found = values.baseline(case.index, pool.seeds[0])
        except TaskError as error:
            return (), (f"baseline() of the test was not timed: {error.message}",)
        if found.disagreement:
            notes[f"baseline() of the test differs from its reference: {found.disagreement}"] = None
        low, high = np.percentile(found.samples_ms, [25, 75])
        timings.append(
            Timing(
                case=case.index,
                samples_ms=found.samples_ms,
                median_ms=median(found.samples_ms),
                low_ms=float(low),
                high_ms=float(high),
                evidence="measured",
                call=found.call or found.library,
            )
        )
    return tuple(timings), tuple(notes)
