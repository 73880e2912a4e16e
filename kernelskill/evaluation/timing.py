"""Paired timing: incumbent and candidate in two workers that take turns, so that drift hits both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import median
from typing import Protocol

import numpy as np

from kernelskill.backends.base import RunOutcome, TimingRun
from kernelskill.errors import HarnessError
from kernelskill.evaluation.capabilities import AnyWorker
from kernelskill.events import Clock
from kernelskill.schema.base import Explained
from kernelskill.schema.evaluation import PairedTiming, Timing

CONFIDENCE = 0.95


class TimingRules(Explained):
    """How many pairs are taken. The counts are decided before the first sample."""

    pairs: int = 30
    extended_pairs: int = 60
    """Taken once when the interval's half-width exceeds `extend_above`."""
    extend_above: float = 0.01
    slow_pairs: int = 8
    """For kernels over `slow_ms`."""
    slow_ms: float = 1000.0
    least_pairs: int = 8
    cheap_pairs: int = 6
    """After so many pairs a clear loser is dropped."""
    cheap_ratio: float = 0.9
    hopeless_pairs: int = 12
    """After so many pairs a candidate that can no longer be accepted is left at that; 0: never."""
    least_gain: float = 0.01
    """What an interval must clear to be accepted at all."""
    allowance_s: float = 20.0
    """Wall time that the pairs of one case may take."""
    warm_s: float = 2.0
    """Longest warm-up of one case."""
    settled: float = 0.01
    """Warm-up ends when two successive turns of both sides differ by no more."""
    short_pairs: int = 6
    """Taken by the cheap stage, which orders candidates and accepts none."""
    short_warm_s: float = 0.5
    looks: int = 3
    """Timed answers of the candidate that are compared in full, beside the last one."""
    rotations: int = 5
    """Seeds whose values take turns while pairs are taken."""
    timeout_s: float = 60.0
    """For one turn of a measured kernel."""
    estimate_timeout_s: float = 600.0
    """For one estimate, which executes a part of the grid on this machine's processor."""

    def shortened(self) -> TimingRules:
        """Return the rules of the cheap stage: few pairs, a brief warm-up, and of the answers only the last is compared."""
        few = min(self.short_pairs, self.pairs)
        return self.model_copy(
            update={
                "pairs": few,
                "extended_pairs": few,
                "slow_pairs": min(few, self.slow_pairs),
                "least_pairs": min(few, self.least_pairs),
                "hopeless_pairs": 0,
                "looks": 0,
                "rotations": 1,
                "warm_s": min(self.short_warm_s, self.warm_s),
            }
        )


@dataclass(frozen=True)
class TimingFailure:
    """The candidate failed while it was timed."""

    outcome: RunOutcome


@dataclass(frozen=True)
class CaseTiming:
    """The times of both sides on one case."""

    candidate: Timing
    incumbent: Timing
    paired: PairedTiming
    dropped: str
    """Why it was dropped early; empty where it was not."""
    notes: tuple[str, ...] = ()
    """How the device took its samples, where not the ordinary way."""


@dataclass(frozen=True)
class SoleTiming:
    """The time of one side by itself."""

    timing: Timing
    notes: tuple[str, ...] = ()


@dataclass
class _Side:
    """One side of a pair with what it has shown so far."""

    worker: AnyWorker
    samples: list[float] = field(default_factory=list)
    last: TimingRun | None = None
    repeats: int = 0
    """Runs inside one sample; 0 until both sides have agreed."""

    def turn(self, count: int, timeout_s: float) -> float | RunOutcome:
        """Take one turn and return its median in milliseconds."""
        agreed = {"repeats": self.repeats} if self.repeats > 1 else {}
        answer = self.worker.time(count, flush_l2=True, timeout_s=timeout_s, **agreed)
        if isinstance(answer, RunOutcome):
            return answer
        if not answer.samples_ms or min(answer.samples_ms) <= 0:
            raise HarnessError(f"the device answered the times {answer.samples_ms[:3]!r} ms")
        self.last = answer
        return median(answer.samples_ms)

    def keep(self) -> None:
        """Add the last turn's samples to the record."""
        if self.last is not None:
            self.samples.extend(self.last.samples_ms)

    @property
    def notes(self) -> tuple[str, ...]:
        """How the device took the last samples."""
        return self.last.notes if self.last is not None else ()

    def timing(self, case: int) -> Timing:
        """Return the record of this side."""
        if self.last is None:
            raise HarnessError("a side was never timed")
        return summarise(case, self.samples, self.last)


