"""The timing stage: a right candidate against its incumbent, in two workers on the same values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from kernelskill.backends.base import RunOutcome, Unrecordable
from kernelskill.errors import HarnessError
from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.capabilities import clocks_of
from kernelskill.evaluation.case_run import POISONS
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.timed_values import TimedValues
from kernelskill.evaluation.timing import (
    SoleTiming,
    TimingFailure,
    TimingRules,
    estimate_pair,
    time_in_turns,
    time_once,
)
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import PairedTiming, Status, Timing
from kernelskill.schema.task import Case


@dataclass
class TimeReport:
    """What timing found out."""

    status: Status = Status.PASSED
    detail: str = ""
    timings: list[Timing] = field(default_factory=list)
    incumbent_timings: list[Timing] = field(default_factory=list)
    paired: list[PairedTiming] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, texts: Sequence[str]) -> None:
        """Add notes, each once."""
        self.notes.extend(text for text in texts if text not in self.notes)

    def fail(self, status: Status, detail: str) -> TimeReport:
        """Return the report of a candidate that has no times after all."""
        return TimeReport(status=status, detail=detail, notes=self.notes)


class TimeStage:
    """Times candidates of one task.

    Args:
        protocol: The task, its values and its deadlines.
        workshop: Opens the workers.
        evidence: Whether times are measured or estimated.
        rules: How many pairs.
    """

    def __init__(
        self, protocol: CheckProtocol, workshop: Workshop, *, evidence: Evidence, rules: TimingRules
    ) -> None:
        self._protocol = protocol
        self._workshop = workshop
        self._evidence = evidence
        self._rules = rules
        self._estimates: dict[tuple[str, int], SoleTiming] = {}

    def make_values(self) -> None:
        """Make the values that timing needs: that is work of the host alone."""
        for case in self._protocol.task.timed_cases:
            self._protocol.timed_trials(case, self._rules.rotations if self._evidence == "measured" else 1)

    def time(self, candidate: Build, incumbent: Build | None, *, reuse: bool = False) -> TimeReport:
        """Time a candidate on every timed case, against an incumbent where there is one.

        Args:
            candidate: A right one.
            incumbent: What it is compared with.
            reuse: Whether workers will do that held the same programs before.

        Raises:
            HarnessError: The incumbent failed.
        """
        report = TimeReport()
        directly = self._directly(candidate, incumbent)
        # The original against itself shows the noise: there all pairs are wanted.
        alike = incumbent is not None and incumbent.key == candidate.key
        rules = self._rules.model_copy(update={"hopeless_pairs": 0}) if alike else self._rules
        reuse = reuse and self._protocol.keeps_workers
        with ExitStack() as stack:
            mine = stack.enter_context(self._workshop.bench(candidate, directly=directly, reuse=reuse))
            theirs = None
            if incumbent is not None and self._evidence == "measured":
                theirs = stack.enter_context(
                    self._workshop.bench(incumbent, directly=directly, reuse=reuse and not alike)
                )
            for case in self._protocol.task.timed_cases:
                if self._known_estimate(case, candidate, incumbent, report):
                    continue
                refused = self._prepare(mine, case)
                if refused is not None:
                    return report.fail(refused.status, f"case {case.label}: {refused.reason}")
                sides = (mine,) if theirs is None else (theirs, mine)
                rotations = self._rules.rotations if theirs is not None else 1
                values = TimedValues(
                    self._protocol,
                    case,
                    sides,
                    rotations=rotations,
                    looks=rules.looks,
                    clocks=lambda: clocks_of(self._workshop.backend),
                )
                outcome = (
                    self._in_turns(case, sides, report, rules, values)
                    if theirs
                    else self._alone(case, candidate, mine, report)
                )
                if outcome is not None:
                    return report.fail(outcome.status, f"case {case.label}, while timed: {outcome.detail}")
                if theirs is None and incumbent is not None:
                    self._compare_estimates(case, incumbent, report)
                # An estimate runs only a part of the grid.
                wrong = "" if self._evidence == "estimated" else values.what_is_wrong()
                if wrong:
                    return report.fail(Status.NONDETERMINISTIC, wrong)
            if theirs is not None:
                theirs.wants_to_be_kept = True
        return report

    def _directly(self, candidate: Build, incumbent: Build | None) -> bool:
        """Whether both sides must run themselves, because one cannot be recorded: times must mean the same."""
        calls_of_all = self._protocol.plain_calls()
        sides = [candidate] if incumbent is None else [candidate, incumbent]
        return any(self._workshop.must_run_directly(side, calls_of_all) is not None for side in sides)

    def _in_turns(
        self,
        case: Case,
        sides: tuple[Bench, ...],
        report: TimeReport,
        rules: TimingRules,
        values: TimedValues,
    ) -> RunOutcome | None:
        """Time both sides on one case; returns how the candidate failed, if it did."""
        theirs, mine = sides
        refused = self._prepare(theirs, case)
        if refused is not None:
            raise HarnessError(f"the incumbent gives no plan for case {case.label}: {refused.reason}")
        found = time_in_turns(case.index, theirs.worker, mine.worker, rules, self._protocol.clock, values)
        if isinstance(found, TimingFailure):
            return found.outcome
        report.timings.append(found.candidate)
        report.incumbent_timings.append(found.incumbent)
        report.paired.append(found.paired)
        report.note((*found.notes, *values.clock_notes()))
        if found.dropped:
            report.note((f"case {case.label}: {found.dropped} after {len(found.paired.ratios)} pairs",))
        return None

    def _alone(self, case: Case, build: Build, bench: Bench, report: TimeReport) -> RunOutcome | None:
        """Take the one sample of an estimate, or of a device on which nothing is compared."""
        measured = self._evidence == "measured"
        limit = self._rules.timeout_s if measured else self._rules.estimate_timeout_s
        found = time_once(case.index, bench.worker, timeout_s=limit)
        if isinstance(found, TimingFailure):
            return found.outcome
        report.timings.append(found.timing)
        report.note(found.notes)
        if self._evidence == "estimated":
            self._estimates[build.key, case.index] = found
        return None

    def _known_estimate(
        self, case: Case, candidate: Build, incumbent: Build | None, report: TimeReport
    ) -> bool:
        """Report an estimate that was made before, if there is one: the same plan always gets the same."""
        known = self._estimates.get((candidate.key, case.index))
        if known is None:
            return False
        report.timings.append(known.timing)
        report.note(known.notes)
        if incumbent is not None:
            self._compare_estimates(case, incumbent, report)
        return True

    def _compare_estimates(self, case: Case, incumbent: Build, report: TimeReport) -> None:
        timing = report.timings[-1]
        other = self._incumbent_estimate(case, incumbent)
        report.incumbent_timings.append(other)
        report.paired.append(estimate_pair(timing, other))

    def _incumbent_estimate(self, case: Case, incumbent: Build) -> Timing:
        """Return the incumbent's estimate, made once: the same plan always gets the same one."""
        known = self._estimates.get((incumbent.key, case.index))
        if known is not None:
            return known.timing
        alone = TimeReport()
        with self._workshop.bench(incumbent) as bench:
            refused = self._prepare(bench, case)
            outcome = None if refused is not None else self._alone(case, incumbent, bench, alone)
        if not alone.timings:
            reason = refused.reason if refused is not None else outcome.detail if outcome is not None else ""
            raise HarnessError(f"the incumbent has no estimate for case {case.label}: {reason}")
        return alone.timings[0]

    def _prepare(self, bench: Bench, case: Case) -> Unrecordable | None:
        """Load and fill one side; returns why there is no plan, if there is none."""
        trial = self._protocol.trial(case, 0)
        return bench.start(
            calls.plain(trial.extents, trial.bundle.scalars),
            trial.bundle.contents(),
            poison=POISONS[1],
            guard_bytes=self._protocol.rules.guard_bytes,
        )
