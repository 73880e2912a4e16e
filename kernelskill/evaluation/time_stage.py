"""The timing stage: a right candidate against its incumbent, in two workers on the same values."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from kernelskill.backends.base import Unrecordable
from kernelskill.errors import HarnessError
from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.calls import Arrangement
from kernelskill.evaluation.check import POISONS, CheckProtocol
from kernelskill.evaluation.timing import (
    CaseTiming,
    TimingFailure,
    TimingRules,
    estimate_pair,
    time_in_turns,
    time_once,
)
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build
from kernelskill.schema.device import Evidence, Gpu
from kernelskill.schema.evaluation import PairedTiming, Status, Timing
from kernelskill.schema.task import Case

ROOF_SLACK = 1.05
"""A time this far below what the hardware allows means that work was left out."""


@dataclass
class TimeReport:
    """What timing found out."""

    status: Status = Status.PASSED
    detail: str = ""
    timings: list[Timing] = field(default_factory=list)
    incumbent_timings: list[Timing] = field(default_factory=list)
    paired: list[PairedTiming] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fail(self, status: Status, detail: str) -> TimeReport:
        """Return the report of a candidate that has no times after all."""
        return TimeReport(status=status, detail=detail, notes=self.notes)


class TimeStage:
    """Times candidates of one task.

    Args:
        protocol: The task, its values and its deadlines.
        workshop: Opens the workers.
        gpu: Ceilings for the check against impossible times.
        evidence: Whether times are measured or estimated.
        rules: How many pairs.
    """

    def __init__(
        self, protocol: CheckProtocol, workshop: Workshop, *, gpu: Gpu, evidence: Evidence, rules: TimingRules
    ) -> None:
        self._protocol = protocol
        self._workshop = workshop
        self._gpu = gpu
        self._evidence = evidence
        self._rules = rules
        self._estimates: dict[tuple[str, int], Timing] = {}

    def time(self, candidate: Build, incumbent: Build | None) -> TimeReport:
        """Time a candidate on every timed case, against an incumbent where there is one.

        Raises:
            HarnessError: The incumbent failed.
        """
        report = TimeReport()
        with ExitStack() as stack:
            mine = stack.enter_context(self._workshop.bench(candidate))
            alone = incumbent is None or self._evidence == "estimated"
            theirs = (
                None if alone or incumbent is None else stack.enter_context(self._workshop.bench(incumbent))
            )
            for case in self._protocol.task.timed_cases:
                arrangement = self._prepare(mine, case, report)
                if arrangement is None:
                    return report
                failed = self._one(case, mine, theirs, candidate, incumbent, report)
                if failed is not None:
                    return report.fail(*failed)
                wrong = self._still_right(case, mine, arrangement)
                if wrong:
                    return report.fail(Status.NONDETERMINISTIC, wrong)
        impossible = self._impossible(report)
        return report.fail(Status.SUSPICIOUS, impossible) if impossible else report

    def _one(
        self,
        case: Case,
        mine: Bench,
        theirs: Bench | None,
        candidate: Build,
        incumbent: Build | None,
        report: TimeReport,
    ) -> tuple[Status, str] | None:
        """Time one case; returns a status and its detail where the candidate failed."""
        if theirs is not None:
            if self._prepare(theirs, case, TimeReport()) is None:
                raise HarnessError(f"the incumbent gives no plan for case {case.label}")
            found = time_in_turns(case.index, theirs.worker, mine.worker, self._rules, self._protocol.clock)
            if isinstance(found, TimingFailure):
                return found.outcome.status, f"case {case.label}, while timed: {found.outcome.detail}"
            self._add(case, found, report)
            return None
        timing = self._alone(case, mine)
        if isinstance(timing, TimingFailure):
            return timing.outcome.status, f"case {case.label}, while timed: {timing.outcome.detail}"
        report.timings.append(timing)
        self._estimates[candidate.key, case.index] = timing
        if incumbent is not None:
            other = self._incumbent_estimate(case, incumbent)
            report.incumbent_timings.append(other)
            report.paired.append(estimate_pair(timing, other))
        return None

    def _alone(self, case: Case, bench: Bench) -> Timing | TimingFailure:
        """Time one side by itself: an estimate, or the first look at the original."""
        return time_once(case.index, bench.worker, timeout_s=self._rules.timeout_s)

    def _incumbent_estimate(self, case: Case, incumbent: Build) -> Timing:
        """Return the incumbent's estimate, made once: the same plan always gets the same one."""
        known = self._estimates.get((incumbent.key, case.index))
        if known is not None:
            return known
        with self._workshop.bench(incumbent) as bench:
            if self._prepare(bench, case, TimeReport()) is None:
                raise HarnessError(f"the incumbent gives no plan for case {case.label}")
            timing = self._alone(case, bench)
        if isinstance(timing, TimingFailure):
            raise HarnessError(f"the incumbent failed while it was timed: {timing.outcome.detail}")
        self._estimates[incumbent.key, case.index] = timing
        return timing

    def _add(self, case: Case, found: CaseTiming, report: TimeReport) -> None:
        report.timings.append(found.candidate)
        report.incumbent_timings.append(found.incumbent)
        report.paired.append(found.paired)
        if found.dropped:
            report.notes.append(f"case {case.label}: a clear loss after {len(found.paired.ratios)} pairs")

    def _prepare(self, bench: Bench, case: Case, report: TimeReport) -> Arrangement | None:
        """Load and fill one side; where it gives no plan the report says why."""
        trial = self._protocol.trial(case, 0)
        arrangement = calls.plain(trial.extents, trial.bundle.scalars)
        refused = bench.start(
            arrangement,
            trial.bundle.contents(),
            poison=POISONS[1],
            guard_bytes=self._protocol.rules.guard_bytes,
        )
        if isinstance(refused, Unrecordable):
            report.status, report.detail = refused.status, f"case {case.label}: {refused.reason}"
            return None
        return arrangement

    def _still_right(self, case: Case, bench: Bench, arrangement: Arrangement) -> str:
        """Compare the outputs that the last timed run left; an estimate runs only a part of the grid."""
        if self._evidence == "estimated":
            return ""
        trial = self._protocol.trial(case, 0)
        outputs = {name: bench.read(arrangement, name, "timed").path for name in self._protocol.task.outputs}
        finding = self._protocol.compare(trial, outputs)
        if finding.status is Status.PASSED:
            return ""
        return f"case {case.label}, right before and wrong after timing: {finding.detail}"

    def _impossible(self, report: TimeReport) -> str:
        """Name the first time that beats the hardware by the user's own count of the least work."""
        if self._evidence != "measured":
            return ""
        for timing in report.timings:
            case = next(c for c in self._protocol.task.timed_cases if c.index == timing.case)
            floor_ms = floor_of(case, self._gpu)
            if floor_ms is not None and timing.median_ms * ROOF_SLACK < floor_ms:
                return (
                    f"case {case.label} took {timing.median_ms:.4g} ms, but its least work "
                    f"by cost() needs {floor_ms:.4g} ms on {self._gpu.name}"
                )
        return ""


def floor_of(case: Case, gpu: Gpu) -> float | None:
    """Return the least time of a case in milliseconds by the user's `cost`, None where it says nothing.

    Bytes that fit the L2 cache give no floor: what one kernel of a plan wrote, the next may find there.
    """
    if case.cost is None:
        return None
    seconds = []
    if case.cost.bytes is not None and case.cost.bytes > 2 * gpu.l2_bytes:
        seconds.append(case.cost.bytes / gpu.dram_bytes_per_s)
    if case.cost.flops is not None:
        fastest = max(gpu.fp32_flops_per_s, gpu.fp64_flops_per_s, gpu.tensor_fp16_flops_per_s)
        seconds.append(case.cost.flops / fastest)
    return 1e3 * max(seconds) if seconds else None