def summarise(case: int, samples: Sequence[float], run: TimingRun) -> Timing:
    """Return the Timing of samples in milliseconds, with the shares that `run` knows."""
    low, high = np.percentile(samples, [25, 75])
    return Timing(
        case=case,
        samples_ms=tuple(samples),
        median_ms=median(samples),
        low_ms=float(low),
        high_ms=float(high),
        evidence=run.evidence,
        launch_share=run.launch_share,
        moved_bytes=run.moved_bytes,
    )


def order_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the interval of the median by order statistics, free of any distribution.

    Under six values no interval of 95 % exists; the whole range is returned.
    """
    ordered = sorted(values)
    n = len(ordered)
    below, rank = 0.0, 0
    for k in range(n // 2):
        below += comb(n, k) / 2.0**n
        if 2 * below > 1 - confidence:
            break
        rank = k
    return ordered[rank], ordered[n - 1 - rank]


def half_width(paired: PairedTiming) -> float:
    """Return half the relative width of a pair's interval."""
    return (paired.high - paired.low) / (2 * paired.median)


def pair(case: int, ratios: Sequence[float]) -> PairedTiming:
    """Return the PairedTiming of ratios of incumbent time to candidate time."""
    low, high = order_interval(ratios)
    return PairedTiming(case=case, ratios=tuple(ratios), median=median(ratios), low=low, high=high)


def time_once(case: int, worker: AnyWorker, *, timeout_s: float) -> SoleTiming | TimingFailure:
    """Take the one sample that an estimating device has."""
    side = _Side(worker)
    answer = side.turn(1, timeout_s)
    if isinstance(answer, RunOutcome):
        return TimingFailure(answer)
    side.keep()
    return SoleTiming(side.timing(case), side.notes)


def estimate_pair(candidate: Timing, incumbent: Timing) -> PairedTiming:
    """Compare two estimates; an estimate has no interval."""
    return pair(candidate.case, [incumbent.median_ms / candidate.median_ms])


class PairWatch(Protocol):
    """Told of every pair that counts; `timed_values.TimedValues` is one."""

    def plan(self, pairs: int) -> None:
        """Hear how many pairs are taken, and again where they become more."""

    def before_pair(self, pair: int) -> None:
        """Prepare both sides for a pair."""

    def after_candidate(self, pair: int) -> None:
        """Look at the candidate right after its turn."""


class Unwatched:
    """Looks at nothing."""

    def plan(self, pairs: int) -> None:
        """As `PairWatch.plan`."""

    def before_pair(self, pair: int) -> None:
        """As `PairWatch.before_pair`."""

    def after_candidate(self, pair: int) -> None:
        """As `PairWatch.after_candidate`."""


def time_in_turns(
    case: int,
    incumbent: AnyWorker,
    candidate: AnyWorker,
    rules: TimingRules,
    clock: Clock,
    watch: PairWatch | None = None,
) -> CaseTiming | TimingFailure:
    """Time both sides on one case, in ABBA order, from the contents of each worker's last `fill`.

    Args:
        case: `Case.index`.
        incumbent: Holds the case's plan and values.
        candidate: Holds the same case's.
        rules: How many pairs.
        clock: Limits warm-up and pairs.
        watch: Changes the values between pairs and looks at answers in between.

    Raises:
        HarnessError: The incumbent, which was found right before, failed.
    """
    sides = _Side(incumbent), _Side(candidate)
    watch = watch or Unwatched()
    started = clock.seconds()
    duration_ms = _turns(sides, first=0, count=1, rules=rules)
    if isinstance(duration_ms, RunOutcome):
        return TimingFailure(duration_ms)
    _agree(sides)
    count = samples_a_turn(max(duration_ms))
    turn_s = max(1e-4, clock.seconds() - started) * count
    failure = _warm(sides, count, rules, clock, before=duration_ms if count == 1 else (0.0, 0.0))
    if failure is not None:
        return TimingFailure(failure)
    ratios: list[float] = []
    planned = planned_pairs(max(duration_ms), turn_s, rules)
    watch.plan(planned)
    extended = False
    while len(ratios) < planned:
        watch.before_pair(len(ratios))
        times = _turns(sides, first=len(ratios) % 2, count=count, rules=rules, watch=(watch, len(ratios)))
        if isinstance(times, RunOutcome):
            return TimingFailure(times)
        for side in sides:
            side.keep()
        ratios.append(times[0] / times[1])
        dropped = _why_dropped(case, ratios, rules)
        if dropped:
            return _finish(case, sides, ratios, dropped=dropped)
        if len(ratios) == planned and not extended and planned >= rules.pairs:
            extended = True
            if half_width(pair(case, ratios)) > rules.extend_above:
                planned = min(rules.extended_pairs, max(planned, int(2 * rules.allowance_s / turn_s)))
                watch.plan(planned)
    return _finish(case, sides, ratios, dropped="")


