"""What forecasts do to expectations, and to how much is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from kernelskill.policy.forecasts import DEVIATION, LEAST_CHOSEN, Expected, joined, worthwhile


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


def test_a_sure_expectation_hears_no_forecast() -> None:
    assert joined(expected([0.2], [0.0]), [3.0]).means[0] == pytest.approx(0.2, abs=1e-3)


def test_of_a_great_gain_only_its_rivals_are_looked_at() -> None:
    assert worthwhile(expected([3.0, 2.5, 0.2, 0.1, 0.3], [0.2] * 5)) == 2
    assert worthwhile(expected([3.0, 0.1, 0.1], [0.2] * 3)) == LEAST_CHOSEN
    assert worthwhile(expected([0.1, 0.08, 0.05, 0.04], [0.1] * 4)) == 4
    assert worthwhile(expected([-0.1, -0.2, -0.3], [0.05] * 3)) >= LEAST_CHOSEN
    assert worthwhile(expected([0.1], [0.1])) == 1
