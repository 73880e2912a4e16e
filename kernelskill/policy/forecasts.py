"""What a forecast changes: expectations are drawn towards it, and who falls far behind is not looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelskill.policy.model import Array

DEVIATION = 0.3
"""Of ln(estimated speedup) from ln(measured speedup): `deviation` in `benchmarks/results/emulated/validation.json`,
rounded up to a tenth, since the emulated device's model was fitted to some of those kernels."""
WORTH_SHARE = 0.3
"""Of the best expectation, what a proposal must reach with its doubt to be looked at."""
LEAST_CHOSEN = 2

_SURE = 1e-3


@dataclass(frozen=True)
class Expected:
    """Draws, means and deviations of proposals, in ln(speedup)."""

    draws: Array
    """Shape (draws, proposals)."""
    means: Array
    deviations: Array


def joined(expected: Expected, forecasts: Sequence[float | None]) -> Expected:
    """Return expectations that take forecasts for a second, independent opinion; None for who has none."""
    known = np.array([forecast is not None for forecast in forecasts])
    said = np.array([forecast or 0.0 for forecast in forecasts])
    before = np.maximum(expected.deviations, _SURE)
    # Precisions add, as of two normal opinions; without a forecast nothing changes.
    weight = np.where(known, before**2 / (before**2 + DEVIATION**2), 0.0)
    means = expected.means + weight * (said - expected.means)
    deviations = expected.deviations * np.sqrt(1 - weight)
    draws = means + (expected.draws - expected.means) * np.sqrt(1 - weight)
    return Expected(draws, means, deviations)


def worthwhile(expected: Expected) -> int:
    """Return how many proposals are worth a look beside the best one, itself included."""
    count = len(expected.means)
    if count <= LEAST_CHOSEN:
        return count
    return max(LEAST_CHOSEN, sum(is_worthwhile(expected, index) for index in range(count)))


def is_worthwhile(expected: Expected, index: int) -> bool:
    """Whether a proposal reaches, with its doubt, a fair share of what is expected of the best."""
    reach = expected.means[index] + expected.deviations[index]
    return bool(reach >= WORTH_SHARE * float(expected.means.max()))
