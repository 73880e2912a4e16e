"""Find two candidates that are each best on other sizes, and the size that tells the cases apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

from kernelskill.schema.run import Member
from kernelskill.schema.task import Case, Task
from kernelskill.skills.size_dispatch import SizeCondition

Sizes = Mapping[int, Mapping[str, int]]
"""Case index to the integer parameters of the launcher."""


@dataclass(frozen=True)
class Split:
    """Two candidates, and where the second one runs."""

    general: Member
    special: Member
    condition: SizeCondition
    gain: float
    """ln(time of the best single candidate / time of both together), by their own times."""


def find_split(task: Task, members: Sequence[Member], sizes: Sizes, least_gain: float) -> Split | None:
    """Return the split that promises most, or None where no size separates what is fast.

    Args:
        task: Its timed cases count, with their weights.
        members: Right candidates with their times.
        sizes: What may be asked in the launcher.
        least_gain: ln(speedup) over the best single candidate that is worth an evaluation.
    """
    cases = [case for case in task.timed_cases if case.index in sizes]
    usable = [m for m in members if all(m.evaluation.timing(case.index) for case in task.timed_cases)]
    if len(cases) < 2 or len(cases) < len(task.timed_cases) or len(usable) < 2:
        return None
    alone = {member.candidate.digest: _whole(cases, _times(member, cases)) for member in usable}
    best = min(alone.values())
    found = [
        Split(general, special, condition, best - both)
        for general in usable
        for special in usable
        if special is not general
        for condition, both in _conditions(cases, _times(general, cases), _times(special, cases), sizes)
        if best - both >= least_gain
    ]
    return min(found, key=_order, default=None)


def _order(split: Split) -> tuple[float, int, str, str, str]:
    # Of equals the default is the variant of the fewest changes: it assumes the least of unseen sizes.
    general = split.general
    return (
        -round(split.gain, 6),
        len(general.lineage.steps),
        general.candidate.digest,
        split.special.candidate.digest,
        split.condition.text,
    )


def _conditions(
    cases: Sequence[Case], general: Mapping[int, float], special: Mapping[int, float], sizes: Sizes
) -> Iterator[tuple[SizeCondition, float]]:
    """Yield every condition that separates some timed cases, with the whole log time that it gives."""
    names = set.intersection(*(set(sizes[case.index]) for case in cases))
    for name in sorted(names):
        values = sorted({sizes[case.index][name] for case in cases})
        for lower, upper in pairwise(values):
            for condition in (SizeCondition(name, "small", lower), SizeCondition(name, "large", upper)):
                chosen = {
                    case.index: special[case.index]
                    if holds(condition, sizes[case.index][name])
                    else general[case.index]
                    for case in cases
                }
                yield condition, _whole(cases, chosen)


def holds(condition: SizeCondition, value: int) -> bool:
    """Return whether a size meets a condition."""
    return value <= condition.bound if condition.side == "small" else value >= condition.bound


def _times(member: Member, cases: Sequence[Case]) -> dict[int, float]:
    found = {}
    for case in cases:
        timing = member.evaluation.timing(case.index)
        if timing is not None:
            found[case.index] = timing.median_ms
    return found


def _whole(cases: Sequence[Case], times: Mapping[int, float]) -> float:
    """Return the weighted mean of ln(time), as the judge weighs cases."""
    total = sum(case.weight for case in cases)
    shares = [case.weight / total if total > 0 else 1 / len(cases) for case in cases]
    return sum(share * log(times[case.index]) for share, case in zip(shares, cases, strict=True))