def _why_dropped(case: int, ratios: Sequence[float], rules: TimingRules) -> str:
    """Return why no further pair is worth taking.

    Both rules can only end a candidate without acceptance, so looking early makes no false gain.
    """
    if len(ratios) == rules.cheap_pairs and median(ratios) < rules.cheap_ratio:
        return "a clear loss"
    hopeless = len(ratios) == rules.hopeless_pairs and pair(case, ratios).high < 1 + rules.least_gain
    return "no gain in sight" if hopeless else ""


def _agree(sides: tuple[_Side, _Side]) -> None:
    """Let both sides take as many runs a sample as the shorter one needs: hot runs are faster runs."""
    wanted = max(side.last.repeats for side in sides if side.last is not None)
    for side in sides:
        side.repeats = wanted


def samples_a_turn(duration_ms: float) -> int:
    """Return how many samples one turn takes: short kernels need several for a steady median."""
    for limit, count in ((0.1, 9), (1.0, 5), (10.0, 3)):
        if duration_ms < limit:
            return count
    return 1


def planned_pairs(duration_ms: float, turn_s: float, rules: TimingRules) -> int:
    """Return the number of pairs by kernel duration and the allowance of wall time."""
    wanted = rules.slow_pairs if duration_ms > rules.slow_ms else rules.pairs
    return max(min(wanted, rules.least_pairs), min(wanted, int(rules.allowance_s / turn_s)))


def _turns(
    sides: tuple[_Side, _Side],
    *,
    first: int,
    count: int,
    rules: TimingRules,
    watch: tuple[PairWatch, int] | None = None,
) -> tuple[float, float] | RunOutcome:
    """Let both sides take a turn, the incumbent first when `first` is 0."""
    times = [0.0, 0.0]
    for position in (first, 1 - first):
        answer = sides[position].turn(count, rules.timeout_s)
        if isinstance(answer, RunOutcome):
            if position == 0:
                raise HarnessError(f"the incumbent failed while it was timed: {answer.detail}")
            return answer
        times[position] = answer
        if watch is not None and position == 1:
            watch[0].after_candidate(watch[1])
    return times[0], times[1]


def _warm(
    sides: tuple[_Side, _Side],
    count: int,
    rules: TimingRules,
    clock: Clock,
    *,
    before: tuple[float, float],
) -> RunOutcome | None:
    """Run both sides until their medians settle or the warm-up's time is over; `before` are those of a turn before."""
    started = clock.seconds()
    while clock.seconds() - started < rules.warm_s:
        now = _turns(sides, first=0, count=count, rules=rules)
        if isinstance(now, RunOutcome):
            return now
        if all(abs(a - b) <= rules.settled * b for a, b in zip(before, now, strict=True)):
            break
        before = now
    return None


def _finish(case: int, sides: tuple[_Side, _Side], ratios: list[float], *, dropped: str) -> CaseTiming:
    return CaseTiming(
        candidate=sides[1].timing(case),
        incumbent=sides[0].timing(case),
        paired=pair(case, ratios),
        dropped=dropped,
        notes=tuple(dict.fromkeys(sides[0].notes + sides[1].notes)),
    )
