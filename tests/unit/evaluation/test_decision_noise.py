"""The whole decision, from turns to verdict, on simulated clocks: neutral kernels stay out, true gains get in."""

from __future__ import annotations

import random

import pytest

from kernelskill.backends.base import TimingRun
from kernelskill.evaluation.judge import judge
from kernelskill.evaluation.timing import CaseTiming, TimingRules, half_width, time_in_turns
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Evaluation, Status, VerdictKind
from tests.unit.evaluation.test_judge import task_of

RUNS = 60
TASK = task_of(1.0)


class Weather:
    """What disturbs both sides: spread of single samples, slow drift, rare long ones, and time itself."""

    def __init__(self, seed: int, *, spread: float, drift: float, heavy: bool) -> None:
        self.random = random.Random(seed)
        self.spread, self.drift, self.heavy = spread, drift, heavy
        self.level = 1.0
        self.now = 0.0

    def seconds(self) -> float:
        return self.now

    def sample(self, ms: float) -> float:
        """Return one time; the level wanders by itself, whoever is timed."""
        self.level *= 1 + self.drift * self.random.gauss(0.2, 1.0)
        error = self.random.gauss(0, 1)
        if self.heavy:
            # Student's t of three degrees, and every fiftieth sample is disturbed by something else.
            error /= (sum(self.random.gauss(0, 1) ** 2 for _ in range(3)) / 3) ** 0.5
            error += self.random.expovariate(0.1) if self.random.random() < 0.02 else 0.0
        return ms * self.level * max(0.2, 1 + self.spread * error)


class Side:
    """A worker that takes its times from the weather."""

    def __init__(self, weather: Weather, ms: float) -> None:
        self.weather, self.ms = weather, ms

    def time(self, samples, *, flush_l2, timeout_s, repeats=0):
        self.weather.now += 0.002 * samples
        return TimingRun(
            samples_ms=tuple(self.weather.sample(self.ms) for _ in range(samples)), evidence="measured"
        )


WEATHERS = {
    "spread of 1 %": {"spread": 0.01, "drift": 0.0, "heavy": False},
    "spread of 1 %, drift": {"spread": 0.01, "drift": 0.003, "heavy": False},
    "spread of 1 %, heavy tails, drift": {"spread": 0.01, "drift": 0.002, "heavy": True},
    "spread of 3 %": {"spread": 0.03, "drift": 0.0, "heavy": False},
    "spread of 3 %, heavy tails, drift": {"spread": 0.03, "drift": 0.003, "heavy": True},
}


def accepted(kind: str, gain: float, runs: int = RUNS, *, fresh: int = 0) -> int:
    """Return how many of so many candidates of a true gain are accepted, each as a run decides it."""
    count = 0
    for number in range(runs):
        weather = Weather(1000 * fresh + number, **WEATHERS[kind])
        own = turns(weather, 1.0, TimingRules(hopeless_pairs=0, warm_s=0.1))
        found = turns(weather, 1.0 + gain, TimingRules(warm_s=0.1))
        evaluation = Evaluation(
            key="k", candidate="c", stage="time", status=Status.PASSED, timings=(found.candidate,),
            paired=(found.paired,), conditions=Conditions(device="d", gpu="g"),
        )  # fmt: skip
        verdict = judge(TASK, evaluation, noise={0: half_width(own.paired)})
        count += verdict.kind is VerdictKind.ACCEPTED
    return count


def turns(weather: Weather, ms: float, rules: TimingRules) -> CaseTiming:
    found = time_in_turns(0, Side(weather, ms), Side(weather, 1.0), rules, weather)
    assert isinstance(found, CaseTiming)
    return found


@pytest.mark.parametrize("kind", WEATHERS)
def test_no_kernel_is_accepted_against_itself(kind: str) -> None:
    assert accepted(kind, 0.0) == 0


@pytest.mark.parametrize("kind", [kind for kind in WEATHERS if "1 %" in kind])
def test_true_gains_of_three_percent_are_accepted(kind: str) -> None:
    assert accepted(kind, 0.03) >= 0.95 * RUNS


@pytest.mark.parametrize("kind", [kind for kind in WEATHERS if "3 %" in kind])
def test_noise_of_three_percent_hides_small_gains_and_not_large_ones(kind: str) -> None:
    assert accepted(kind, 0.12, 60) >= 0.95 * 60


def test_a_loss_is_never_a_gain() -> None:
    assert sum(accepted(kind, -0.01, 40, fresh=1) for kind in WEATHERS) == 0
