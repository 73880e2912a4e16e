"""From outcomes to ordered pairs. Only outcomes of one slate are compared: their context is the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.experience import Experience, Preference

FAILED_VALUE = -0.35
"""What a refused candidate counts as, in ln(speedup): it cost an evaluation and won nothing."""

LEAST_DIFFERENCE = 0.02
"""Outcomes nearer than this are no preference; about twice the noise of a paired timing."""

_CLEAR_DIFFERENCE = 0.3


def outcome_value(experience: Experience) -> float:
    """Return what an outcome was worth, as ln(speedup); failures count as a loss."""
    if experience.verdict is VerdictKind.REFUSED or experience.log_speedup is None:
        return FAILED_VALUE
    return experience.log_speedup


def preferences(experiences: Iterable[Experience]) -> list[Preference]:
    """Return all ordered pairs within each slate, the choice of doing nothing included.

    Doing nothing has a row of zeros and the value 0: a slate of one outcome teaches too.
    """
    slates: dict[str, list[Experience]] = {}
    for experience in experiences:
        slates.setdefault(experience.slate, []).append(experience)
    return [pair for slate, rows in slates.items() for pair in _pairs(slate, rows)]


def _pairs(slate: str, rows: list[Experience]) -> Iterable[Preference]:
    options = [(outcome_value(row), row.features, row.evidence) for row in rows]
    nothing = (0.0, (0.0,) * len(rows[0].features), "none")
    for first, second in combinations([*options, nothing], 2):
        better, worse = (first, second) if first[0] > second[0] else (second, first)
        difference = better[0] - worse[0]
        if difference < LEAST_DIFFERENCE:
            continue
        estimated = "estimated" in (better[2], worse[2])
        yield Preference(
            context=slate,
            better=better[1],
            worse=worse[1],
            weight=min(1.0, difference / _CLEAR_DIFFERENCE),
            evidence="estimated" if estimated else "measured",
        )
