"""Compare a candidate's error with the original's own: a tolerance alone lets much precision go unseen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from kernelskill.evaluation.trials import Trial
from kernelskill.schema.base import Record
from kernelskill.tasks.dtypes import dtype_of, is_complex, is_floating

NOTED = 10.0
"""An error so many times the original's own is said."""
REFUSED = 100.0
"""One so many times is refused, unless lower precision is allowed."""
LEAST_ELEMENTS = 32
"""The largest error of fewer values is as much luck as precision, so it is only said."""
Errors = Mapping[int, Mapping[str, float]]
"""Case index to output name to its largest absolute error."""


class PrecisionLoss(Record):
    """The output whose error grew most."""

    case: int
    """Where the error is largest."""
    output: str
    error: float
    original_error: float
    """Of the original on the same values, at least one unit in the last place of the largest one."""
    elements: int
    """Of the largest case that was looked at."""

    @property
    def factor(self) -> float:
        """How many times the original's error."""
        return self.error / self.original_error

    @property
    def is_grave(self) -> bool:
        """Whether it shows that the candidate computes with less precision."""
        return self.factor > REFUSED and self.elements >= LEAST_ELEMENTS

    def __str__(self) -> str:
        return (
            f"{self.output} errs by {self.error:.3g}, {self.factor:.0f} times as much as the original"
            f" ({self.original_error:.3g})"
        )


def precision_loss(errors: Errors, original: Errors, trial: Callable[[int], Trial]) -> PrecisionLoss | None:
    """Return the output whose error grew most, where it grew enough to be said.

    The largest error over all cases counts: of one small case it can be large or nothing by luck.

    Args:
        errors: The candidate's.
        original: The original's on the same values.
        trial: Gives the values of a case.
    """
    cases = [case for case in errors if case in original]
    names = dict.fromkeys(name for case in cases for name in errors[case] if name in original[case])
    losses = [_loss(name, cases, errors, original, trial) for name in names]
    return max((loss for loss in losses if loss is not None), key=lambda loss: loss.factor, default=None)


def _loss(
    name: str, cases: Iterable[int], errors: Errors, original: Errors, trial: Callable[[int], Trial]
) -> PrecisionLoss | None:
    seen = [case for case in cases if name in errors[case] and name in original[case]]
    worst = max(seen, key=lambda case: errors[case][name])
    error, known = errors[worst][name], max(original[case][name] for case in seen)
    if error <= NOTED * known:
        return None
    floor = max(known, *(last_place(trial(case), name) for case in seen))
    if floor <= 0 or error <= NOTED * floor:
        return None
    elements = max(math.prod(trial(case).bundle.expected[name].shape) for case in seen)
    return PrecisionLoss(case=worst, output=name, error=error, original_error=floor, elements=elements)


def last_place(trial: Trial, output: str) -> float:
    """Return one unit in the last place of the largest expected value; 0 where an output is not floating."""
    expected = trial.bundle.expected[output]
    own = dtype_of(expected.dtype)
    if own.names is not None or not (is_floating(own) or is_complex(own)):
        return 0.0
    sizes = np.abs(trial.bundle.load(expected.values)).astype(np.float64, copy=False)
    keep = np.isfinite(sizes)
    if expected.mask is not None:
        keep &= np.broadcast_to(trial.bundle.load(expected.mask), sizes.shape).astype(bool)
    largest = float(sizes.max(initial=0.0, where=keep))
    return float(_epsilon(own)) * largest


def _epsilon(own: np.dtype[Any]) -> float:
    """Return the distance from 1 to the next number of a type, by trying: `ml_dtypes` has types of its own."""
    if is_complex(own):
        return float(np.finfo(own).eps)
    step = 1.0
    while float(np.asarray(1.0 + step / 2).astype(own)) != 1.0 and step > 2.0**-60:
        step /= 2
    return step
