"""What a forecast changes: expectations are drawn towards it, and who falls far behind is not looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelskill.policy.model import Array

DEVIATION = 0.3
"""Of ln(estimated speedup) from ln(measured speedup): `deviation` in `benchmarks/results/emulated/validation.json`,
rounded up to a tenth, since the emulated device's model was fitted to some of those kernels."""
LEAST_DOUBT = 0.3
"""Of ln(speedup), without a forecast: a prior that is surer than that is of the kind, not of this very kernel."""
REACH = 2.0
"""Deviations within which a proposal must come up to the best expectation to be looked at."""
PAID_SHARE = 0.3
"""Of the best expectation, what a proposal that was paid for must reach with its doubt."""
LEAST_CHOSEN = 2
LEAST_ELSEWHERE = 0.05
"""ln(speedup) of the launcher that the best change of another kernel must promise to be looked at beside the best."""


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
    before = np.maximum(expected.deviations, LEAST_DOUBT)
    # Precisions add, as of two normal opinions; without a forecast nothing changes.
    weight = np.where(known, before**2 / (before**2 + DEVIATION**2), 0.0)
    means = expected.means + weight * (said - expected.means)
    deviations = expected.deviations * np.sqrt(1 - weight)
    draws = means + (expected.draws - expected.means) * np.sqrt(1 - weight)
    return Expected(draws, means, deviations)


def worthwhile(expected: Expected, shifts: Array) -> list[int]:
    """Return the indices of the proposals that may well be the best one, and of the best two in any case.

    Args:
        expected: What proposals win.
        shifts: What the user's wishes add, in ln(speedup), of shape (proposals,).
    """
    wanted = expected.means + shifts
    best_first = sorted(range(len(wanted)), key=lambda index: -float(wanted[index]))
    reach = wanted + REACH * expected.deviations
    able = [index for index in best_first if reach[index] >= wanted.max()]
    return list(dict.fromkeys([*best_first[:LEAST_CHOSEN], *able]))


def best_elsewhere(expected: Expected, kernels: Sequence[frozenset[str]]) -> list[int]:
    """Return the best proposal of each kernel but those of the best of all, of those that promise a gain.

    They add to what the best one brings, however little each of them brings beside it.

    Args:
        expected: What proposals win for the whole launcher.
        kernels: The kernels that each of them changes; empty where unknown.
    """
    order = sorted(range(len(kernels)), key=lambda index: -float(expected.means[index]))
    taken = set(kernels[order[0]]) if order else set()
    found: list[int] = []
    for index in order[1:]:
        gains = float(expected.means[index]) > LEAST_ELSEWHERE
        if gains and taken and kernels[index] and taken.isdisjoint(kernels[index]):
            found.append(index)
            taken |= kernels[index]
    return found


def is_far_behind(expected: Expected, index: int) -> bool:
    """Whether a proposal does not reach, even with its doubt, a fair share of what is expected of the best."""
    reach = expected.means[index] + expected.deviations[index]
    return bool(reach < PAID_SHARE * float(expected.means.max()))
