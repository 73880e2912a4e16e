"""Coordinator: routes by bottleneck, shares out the slate and plans combinations. Rules, no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelskill.schema.base import Record
from kernelskill.schema.profile import Bottleneck, BottleneckKind
from kernelskill.schema.proposal import Skill


class Route(Record):
    """What one specialist is asked for in a round."""

    specialist: str
    weight: float
    """Share of the diagnosis that its skills answer, 0 to 1."""
    reason: str


def route(bottlenecks: Sequence[Bottleneck], skills: Sequence[Skill]) -> list[Route]:
    """Return the specialists to ask, the best fitting first.

    Every specialist with a skill is asked: a diagnosis can be wrong, and asking costs no device
    time. The weight says how much of the diagnosis its skills answer.

    Args:
        bottlenecks: Of the base, the most likely first.
        skills: All skills of the library.
    """
    routes = []
    for specialist in sorted({skill.specialist for skill in skills}):
        known = {kind for skill in skills if skill.specialist == specialist for kind in skill.triggers}
        answered = [b for b in bottlenecks if b.kind in known]
        weight = max((b.confidence for b in answered), default=0.0)
        reason = (
            f"answers {answered[0].kind.value} in {answered[0].kernel}"
            if answered
            else "no named limit is its own"
        )
        routes.append(Route(specialist=specialist, weight=weight, reason=reason))
    return sorted(routes, key=lambda r: (-r.weight, r.specialist))


def nothing_to_fix(bottlenecks: Sequence[Bottleneck]) -> bool:
    """Return whether the first diagnosis says that the kernel is at its roof."""
    return bool(bottlenecks) and bottlenecks[0].kind is BottleneckKind.NONE


def combinations_to_try(
    gains: Mapping[str, float], conflicts: set[frozenset[str]], limit: int
) -> list[tuple[str, ...]]:
    """Return groups of accepted proposals to apply together, the most promising first.

    First everything that goes together, then pairs, lest one change spoil the whole.

    Args:
        gains: ln(speedup) of each accepted proposal of one base, by id.
        conflicts: Pairs that were already tried or cannot be combined.
        limit: How many groups at most.

    Returns:
        (applied first, applied again on its result, ...); the larger gain first.
    """
    ordered = sorted(gains, key=lambda proposal: (-gains[proposal], proposal))
    pairs = [
        (first, second)
        for position, first in enumerate(ordered)
        for second in ordered[position + 1 :]
        if frozenset((first, second)) not in conflicts
    ]
    pairs.sort(key=lambda pair: -(gains[pair[0]] + gains[pair[1]]))
    group: list[str] = []
    for proposal in ordered:
        if all(frozenset((proposal, other)) not in conflicts for other in group):
            group.append(proposal)
    return [*([tuple(group)] if len(group) > 2 else []), *pairs][:limit]
