"""The frontier: the few candidates that stay alive. Ties stay, since many ladders need a level step."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.schema.run import Member

TIE_BAND = 0.03
"""A member this near below the best, as a share of its speedup, counts as level with it."""


def best_member(frontier: Sequence[Member]) -> Member:
    """Return the fastest proven member; of equals the one with fewer steps, then the shorter source."""
    return min((member for member in frontier if member.proven), key=_order)


def updated_frontier(
    frontier: Sequence[Member], newcomers: Sequence[Member], size: int
) -> tuple[Member, ...]:
    """Return the frontier after a round, best first.

    The best proven one always stays and comes first. Of the rest, the level ones come first and then the next best; a member
    that was reached by the same skills as an earlier one yields to one that was not.

    Args:
        frontier: Members before the round, a proven one among them.
        newcomers: Right candidates of the round that were not slower than their base.
        size: How many to keep.
    """
    unique = {member.candidate.digest: member for member in (*newcomers, *frontier)}
    best = best_member(list(unique.values()))
    ordered = [best, *sorted((m for m in unique.values() if m is not best), key=_order)]
    kept = ordered[:1]
    seen = {_skills(member) for member in kept}
    repeats: list[Member] = []
    for member in ordered[1:]:
        (repeats if _skills(member) in seen else kept).append(member)
        seen.add(_skills(member))
    return tuple((kept + repeats)[:size])


def is_level(member: Member, best: Member) -> bool:
    """Return whether a member is as fast as the best within the tie band."""
    return member.speedup >= best.speedup * (1 - TIE_BAND)


def _order(member: Member) -> tuple[float, int, int, str]:
    return (-member.speedup, len(member.lineage.steps), len(member.candidate.source), member.candidate.digest)


def _skills(member: Member) -> frozenset[tuple[str, str]]:
    return frozenset((step.skill, step.site) for step in member.lineage.steps)
