"""A small Bayesian preference model: Bradley-Terry over linear utilities, in NumPy.

A proposal's utility is an estimate of ln(speedup). Before any experience it is the skill's own
prior, weighted by how well its trigger fits; ordered pairs of outcomes move it from there. The
curvature at the optimum gives the uncertainty that exploration draws from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelskill.policy.features import FEATURE_NAMES, PRIOR_INDEX
from kernelskill.schema.experience import Preference

Array = NDArray[np.float64]

TEMPERATURE = 0.15
"""Difference of ln(speedup) at which a preference is 73 % certain."""

_DENSE_DEVIATION = 0.1
_HASHED_DEVIATION = 0.08
"""So small that doubt about what was never tried does not drown the priors; each skill's own spread
explores."""
_NEWTON_STEPS = 30
_CONVERGED = 1e-8


@dataclass(frozen=True)
class PreferenceModel:
    """Weights with their uncertainty."""

    mean: Array
    """Shape (features,)."""
    factor: Array
    """Lower-triangular L of the posterior precision L @ L.T; shape (features, features)."""
    pairs: int
    """Number of preferences it was fitted to."""

    def utilities(self, rows: Array) -> Array:
        """Return the expected ln(speedup) of rows of shape (proposals, features)."""
        return np.asarray(rows @ self.mean, dtype=np.float64)

    def deviations(self, rows: Array) -> Array:
        """Return the standard deviation of the expected ln(speedup) of each row."""
        solved = np.linalg.solve(self.factor, rows.T)
        return np.asarray(np.sqrt((solved**2).sum(axis=0)), dtype=np.float64)

    def sample(self, rows: Array, rng: np.random.Generator, draws: int) -> Array:
        """Draw utilities of shape (draws, proposals) from the posterior of the weights."""
        noise = rng.standard_normal((len(self.mean), draws))
        weights = self.mean[:, None] + np.linalg.solve(self.factor.T, noise)
        return (rows @ weights).T


def prior_model() -> PreferenceModel:
    """Return the model that knows nothing but the skills' priors."""
    return fit([])


def fit(preferences: Sequence[Preference]) -> PreferenceModel:
    """Fit the weights to ordered pairs by Newton's method.

    Args:
        preferences: Pairs whose rows have the length of `FEATURE_NAMES`; others are left out.
    """
    usable = [p for p in preferences if len(p.better) == len(p.worse) == len(FEATURE_NAMES)]
    start, precision = _prior()
    if not usable:
        return PreferenceModel(start, np.diag(np.sqrt(precision)), 0)
    rows = np.array([p.better for p in usable]) - np.array([p.worse for p in usable])
    weight = np.array([p.weight for p in usable])
    mean, hessian = _newton(rows / TEMPERATURE, weight, start, precision)
    factor: Array = np.linalg.cholesky(hessian).astype(np.float64)
    return PreferenceModel(mean, factor, len(usable))


def _prior() -> tuple[Array, Array]:
    """Return mean and diagonal precision of the weights before any experience."""
    mean = np.zeros(len(FEATURE_NAMES))
    mean[PRIOR_INDEX] = 1.0
    dense = np.array([not name.startswith("hash.") for name in FEATURE_NAMES])
    deviation = np.where(dense, _DENSE_DEVIATION, _HASHED_DEVIATION)
    return mean, np.asarray(1.0 / deviation**2, dtype=np.float64)


def _newton(rows: Array, weight: Array, start: Array, precision: Array) -> tuple[Array, Array]:
    """Maximise the posterior; returns the optimum and the negative Hessian there."""
    current = start.copy()
    hessian = np.diag(precision)
    for _ in range(_NEWTON_STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(rows @ current, -40, 40)))
        gradient = rows.T @ (weight * (1 - chance)) - precision * (current - start)
        hessian = rows.T @ (rows * (weight * chance * (1 - chance))[:, None]) + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        current = current + step
        if float(np.abs(step).max()) < _CONVERGED:
            break
    return current, hessian
