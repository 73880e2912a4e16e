from __future__ import annotations

import random

import pytest
import scripted_backend as scripted
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.evaluation.judge import CASE_LOSS, ESTIMATE_MARGIN, LEAST_GAIN, judge, weighted_geomean
from kernelskill.evaluation.timing import pair
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Evaluation, PairedTiming, Status, Timing, VerdictKind
from kernelskill.schema.task import Case


def task_of(*weights):
    cases = tuple(Case(index=i, arguments={"n": i}, timed=True, weight=w) for i, w in enumerate(weights))
    return scripted.make_task(scripted.source("right"), cases=cases)


def evaluation_of(*paired, evidence="measured", status=Status.PASSED):
    passed = status is Status.PASSED
    timings = tuple(
        Timing(case=p.case, samples_ms=(1,), median_ms=1, low_ms=1, high_ms=1, evidence=evidence)
        for p in paired
    )
    return Evaluation(
        key="k", candidate="c", stage="time", status=status, detail="" if passed else "y[3] is 0",
        timings=timings if passed else (), paired=paired if passed else (),
        conditions=Conditions(device="d", gpu="g"),
    )  # fmt: skip


def ratio(median, spread=0.0, case=0):
    return PairedTiming(
        case=case, ratios=(median,), median=median, low=median * (1 - spread), high=median * (1 + spread)
    )


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        ([ratio(1.5, 0.01)], VerdictKind.ACCEPTED),
        ([ratio(1.02, 0.001)], VerdictKind.ACCEPTED),
        ([ratio(1.02, 0.02)], VerdictKind.TIE),
        ([ratio(1.0)], VerdictKind.TIE),
        ([ratio(1.009)], VerdictKind.TIE),
        ([ratio(0.98, 0.005)], VerdictKind.SLOWER),
        ([ratio(3.0, 0.01), ratio(0.95, 0.01, case=1)], VerdictKind.REGRESSED_CASE),
        ([ratio(3.0, 0.01), ratio(0.985, 0.001, case=1)], VerdictKind.ACCEPTED),
        ([ratio(1.2, 0.01), ratio(1.0, 0.01, case=1)], VerdictKind.ACCEPTED),
    ],
)
def test_verdicts_of_measured_times(pairs, kind):
    verdict = judge(task_of(*[1.0] * len(pairs)), evaluation_of(*pairs))
    assert verdict.kind is kind, verdict.reason
    assert verdict.evidence == "measured"


def test_a_failure_is_refused_with_its_reason():
    verdict = judge(task_of(1.0), evaluation_of(status=Status.INCORRECT))
    assert (verdict.kind, verdict.reason) == (VerdictKind.REFUSED, "incorrect: y[3] is 0")
    assert verdict.speedup is None


def test_what_was_not_timed_is_refused():
    verdict = judge(task_of(1.0, 1.0), evaluation_of(ratio(9.0)))
    assert verdict.kind is VerdictKind.REFUSED
    assert verdict.reason == "not timed against the incumbent: n=1"


@pytest.mark.parametrize(
    ("median", "kind"),
    [
        (1 + ESTIMATE_MARGIN + 0.01, VerdictKind.ACCEPTED),
        (1.1, VerdictKind.TIE),
        (0.9, VerdictKind.TIE),
        (0.8, VerdictKind.SLOWER),
    ],
)
def test_estimates_need_more_than_the_models_error(median, kind):
    verdict = judge(task_of(1.0), evaluation_of(ratio(median), evidence="estimated"))
    assert verdict.kind is kind
    assert verdict.evidence == "estimated"
    if kind is VerdictKind.ACCEPTED:
        assert verdict.reason.startswith("estimated ")


def test_noise_of_the_original_widens_the_margin():
    fast = evaluation_of(ratio(1.05, 0.001))
    assert judge(task_of(1.0), fast, noise={0: 0.004}).kind is VerdictKind.ACCEPTED
    assert judge(task_of(1.0), fast, noise={0: 0.03}).kind is VerdictKind.TIE


def test_weights_decide_which_case_counts():
    pairs = ratio(2.0, 0.001), ratio(0.99, 0.001, case=1)
    assert weighted_geomean([(pairs[0], 1.0), (pairs[1], 0.0)])[0] == pytest.approx(2.0)
    assert judge(task_of(1.0, 1.0), evaluation_of(*pairs)).speedup == pytest.approx((2.0 * 0.99) ** 0.5)
    assert judge(task_of(0.0, 1.0), evaluation_of(*pairs)).kind is VerdictKind.TIE


positive = st.floats(0.2, 5.0)


@st.composite
def intervals(draw, case=0):
    median = draw(positive)
    return PairedTiming(
        case=case, ratios=(median,), median=median,
        low=median * (1 - draw(st.floats(0, 0.5))), high=median * (1 + draw(st.floats(0, 0.5))),
    )  # fmt: skip


@given(
    intervals(),
    intervals(case=1),
    st.floats(0.1, 5),
    st.sampled_from(["measured", "estimated"]),
    st.floats(0, 0.1),
)
def test_nothing_slower_or_unsure_is_ever_accepted(first, second, weight, evidence, noise):
    evaluation = evaluation_of(first, second, evidence=evidence)
    verdict = judge(task_of(1.0, weight), evaluation, noise={0: noise, 1: noise})
    if verdict.kind is VerdictKind.ACCEPTED:
        assert verdict.speedup > 1 + LEAST_GAIN
        assert verdict.low > 1
        assert min(first.high, second.high) >= 1 - max(
            CASE_LOSS, ESTIMATE_MARGIN if evidence == "estimated" else 0
        )


@given(st.sampled_from([s for s in Status if s is not Status.PASSED]))
def test_nothing_that_failed_is_ever_accepted(status):
    assert judge(task_of(1.0), evaluation_of(status=status)).kind is VerdictKind.REFUSED


@given(intervals())
def test_exchanging_the_sides_never_accepts_both(found):
    turned = PairedTiming(
        case=0, ratios=(1 / found.median,), median=1 / found.median, low=1 / found.high, high=1 / found.low
    )
    kinds = {judge(task_of(1.0), evaluation_of(p)).kind for p in (found, turned)}
    assert kinds != {VerdictKind.ACCEPTED}
    if VerdictKind.TIE not in kinds:
        assert kinds <= {VerdictKind.ACCEPTED, VerdictKind.SLOWER, VerdictKind.REGRESSED_CASE}


def test_neutral_kernels_are_not_accepted_even_as_the_best_of_many():
    rng = random.Random(2)
    accepted = 0
    for _ in range(600):
        drift = [0.003 * i for i in range(30)]
        ratios = [(1 + d + rng.gauss(0, 0.01)) / (1 + d + rng.gauss(0, 0.01)) for d in drift]
        accepted += judge(task_of(1.0), evaluation_of(pair(0, ratios))).kind is VerdictKind.ACCEPTED
    assert accepted == 0
