"""Values take turns while pairs are timed, and timed answers are looked at where nobody expects it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scripted_backend as scripted

from kernelskill.evaluation.demands import NOTHING_KNOWN
from kernelskill.evaluation.protocol import CheckProtocol, CheckRules
from kernelskill.evaluation.timed_values import TimedValues, clock_notes
from kernelskill.evaluation.timing import TimingRules, time_in_turns
from kernelskill.evaluation.trials import TrialSource
from kernelskill.runs import SystemClock
from kernelskill.schema.device import ClockState
from kernelskill.schema.evaluation import Status

LOOKS = TimingRules().looks


class Side:
    """The candidate's or the incumbent's end: what it was given and what was read from it."""

    def __init__(self, log, name):
        self.log, self.name, self.seen = log, name, []
        self.worker = self

    def fill(self, contents, *, poison):
        self.log.append((self.name, "fill"))
        self.contents = contents

    def time(self, samples, *, flush_l2, timeout_s, repeats=0):
        self.log.append((self.name, "time"))
        return scripted.TimingRun(samples_ms=(1.0,) * samples, evidence="measured")

    def read(self, arrangement, name, slot):
        path = self.folder / f"{name}.{slot}"
        x = np.fromfile(self.contents["x"], np.float32)
        (2 * x + 1).tofile(path)
        self.seen.append(slot)
        return type("Read", (), {"path": path})


@pytest.fixture
def values_of(laboratory, values, tmp_path):
    lab = laboratory()
    protocol = CheckProtocol(
        lab.task, TrialSource(lab.task, values, tmp_path / "v"), lab.pool,
        evidence="measured", demands=NOTHING_KNOWN, rules=CheckRules(), clock=SystemClock(),
    )  # fmt: skip
    case = lab.task.timed_cases[0]
    log = []
    sides = Side(log, "A"), Side(log, "B")
    for side in sides:
        side.folder = tmp_path
        side.contents = protocol.trial(case, 0).bundle.contents()

    def make(**more):
        return TimedValues(protocol, case, sides, chance=random.Random(4), **more), sides, log

    return make


def test_both_sides_get_other_values_at_the_same_pairs(values_of):
    watched, sides, log = values_of(rotations=5)
    rules = TimingRules(warm_s=0.0, hopeless_pairs=0)
    time_in_turns(0, *sides, rules, SystemClock(), watched)
    fills = [place for place, entry in enumerate(log) if entry[1] == "fill"]
    assert len(fills) == 2 * 2, "three seeds of the pool in three blocks"
    for first, second in zip(fills[::2], fills[1::2], strict=True):
        assert (log[first][0], log[second][0], second) == ("A", "B", first + 1)
    assert watched.what_is_wrong() == ""
    assert len(sides[1].seen) == LOOKS + 1
    assert not sides[0].seen


def test_where_it_looks_is_not_known_before(values_of):
    seen = set()
    for seed in range(5):
        watched, sides, _ = values_of(rotations=1)
        watched._chance = random.Random(seed)
        sides[1].seen.clear()
        watched.plan(30)
        for pair in range(30):
            watched.after_candidate(pair)
        assert len(sides[1].seen) == LOOKS
        seen.add(tuple(sides[1].seen))
    assert len(seen) == 5


def test_an_extension_is_looked_at_too(values_of):
    watched, sides, _ = values_of(rotations=2)
    watched.plan(30)
    watched.plan(60)
    for pair in range(60):
        watched.before_pair(pair)
        watched.after_candidate(pair)
    late = [slot for slot in sides[1].seen if int(slot.split("-")[1]) >= 30]
    assert (len(sides[1].seen), len(late)) == (2 * LOOKS, LOOKS)


def test_who_works_only_in_the_last_timed_runs_is_found_out(laboratory):
    found = laboratory(settings={"ms": 2.0}).time("lazy_at_first", ms=1.0, runs=28)
    assert found.status is Status.NONDETERMINISTIC
    assert "right before and wrong while timed: y[0]" in found.detail
    assert not found.timings


def test_clocks_are_read_before_and_after_the_pairs(values_of):
    states = iter([ClockState(sm_mhz=1980), ClockState(sm_mhz=1500, slowed_by=("its power limit",))])
    watched, sides, _ = values_of(rotations=1, clocks=lambda: next(states))
    time_in_turns(0, *sides, TimingRules(warm_s=0.0), SystemClock(), watched)
    assert watched.clock_notes() == (
        "case n=4096: the SM clock went from 1980 to 1500 MHz while it was timed",
        "case n=4096: the GPU was slowed down by its power limit",
    )
    assert clock_notes("n=1", ClockState(sm_mhz=1980), ClockState(sm_mhz=1950)) == ()
    assert clock_notes("n=1", ClockState(), ClockState()) == ()
