"""Establish the baseline: the original must pass its own test, and shows how much its time wavers."""

from __future__ import annotations

from pydantic import Field

from kernelskill.errors import HarnessError, TaskError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.timing import half_width
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation, Request, Status
from kernelskill.schema.task import Task

_REMEDIES = {
    Status.COMPILE_ERROR: "make it compile with nvcc and the FLAGS of the test first",
    Status.UNSUPPORTED: "take the named call out of the launcher; `kernelskill doctor` lists what is supported",
    Status.TIMEOUT: "make the cases smaller, or see whether the kernel ends at all",
    Status.OUT_OF_MEMORY: "make the cases smaller, or see with nvidia-smi who else holds memory of the GPU",
    Status.OUT_OF_BOUNDS: "keep every access of the kernel inside its buffers first",
    Status.SANITIZER_ERROR: "correct that first, for a race with __syncthreads() or __syncwarp() in between",
}
_REMEDY = "correct the kernel or the test: only a kernel that is right can be made fast"


class BaselineReport(Record):
    """The original's own evaluation, and what it says about the clock."""

    evaluation: Evaluation
    noise: dict[int, float] = Field(default_factory=dict)
    """Case index to the half-width of the original timed against itself; what `judge` takes."""
    notes: tuple[str, ...] = ()


def baseline_request(evaluator: Evaluator, task: Task, original: Candidate, seed_pool: str) -> Request:
    """Return the request that times the original against itself."""
    return Request(
        task=task.content_digest(),
        candidate=original,
        stage="time",
        incumbent=original,
        device=evaluator.identity,
        seed_pool=seed_pool,
    )


def establish_baseline(
    evaluator: Evaluator, task: Task, original: Candidate, *, seed_pool: str
) -> BaselineReport:
    """Build, check and time the original; a finished answer is used again.

    Args:
        evaluator: Of this task.
        task: What to speed up.
        original: The user's own kernel.
        seed_pool: Digest of the run's seeds.

    Raises:
        TaskError: The original does not compile, does not run or fails its own test.
        HarnessError: Our own machinery failed.
    """
    evaluation = evaluator.evaluate(baseline_request(evaluator, task, original, seed_pool))
    if evaluation.status is Status.HARNESS_ERROR:
        raise HarnessError(f"the baseline could not be established: {evaluation.detail}")
    if not evaluation.passed:
        raise TaskError(
            f"the original kernel ends with {evaluation.status}: {evaluation.detail}",
            remedy=_REMEDIES.get(evaluation.status, _REMEDY),
        )
    noise = {paired.case: half_width(paired) for paired in evaluation.paired}
    return BaselineReport(
        evaluation=evaluation, noise=noise, notes=(*evaluation.notes, *_noise_notes(task, noise))
    )


def _noise_notes(task: Task, noise: dict[int, float]) -> list[str]:
    loud = [case for case in task.timed_cases if noise.get(case.index, 0.0) > 0.02]
    return [
        f"case {case.label}: the original's own time wavers by {noise[case.index]:.1%}; "
        f"gains below {2 * noise[case.index]:.1%} end as ties"
        for case in loud
    ]
