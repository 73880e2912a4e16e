"""Times that are too good to be taken on trust. A suspicion is a reason to look again, never a verdict."""

from __future__ import annotations

from kernelskill.schema.device import Gpu
from kernelskill.schema.evaluation import CaseShape, Evaluation, Timing
from kernelskill.schema.task import Case, Task

GREAT_GAIN = 10.0
"""A step that gains more is looked at again."""
EVENT_RESOLUTION_MS = 0.0005
"""CUDA's documentation gives the clock of events a resolution of about half a microsecond."""


def suspicions(task: Task, evaluation: Evaluation, gpu: Gpu) -> tuple[str, ...]:
    """Return why the times of a right candidate are to be doubted, a sentence each; usually none.

    The floor is what the arrays of a case need at the theoretical bandwidth, less what the L2 cache can hold;
    the user's own count of work never makes one. Where the incumbent is below the floor too, not every
    byte has to be moved, and there is none.

    Args:
        task: Names the timed cases.
        evaluation: Of stage `time`.
        gpu: Its theoretical bandwidth and its L2 cache.
    """
    found: list[str] = []
    for case in task.timed_cases:
        mine = evaluation.timing(case.index)
        theirs = _timing(evaluation.incumbent_timings, case)
        shape = next((shape for shape in evaluation.shapes if shape.case == case.index), None)
        if mine is None:
            continue
        floor_ms = floor_of(shape, gpu) if shape is not None else 0.0
        if mine.median_ms < floor_ms and (theirs is None or theirs.median_ms >= floor_ms):
            found.append(
                f"case {case.label} took {mine.median_ms:.4g} ms, but moving its arrays once takes "
                f"{floor_ms:.4g} ms on {gpu.name}"
            )
        if mine.evidence == "measured" and mine.median_ms < EVENT_RESOLUTION_MS:
            found.append(f"case {case.label} took {mine.median_ms:.4g} ms, less than an event can resolve")
        gain = theirs.median_ms / mine.median_ms if theirs is not None and mine.median_ms > 0 else 0.0
        if gain > GREAT_GAIN:
            found.append(f"case {case.label} became {gain:.4g} times as fast at once")
    return tuple(found)


def floor_of(shape: CaseShape, gpu: Gpu) -> float:
    """Return the least time of a case in milliseconds: 0 where everything may stay in the L2 cache."""
    return 1e3 * max(0, shape.least_bytes - gpu.l2_bytes) / gpu.dram_bytes_per_s


def _timing(timings: tuple[Timing, ...], case: Case) -> Timing | None:
    return next((timing for timing in timings if timing.case == case.index), None)
