"""What forecasts do to expectations, and to how much is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from kernelskill.policy.forecasts import (
    DEVIATION,
    LEAST_CHOSEN,
    Expected,
    best_elsewhere,
    is_far_behind,
    joined,
    worthwhile,
)


def expected(means: list[float], deviations: list[float]) -> Expected:
    middle, spread = np.array(means), np.array(deviations)
    draws = middle + spread * np.random.default_rng(5).standard_normal((4000, len(means)))
    return Expected(draws, middle, spread)


def test_precisions_add_up() -> None:
    found = joined(expected([0.0], [DEVIATION]), [1.0])
    assert found.means[0] == pytest.approx(0.5)
    assert found.deviations[0] == pytest.approx(DEVIATION / 2**0.5)
    assert found.draws.std() == pytest.approx(DEVIATION / 2**0.5, rel=0.05)
    assert found.draws.mean() == pytest.approx(0.5, abs=0.02)


def test_who_has_no_forecast_keeps_what_was_expected() -> None:
    before = expected([0.4, 0.1], [0.2, 0.5])
    found = joined(before, [None, None])
    assert np.array_equal(found.means, before.means)
    assert np.array_equal(found.draws, before.draws)


def test_a_sure_expectation_is_of_the_kind_and_hears_the_forecast_of_this_kernel() -> None:
    found = joined(expected([0.2], [0.0]), [3.0])
    assert found.means[0] == pytest.approx(1.6)
    assert found.deviations[0] == 0.0


def looked_at(means: list[float], deviations: list[float], wishes: list[float] | None = None) -> list[int]:
    return worthwhile(expected(means, deviations), np.array(wishes or [0.0] * len(means)))


def test_only_those_that_may_be_the_best_are_looked_at() -> None:
    assert looked_at([3.0, 2.7, 0.2, 0.1, 0.3], [0.2] * 5) == [0, 1]
    assert looked_at([0.1, 3.0, 0.2], [0.2] * 3) == [1, 2]
    assert looked_at([3.0, 2.7, 2.8, 1.0], [0.2, 0.2, 0.2, 1.1]) == [0, 2, 1, 3]
    assert len(looked_at([0.1, 0.08, 0.05, 0.04], [0.1] * 4)) == 4
    assert len(looked_at([-0.1, -0.2, -0.3], [0.05] * 3)) == LEAST_CHOSEN
    assert looked_at([0.1], [0.1]) == [0]


def test_what_the_user_wished_for_is_looked_at() -> None:
    assert looked_at([3.0, 2.9, 0.1], [0.1] * 3, [0.0, 0.0, 3.0]) == [2, 0, 1]


def test_what_was_paid_for_is_given_up_only_far_behind() -> None:
    slate = expected([3.0, 0.8, 0.2], [0.2] * 3)
    assert [is_far_behind(slate, index) for index in range(3)] == [False, False, True]


def test_the_best_of_every_other_kernel_adds_to_the_best_of_all() -> None:
    slate = expected([1.0, 0.9, 0.2, 0.3, 0.01, 0.2], [0.2] * 6)
    k, h, both, unknown = frozenset("k"), frozenset("h"), frozenset("hk"), frozenset[str]()
    assert best_elsewhere(slate, [k, k, h, h, frozenset("j"), frozenset("i")]) == [3, 5]
    assert best_elsewhere(slate, [k, h, h, both, h, h]) == [1]
    assert best_elsewhere(slate, [both, k, h, unknown, k, h]) == []
    assert best_elsewhere(slate, [unknown, k, h, k, k, h]) == []
    assert best_elsewhere(expected([], []), []) == []
