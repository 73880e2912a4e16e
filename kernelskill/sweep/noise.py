"""How the decision fares where the truth is known: the same kernel twice, and a counted true gain.

Each decision is made as a run makes it: two fresh workers, paired turns, one judgement. Compilers run beside it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from kernelskill.backends.base import Backend
from kernelskill.errors import HarnessError, UsageError
from kernelskill.evaluation.capabilities import exclusive
from kernelskill.evaluation.check import check_candidate
from kernelskill.evaluation.demands import Demands
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.protocol import CheckProtocol, CheckRules
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.time_stage import TimeReport, TimeStage
from kernelskill.evaluation.timing import TimingRules, half_width
from kernelskill.evaluation.trials import TrialSource
from kernelskill.evaluation.workshop import Workshop, builders
from kernelskill.events import Clock
from kernelskill.schema.base import Record
from kernelskill.schema.build import Build
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Evaluation, VerdictKind
from kernelskill.sweep.rates import Rate, rate
from kernelskill.tasks.load import LoadedTask
from kernelskill.tasks.process import TestProcess

Kind = Literal["same", "gain"]
EXTRA = "constexpr int EXTRA = {};"
ROUNDS = 1000
"""What the kernel's own rounds are; its extra ones are a share of them."""


class Decision(Record):
    """One judgement and what it rested on."""

    kind: Kind
    """`same`: a kernel against itself; `gain`: against one with extra work."""
    verdict: VerdictKind
    ratio: float
    low: float
    high: float
    pairs: int
    candidate_ms: float
    seconds: float
    builds: int
    """Compilations that ended meanwhile."""
    sm_clock_mhz: float | None = None


def tally(decisions: list[Decision], kind: Kind) -> Rate:
    """Return how many decisions of a kind accepted the candidate."""
    mine = [decision for decision in decisions if decision.kind == kind]
    return rate(sum(decision.verdict is VerdictKind.ACCEPTED for decision in mine), len(mine))


class BuildLoad:
    """Compiles one new candidate after another, on as many threads as a run does, until it is closed."""

    def __init__(self, compile_new: Callable[[int], object], *, reserve: bool) -> None:
        self.done = 0
        self._compile = compile_new
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._pool = builders(reserve=reserve)
        self._loops = [self._pool.submit(self._go_on) for _ in range(self._pool._max_workers)]

    def require_going(self) -> None:
        """Raise what ended a compilation: decisions without load beside them are none of ours."""
        for loop in self._loops:
            if loop.done():
                loop.result()

    def close(self) -> None:
        """Stop after the compilations under way; raises what ended one earlier."""
        self._stop.set()
        self._pool.shutdown(wait=True)
        for loop in self._loops:
            loop.result()

    def _go_on(self) -> None:
        while not self._stop.is_set():
            self._compile(next(self._numbers))
            self.done += 1


class NoiseBench:
    """Makes decisions about a kernel whose extra work is counted.

    Args:
        backend: The device.
        loaded: The task; its kernel has `EXTRA` rounds beside a thousand.
        folder: For values and workers.
        seeds: Secret ones.
        clock: Measures.
        gain: The true gain, as a fraction.
    """

    def __init__(
        self,
        backend: Backend,
        loaded: LoadedTask,
        folder: Path,
        *,
        seeds: SeedFile,
        clock: Clock,
        gain: float,
    ) -> None:
        self.backend = backend
        self._loaded = loaded
        self._clock = clock
        self._values = TestProcess.start(loaded.tests)
        self._workshop = Workshop(backend, loaded.task, folder / "workers")
        self._protocol = CheckProtocol(
            loaded.task,
            TrialSource(loaded.task, self._values, folder / "values"),
            seeds.pool(),
            evidence=backend.evidence,
            demands=Demands(),
            rules=CheckRules(),
            clock=clock,
        )
        self._stage = TimeStage(
            self._protocol, self._workshop, evidence=backend.evidence, rules=TimingRules()
        )
        self._noise: dict[int, float] = {}
        self._load: BuildLoad | None = None
        self._base = self._with_extra(0)
        self._slow = self._with_extra(round(ROUNDS * gain))

    def prepare(self) -> None:
        """Check all sides, time the kernel against itself for the margin, and start the compilations.

        Raises:
            HarnessError: A side does not build or gives wrong values.
        """
        for candidate in (self._base, self._twin(), self._slow):
            with exclusive(self.backend), self._workshop.bench(self._build(candidate)) as bench:
                report = check_candidate(self._protocol, bench, "cheap")
            if report.detail:
                raise HarnessError(f"the kernel of the benchmark fails its own check: {report.detail}")
        found = self._timed(self._build(self._base), self._build(self._base))
        self._noise = {paired.case: half_width(paired) for paired in found.paired}
        self._load = BuildLoad(self._compile_new, reserve=self.backend.evidence == "measured")

    def decide(self, kind: Kind) -> Decision:
        """Time and judge once.

        Raises:
            HarnessError: A side failed while it was timed.
        """
        if self._load is None:
            raise HarnessError("a decision was asked for before the sides were prepared")
        self._load.require_going()
        started, builds = self._clock.seconds(), self._load.done
        incumbent = self._slow if kind == "gain" else self._base
        report = self._timed(self._build(self._twin()), self._build(incumbent))
        conditions = self.backend.conditions()
        evaluation = Evaluation(
            key="noise",
            candidate=self._twin().digest,
            stage="time",
            status=report.status,
            detail=report.detail,
            timings=tuple(report.timings),
            incumbent_timings=tuple(report.incumbent_timings),
            paired=tuple(report.paired),
            conditions=conditions,
        )
        if not evaluation.passed:
            raise HarnessError(f"a side failed while it was timed: {report.detail}")
        verdict = judge(self._loaded.task, evaluation, noise=self._noise)
        paired = report.paired[0]
        return Decision(
            kind=kind,
            verdict=verdict.kind,
            ratio=paired.median,
            low=paired.low,
            high=paired.high,
            pairs=len(paired.ratios),
            candidate_ms=report.timings[0].median_ms,
            seconds=self._clock.seconds() - started,
            builds=self._load.done - builds,
            sm_clock_mhz=conditions.sm_clock_mhz,
        )

    def conditions(self) -> Conditions:
        """Return what the decisions depend on."""
        return self.backend.conditions()

    def close(self) -> None:
        """End the compilations and release processes."""
        try:
            if self._load is not None:
                self._load.close()
        finally:
            self._workshop.close()
            self._values.close()

    def _timed(self, candidate: Build, incumbent: Build) -> TimeReport:
        with exclusive(self.backend):
            return self._stage.time(candidate, incumbent)

    def _with_extra(self, rounds: int) -> Candidate:
        original = self._loaded.original
        text = original.source.replace(EXTRA.format(30), EXTRA.format(rounds))
        if rounds != 30 and text == original.source:
            raise UsageError(
                "the kernel of the benchmark has no extra work", remedy="use the one that came with it"
            )
        return original.with_text(original.main, text)

    def _twin(self) -> Candidate:
        """Return the same kernel as another candidate, so that it gets a program of its own."""
        return self._base.with_text(self._base.main, self._base.source + "// the same again\n")

    def _compile_new(self, number: int) -> Build:
        text = f"{self._base.source}// {id(self)} {number}\n"
        return self._build(self._base.with_text(self._base.main, text))

    def _build(self, candidate: Candidate) -> Build:
        build = self._workshop.build(candidate)
        if not isinstance(build, Build):
            raise HarnessError(f"the kernel of the benchmark does not compile: {build.log[:200]}")
        return build
