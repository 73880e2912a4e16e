from __future__ import annotations

import random

import pytest
import scripted_backend as scripted
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.base import RunOutcome, TimingRun
from kernelskill.errors import HarnessError
from kernelskill.evaluation.timing import (
    TimingFailure,
    TimingRules,
    half_width,
    order_interval,
    pair,
    planned_pairs,
    samples_a_turn,
    time_in_turns,
    time_once,
)
from kernelskill.runs import SystemClock
from kernelskill.schema.evaluation import Status

RULES = TimingRules(warm_s=0.0)


class Stopwatch:
    """A worker that only times; logs who took a turn."""

    def __init__(self, name, log, times, failure=None):
        self.name, self.log, self.times, self.failure = name, log, times, failure

    def time(self, samples, *, flush_l2, timeout_s):
        assert flush_l2
        self.log.append(self.name)
        if self.failure is not None and len(self.log) > 20:
            return self.failure
        return TimingRun(samples_ms=tuple(self.times() for _ in range(samples)), evidence="measured")


def sides(a=2.0, b=1.0, spread=0.0, failure=None):
    log, rng = [], random.Random(3)
    a_side = Stopwatch("A", log, lambda: a * (1 + rng.gauss(0, spread)))
    return a_side, Stopwatch("B", log, lambda: b * (1 + rng.gauss(0, spread)), failure), log


def test_thirty_pairs_in_abba_order():
    incumbent, candidate, log = sides()
    found = time_in_turns(0, incumbent, candidate, RULES, SystemClock())
    assert found.paired.median == 2.0
    assert len(found.paired.ratios) == 30
    assert "".join(log[2:10]) == "ABBAABBA"
    assert found.candidate.median_ms == 1.0
    assert found.incumbent.low_ms == found.incumbent.high_ms == 2.0


def test_noise_takes_one_extension_decided_in_advance():
    found = time_in_turns(0, *sides(1.0, 1.0, spread=0.2)[:2], RULES, SystemClock())
    assert len(found.paired.ratios) == 60
    assert not found.dropped
    steady = RULES.model_copy(update={"hopeless_pairs": 0})
    assert (
        len(time_in_turns(0, *sides(1.0, 1.0, spread=0.001)[:2], steady, SystemClock()).paired.ratios) == 30
    )


def test_a_candidate_without_a_gain_in_sight_is_left_at_that():
    found = time_in_turns(0, *sides(1.0, 1.0, spread=0.001)[:2], RULES, SystemClock())
    assert found.dropped == "no gain in sight"
    assert len(found.paired.ratios) == 12
    gain = time_in_turns(0, *sides(1.03, 1.0, spread=0.001)[:2], RULES, SystemClock())
    assert len(gain.paired.ratios) == 30


def test_a_clear_loser_is_dropped_after_six_pairs():
    found = time_in_turns(0, *sides(1.0, 1.5)[:2], RULES, SystemClock())
    assert found.dropped
    assert len(found.paired.ratios) == 6


def test_slow_kernels_take_eight_pairs():
    assert len(time_in_turns(0, *sides(2000.0, 1900.0)[:2], RULES, SystemClock()).paired.ratios) == 8


def test_a_candidate_that_fails_while_timed_is_data_an_incumbent_is_not():
    failure = RunOutcome(status=Status.RUNTIME_ERROR, detail="illegal address")
    incumbent, candidate, _ = sides(failure=failure)
    assert time_in_turns(0, incumbent, candidate, RULES, SystemClock()) == TimingFailure(failure)
    with pytest.raises(HarnessError, match="incumbent failed while it was timed: illegal address"):
        time_in_turns(0, candidate, incumbent, RULES, SystemClock())


def test_impossible_times_are_our_fault():
    log = []
    with pytest.raises(HarnessError, match="answered the times"):
        time_once(0, Stopwatch("A", log, lambda: 0.0), timeout_s=1)


@pytest.mark.parametrize(("n", "low", "high"), [(1, 1, 1), (5, 1, 5), (6, 1, 6), (8, 1, 8), (30, 10, 21)])
def test_order_statistics(n, low, high):
    assert order_interval(range(1, n + 1)) == (low, high)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=70))
def test_interval_holds_the_median(values):
    found = pair(0, values)
    assert found.low <= found.median <= found.high
    assert half_width(found) >= 0


def test_interval_covers_the_true_median_as_often_as_it_says():
    rng = random.Random(11)
    hits = 0
    for _ in range(2000):
        low, high = order_interval([rng.gauss(0, 1) for _ in range(30)])
        hits += low <= 0 <= high
    assert 0.95 <= hits / 2000 <= 0.975


def test_counts_by_duration_and_allowance():
    assert [samples_a_turn(ms) for ms in (0.01, 0.5, 5, 50)] == [9, 5, 3, 1]
    assert planned_pairs(1.0, 0.01, RULES) == 30
    assert planned_pairs(1.0, 2.0, RULES) == 10
    assert planned_pairs(1.0, 100.0, RULES) == 8
    assert planned_pairs(5000.0, 0.1, RULES) == 8


def test_the_scripted_worker_is_timed_like_any(laboratory):
    lab = laboratory(settings={"ms": 2.0})
    evaluation = lab.time("right", ms=1.0)
    assert evaluation.passed
    assert 1.9 < evaluation.paired[0].median < 2.1
    assert evaluation.timing(2).median_ms == pytest.approx(1.0, rel=0.01)
    assert evaluation.incumbent_timings[0].median_ms == pytest.approx(2.0, rel=0.01)
    assert scripted.GPU.name == evaluation.conditions.gpu


def test_the_cheap_stage_takes_few_pairs_and_never_more():
    short = RULES.shortened()
    noisy = time_in_turns(0, *sides(1.0, 1.0, spread=0.2)[:2], short, SystemClock())
    assert len(noisy.paired.ratios) == 6
    assert len(time_in_turns(0, *sides(2000.0, 1900.0)[:2], short, SystemClock()).paired.ratios) == 6
    assert TimingRules(pairs=4).shortened().pairs == 4


def test_a_cheap_evaluation_is_brief_and_says_so(laboratory):
    lab = laboratory(settings={"ms": 2.0})
    fast = scripted.source("right", ms=1.0)
    request = lab.request(fast, stage="time", incumbent=lab.original, depth="cheap")
    cheap = lab.evaluator.evaluate(request)
    assert (cheap.depth, len(cheap.paired[0].ratios), len(cheap.checks) < 20) == ("cheap", 6, True)
    assert lab.evaluator.evaluate(request) == cheap
    whole = lab.evaluator.evaluate(request.model_copy(update={"depth": "search"}))
    assert (whole.depth, len(whole.paired[0].ratios)) == ("search", 30)
    assert not any("not run again" in note for note in whole.notes)


def test_an_estimate_is_made_once_for_both_stages(laboratory):
    lab = laboratory(settings={"ms": 2.0}, evidence="estimated")
    fast = scripted.source("right", ms=1.0)
    request = lab.request(fast, stage="time", incumbent=lab.original, depth="cheap")
    cheap = lab.evaluator.evaluate(request)
    deep = request.model_copy(update={"depth": "search"})
    check = lab.evaluator.evaluate(deep.model_copy(update={"stage": "check", "incumbent": None}))
    assert check.depth == "search"
    opened = lab.backend.opened
    whole = lab.evaluator.evaluate(deep)
    assert whole.timings == cheap.timings
    assert lab.backend.opened == opened + 1
