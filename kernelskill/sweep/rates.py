"""A rate of yes and no with its exact interval."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log

from kernelskill.schema.base import Record

CONFIDENCE = 0.95
_HALVINGS = 60


class Rate(Record):
    """How many of how many, with the exact binomial interval (Clopper and Pearson, 1934)."""

    count: int
    of: int
    share: float | None
    """None where nothing was tried."""
    low: float
    high: float
    confidence: float = CONFIDENCE


def rate(count: int, of: int, confidence: float = CONFIDENCE) -> Rate:
    """Return `count` of `of` as a rate; nothing tried leaves the interval at 0 to 1.

    Raises:
        ValueError: `count` does not lie between 0 and `of`.
    """
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} is no rate")
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else _root(lambda p: tail - _at_least(count, of, p))
    high = 1.0 if count == of else _root(lambda p: 1 - _at_least(count + 1, of, p) - tail)
    return Rate(
        count=count, of=of, share=count / of if of else None, low=low, high=high, confidence=confidence
    )


def _at_least(count: int, of: int, p: float) -> float:
    """Return the chance of `count` or more successes of `of`."""
    return sum(_exactly(k, of, p) for k in range(count, of + 1))


def _exactly(count: int, of: int, p: float) -> float:
    ways = lgamma(of + 1) - lgamma(count + 1) - lgamma(of - count + 1)
    return exp(ways + count * log(p) + (of - count) * log(1 - p))


def _root(falling: Callable[[float], float]) -> float:
    """Return where a function that falls with p from above to below zero crosses it."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
