"""Workbench: what the parts of a session share."""

from __future__ import annotations

from kernelskill.errors import UsageError
from kernelskill.graph.context import MEMBERS, PROPOSALS, RoundContext
from kernelskill.report.view import roof_at
from kernelskill.runs import RunState, fold
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.event import BaselineMeasured, Judged, Note
from kernelskill.schema.run import Member
from kernelskill.session import rounds
from kernelskill.session.assemble import Assembly
from kernelskill.session.borders import Borders
from kernelskill.session.guard import GuardedEvaluator
from kernelskill.session.records import CaseTime


class Workbench:
    """A run's parts and the few things that every command needs.

    Args:
        assembly: The run.
    """

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.borders: Borders = assembly.borders
        self.guard: GuardedEvaluator = assembly.guard
        self._is_ready = False
        guard = assembly.guard
        if assembly.opened is not None:
            self.context.log.emit(assembly.opened)
        for event in self.context.log.events:
            if isinstance(event, Judged) and self.context.run.has(PROPOSALS, event.proposal):
                proposal = self.context.proposal(event.proposal)
                if proposal.origin == "user":
                    guard.own(proposal.candidate)

    @property
    def context(self) -> RoundContext:
        """The tools and records of the run."""
        return self.assembly.context

    @property
    def state(self) -> RunState:
        """What the events so far lead to."""
        return fold(self.context.log.events)

    @property
    def number(self) -> int:
        """What makes the next event of its kind one of its own."""
        return len(self.context.log.events)

    @property
    def head(self) -> Member:
        """What rounds start from; needs a baseline."""
        return self.context.member(self.state.best)

    def ready(self) -> None:
        """Measure the original, unless this session has done so.

        Raises:
            TaskError: The original fails its own test.
            RunInterrupted: The user asked to stop.
        """
        if self._is_ready:
            return
        rounds.establish(self.context, self.assembly.original)
        if self.assembly.moved:
            rounds.remeasure_frontier(self.context)
        self._is_ready = True

    def measured(self) -> BaselineMeasured:
        """Return the baseline.

        Raises:
            UsageError: There is none yet.
        """
        baseline = self.state.baseline
        if baseline is None:
            raise UsageError("the original is not measured yet", remedy="measure it first: baseline")
        return baseline

    def end_round(self, why: str) -> None:
        """End a round that is under way: what was judged counts, and the next one starts anew.

        Args:
            why: For the log, in words.
        """
        opened = self.state.open_round
        if opened is None:
            return
        self.ready()
        self.context.log.emit(Note(round=opened.round, text=f"round {opened.round} ended early: {why}"))
        from kernelskill.graph.closing import close_round  # noqa: PLC0415 - loads the graph's library

        close_round(self.context, opened)

    def known(self, digest: str) -> bool:
        """Return whether a candidate was found right in this run."""
        return self.context.run.has(MEMBERS, digest)

    def case_times(self, candidate: Candidate, timings: tuple[Timing, ...]) -> tuple[CaseTime, ...]:
        """Return the timed cases of a candidate beside the original's."""
        baseline = self.measured()
        roofs = {roof.case: roof for roof in baseline.rooflines}
        first = {timing.case: timing for timing in baseline.timings}
        own = {timing.case: timing for timing in timings}
        rows = []
        for case in self.context.task.timed_cases:
            before, after = first.get(case.index), own.get(case.index)
            if before is None or after is None:
                continue
            roof = roofs.get(case.index)
            rows.append(
                CaseTime(
                    label=case.label,
                    original_ms=before.median_ms,
                    ms=after.median_ms,
                    speedup=before.median_ms / after.median_ms,
                    roof_fraction=None if roof is None else roof_at(roof, after.median_ms).fraction,
                    evidence=after.evidence,
                )
            )
        return tuple(rows)


def heaviest(cases: tuple[CaseTime, ...]) -> CaseTime | None:
    """Return the case on which the original spends the most time."""
    return max(cases, key=lambda case: case.original_ms, default=None)
