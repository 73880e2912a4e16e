"""A second look at a suspicious candidate: new seeds in a fresh process, races, its own launcher by the wall clock."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.backends.base import RunOutcome
from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.capabilities import DirectBackend
from kernelskill.evaluation.case_run import POISONS, CheckReport
from kernelskill.evaluation.check import check_candidate
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.sanitizing import sanitize
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.evaluation import Evaluation, Status, Timing, VerdictKind
from kernelskill.schema.task import Case, Task

_SAMPLES = 10


def would_be_accepted(task: Task, evaluation: Evaluation) -> bool:
    """Whether a candidate that was timed clears every margin, noise of the clock aside."""
    return judge(task, evaluation).kind is VerdictKind.ACCEPTED


def review(
    evaluation: Evaluation,
    reasons: tuple[str, ...],
    protocol: CheckProtocol,
    new_seeds: CheckProtocol,
    workshop: Workshop,
    build: Build,
    original: Build | BuildFailure,
    *,
    sanitized: bool,
) -> Evaluation:
    """Return the evaluation of a candidate that was timed, after what its times call for.

    One that would be accepted runs under the sanitizer. A suspicious one does too, and is looked at again: it
    keeps its times with a note where everything agrees, and is refused where not.

    Args:
        evaluation: Of stage `time`, passed.
        reasons: Why its times are to be doubted, if they are.
        protocol: With the seeds that it was checked with.
        new_seeds: With seeds that it has not met.
        workshop: Opens fresh workers.
        build: The candidate.
        original: What it shows under the sanitizer is excused.
        sanitized: Whether the sanitizer ran already.
    """
    report = CheckReport()
    if not sanitized:
        sanitize(workshop, protocol, build, original, report)
    if reasons and report.status is Status.PASSED:
        incumbent = {timing.case: timing for timing in evaluation.incumbent_timings}
        directly = evaluation.execution == "direct"
        second = look_again(new_seeds, workshop, build, incumbent, directly=directly)
        if second.status is not Status.PASSED:
            report.fail(Status.SUSPICIOUS, f"{reasons[0]}; looked at again: {second.detail}")
        else:
            report.note(f"suspicious, and confirmed: {'; '.join(reasons)}; {'; '.join(second.notes)}")
        report.unverified.extend(second.unverified)
    return _with_review(evaluation, report)


def _with_review(evaluation: Evaluation, report: CheckReport) -> Evaluation:
    facts: dict[str, object] = {
        "notes": (*evaluation.notes, *(note for note in report.notes if note not in evaluation.notes)),
        "unverified": (
            *evaluation.unverified,
            *(text for text in report.unverified if text not in evaluation.unverified),
        ),
    }
    if report.status is not Status.PASSED:
        facts |= {"status": report.status, "detail": report.detail, "timings": (), "incumbent_timings": ()}
        facts |= {"paired": (), "baseline_timings": ()}
    return evaluation.model_copy(update=facts)


def look_again(
    protocol: CheckProtocol,
    workshop: Workshop,
    build: Build,
    incumbent: Mapping[int, Timing],
    *,
    directly: bool,
) -> CheckReport:
    """Check a candidate once more, and where its launcher can run itself, time that too.

    Args:
        protocol: With seeds that the candidate has not met.
        workshop: Opens fresh workers.
        build: The candidate.
        incumbent: Case index to the incumbent's times.
        directly: Whether the candidate ran itself before.

    Returns:
        What was found; passed where everything agrees with the first look. Its notes say what was done.
    """
    with workshop.bench(build, directly=directly) as bench:
        report = check_candidate(protocol, bench, "search")
    if report.status is not Status.PASSED:
        return report
    report.note(f"{len(report.outcomes)} comparisons with new seeds in a fresh process")
    if not directly and isinstance(workshop.backend, DirectBackend):
        _launcher_itself(protocol, workshop, build, incumbent, report)
    return report


def _launcher_itself(
    protocol: CheckProtocol,
    workshop: Workshop,
    build: Build,
    incumbent: Mapping[int, Timing],
    report: CheckReport,
) -> None:
    """Let the launcher run itself, compare what it leaves, and time it by events and the host's clock.

    It carries costs of its own, so it need not be as fast as its replayed plan; but one that gains nothing
    over the incumbent's replayed time is not what the plan made of it.
    """
    with workshop.bench(build, directly=True) as bench:
        for case in protocol.task.timed_cases:
            failure = _run_directly(protocol, bench, case)
            if failure:
                report.fail(Status.SUSPICIOUS, f"case {case.label}: {failure}")
                return
            limit = protocol.timeout_s(case)
            answer = bench.worker.time(_SAMPLES, flush_l2=True, timeout_s=limit * _SAMPLES)
            if isinstance(answer, RunOutcome):
                report.fail(
                    Status.SUSPICIOUS,
                    f"case {case.label}: the launcher itself could not be timed: {answer.detail}",
                )
                return
            took_ms = sorted(answer.samples_ms)[len(answer.samples_ms) // 2]
            before = incumbent.get(case.index)
            if before is not None and took_ms >= before.median_ms:
                report.fail(
                    Status.SUSPICIOUS,
                    f"case {case.label}: the launcher itself takes {took_ms:.4g} ms, no less than the incumbent's "
                    f"{before.median_ms:.4g} ms",
                )
                return
            report.note(f"case {case.label}: {took_ms:.4g} ms where the launcher ran itself")


def _run_directly(protocol: CheckProtocol, bench: Bench, case: Case) -> str:
    """Return how a launcher's own run differs from the reference; empty if it does not."""
    trial = protocol.trial(case, 0)
    arrangement = calls.plain(trial.extents, trial.bundle.scalars)
    refused = bench.start(
        arrangement, trial.bundle.contents(), poison=POISONS[0], guard_bytes=protocol.rules.guard_bytes
    )
    if refused is not None:
        return refused.reason
    outcome = bench.run(protocol.timeout_s(case))
    if outcome.status is not Status.PASSED:
        return f"where the launcher ran itself: {outcome.detail or outcome.status}"
    outputs = {name: bench.read(arrangement, name, "direct").path for name in protocol.task.outputs}
    finding = protocol.compare(trial, outputs)
    return "" if finding.status is Status.PASSED else f"where the launcher ran itself: {finding.detail}"
