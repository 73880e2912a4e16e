"""Run a right candidate under the sanitizer, where the device has one; what the original shows is excused."""

from __future__ import annotations

from math import inf, log

from kernelskill.backends.base import Unrecordable
from kernelskill.evaluation.capabilities import SanitizerReport, SanitizingBackend
from kernelskill.evaluation.case_run import CheckReport
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.evaluation import Evaluation, Status
from kernelskill.schema.task import Case, Task


def sanitize(
    workshop: Workshop,
    protocol: CheckProtocol,
    candidate: Build,
    original: Build | BuildFailure,
    report: CheckReport,
) -> None:
    """Look for memory errors and races on a small awkward case; the result goes into `report`.

    Args:
        workshop: Of the backend; one without sanitizer changes nothing but says so.
        protocol: The task and its values.
        candidate: What is looked at.
        original: Looked at too, when the candidate shows something.
        report: Of the candidate's check.
    """
    case = protocol.cases("cheap")[-1]
    found = _findings(workshop, protocol, candidate, case)
    if found is None or found.unavailable:
        reason = found.unavailable if found is not None else "this device has none"
        report.unverified.append(f"no sanitizer ran: {reason}")
    if found is None or not found.findings:
        return
    excused: set[str] = set()
    if isinstance(original, Build) and original.key != candidate.key:
        theirs = _findings(workshop, protocol, original, case)
        excused = (
            {finding.tool for finding in theirs.findings if finding.severity == "error"}
            if theirs is not None
            else set()
        )
    for finding in found.findings:
        place = f" at line {finding.line}" if finding.line else ""
        text = f"{finding.tool}: {finding.message}{place}"
        if finding.severity == "warning":
            report.note(f"{text} (advisory)")
        elif finding.tool in excused:
            report.note(f"{text}; the original shows {finding.tool} errors too")
        else:
            report.fail(Status.SANITIZER_ERROR, f"case {case.label}: {text}")


class SanitizedTimes:
    """The fastest candidate that the sanitizer has seen, for each pool of seeds.

    A slower one cannot become the result, and the result is looked at again with fresh seeds, so the
    sanitizer's seconds are kept for those that may.
    """

    def __init__(self) -> None:
        self._best: dict[str, float] = {}

    def add(self, task: Task, pool: SeedPool, evaluation: Evaluation) -> None:
        """Remember a candidate that came through."""
        score = _score(task, evaluation)
        if evaluation.passed and score is not None:
            self._best[pool.digest] = min(score, self._best.get(pool.digest, score))

    def has_faster(self, task: Task, pool: SeedPool, evaluation: Evaluation) -> bool:
        """Return whether one that came through is at least as fast."""
        score = _score(task, evaluation)
        return score is not None and score >= self._best.get(pool.digest, inf)


def _score(task: Task, evaluation: Evaluation) -> float | None:
    """Return the weighted mean of ln(ms) over the timed cases; None where one has no time."""
    times = [(case.weight, evaluation.timing(case.index)) for case in task.timed_cases]
    if any(timing is None for _, timing in times):
        return None
    return sum(weight * log(timing.median_ms) for weight, timing in times if timing is not None)


def _findings(
    workshop: Workshop, protocol: CheckProtocol, build: Build, case: Case
) -> SanitizerReport | None:
    backend = workshop.backend
    plan = workshop.plans(build).plan(protocol.plain_call(case))
    if not isinstance(backend, SanitizingBackend) or isinstance(plan, Unrecordable):
        return None
    return backend.sanitize(build, plan, protocol.trial(case, 0).bundle.contents())
