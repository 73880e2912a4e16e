"""How often what a skill predicts of a metric held in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelskill.schema.event import Event, Observed
from kernelskill.schema.proposal import MetricOutcome


@dataclass(frozen=True)
class PredictionRow:
    """One metric of one skill, over all changes that were kept and profiled."""

    skill: str
    metric: str
    direction: str
    held: int
    observed: int
    """Changes of which both profiles have the metric."""
    unobserved: int
    before: float | None
    """Of the first change that was observed."""
    after: float | None


def prediction_rows(events: Sequence[Event]) -> tuple[PredictionRow, ...]:
    """Return a row for each skill, metric and direction, by skill."""
    return rows_of(outcome for event in events if isinstance(event, Observed) for outcome in event.outcomes)


def rows_of(outcomes: Iterable[MetricOutcome]) -> tuple[PredictionRow, ...]:
    """Return a row for each skill, metric and direction, by skill."""
    grouped: dict[tuple[str, str, str], list[MetricOutcome]] = {}
    for outcome in outcomes:
        key = (outcome.skill, outcome.metric, outcome.direction)
        grouped.setdefault(key, []).append(outcome)
    return tuple(_row(*key, found) for key, found in sorted(grouped.items()))


def _row(skill: str, metric: str, direction: str, outcomes: Sequence[MetricOutcome]) -> PredictionRow:
    known = [outcome for outcome in outcomes if outcome.held is not None]
    return PredictionRow(
        skill=skill,
        metric=metric,
        direction=direction,
        held=sum(bool(outcome.held) for outcome in known),
        observed=len(known),
        unobserved=len(outcomes) - len(known),
        before=known[0].before if known else None,
        after=known[0].after if known else None,
    )
