"""Whether a change moved the metrics that its skills said it would move."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isclose

from kernelskill.profiling.figures import definitions, figures_of
from kernelskill.profiling.potential import plain_name
from kernelskill.schema.profile import KernelProfile, Profile
from kernelskill.schema.proposal import MetricChange, MetricOutcome

LEAST_CHANGE = 0.01
"""A metric that moves by less has not moved: counters of equal runs differ by up to about so much."""
STILL_SAME = 0.05
"""A metric that moves by no more has stayed the same, where that was predicted."""


def observed_changes(
    predicted: Sequence[MetricChange], before: Profile, after: Profile, kernels: Collection[str] = ()
) -> tuple[MetricOutcome, ...]:
    """Return what became of each predicted change.

    Args:
        predicted: What the proposal's skills said.
        before: Profile of the base.
        after: Profile of the result, on the same case.
        kernels: Plain names of the kernels that were changed; where both sides have them, only they
            count, else all kernels of both.
    """
    if (before.case, before.source) != (after.case, after.source):
        return tuple(_outcome(change, None, None) for change in predicted)
    one, other = _of_interest(before, after, kernels)
    return tuple(
        _outcome(change, _value(change.metric, one, before), _value(change.metric, other, after))
        for change in predicted
    )


def _of_interest(
    before: Profile, after: Profile, kernels: Collection[str]
) -> tuple[tuple[KernelProfile, ...], tuple[KernelProfile, ...]]:
    wanted = set(kernels)
    sides = []
    for profile in (before, after):
        own = tuple(kernel for kernel in profile.kernels if plain_name(kernel.kernel) in wanted)
        if not wanted or {plain_name(kernel.kernel) for kernel in own} != wanted:
            return before.kernels, after.kernels
        sides.append(own)
    return sides[0], sides[1]


def _value(metric: str, kernels: Sequence[KernelProfile], profile: Profile) -> float | None:
    """Return one figure of several kernels: a sum of what adds up, else the mean weighed by time."""
    values: list[tuple[KernelProfile, float]] = []
    for kernel in kernels:
        found = _figure(metric, kernel, profile)
        if found is None:
            return None
        values.append((kernel, found))
    if not values:
        return None
    definition = definitions().get(metric)
    if definition.adds if definition is not None else metric.endswith(".sum"):
        return sum(value * kernel.launches for kernel, value in values)
    weight = sum(kernel.time_share for kernel, _ in values)
    if weight <= 0:
        return sum(value for _, value in values) / len(values)
    return sum(value * kernel.time_share for kernel, value in values) / weight


def _figure(metric: str, kernel: KernelProfile, profile: Profile) -> float | None:
    metrics = dict(kernel.metrics)
    if kernel.resources is not None:
        metrics.setdefault("static__registers", float(kernel.resources.registers))
    if metric in definitions():
        return figures_of(metrics, traced=profile.source == "trace").get(metric)
    return metrics.get(metric)


def _outcome(change: MetricChange, before: float | None, after: float | None) -> MetricOutcome:
    return MetricOutcome(
        metric=change.metric,
        direction=change.direction,
        skill=change.skill,
        before=before,
        after=after,
        held=None if before is None or after is None else _held(change.direction, before, after),
    )


def _held(direction: str, before: float, after: float) -> bool:
    if direction == "same":
        return isclose(before, after, rel_tol=STILL_SAME)
    moved = not isclose(before, after, rel_tol=LEAST_CHANGE)
    return moved and (after > before) == (direction == "up")
