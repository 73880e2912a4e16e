"""Search strategies: which members of the frontier a round starts from. One function adds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernelskill.registry import unknown_name
from kernelskill.schema.run import Member
from kernelskill.search.frontier import is_level

Strategy = Callable[[Sequence[Member], Mapping[str, int]], list[Member]]
"""(frontier best first, rounds each digest was already expanded in) -> bases of the next round."""


def beam(frontier: Sequence[Member], expanded: Mapping[str, int]) -> list[Member]:
    """Expand the best member; once it was expanded, a level one beside it that was expanded less."""
    best = frontier[0]
    level = [member for member in frontier[1:] if is_level(member, best)]
    if not expanded.get(best.candidate.digest):
        return [best]
    fresh = [m for m in level if expanded.get(m.candidate.digest, 0) < expanded[best.candidate.digest]]
    return [best, *fresh[:1]]


def greedy(frontier: Sequence[Member], expanded: Mapping[str, int]) -> list[Member]:
    """Expand the best member only."""
    return [frontier[0]]


STRATEGIES: dict[str, Strategy] = {"beam": beam, "greedy": greedy}


def find_strategy(name: str) -> Strategy:
    """Return a strategy by name.

    Raises:
        UnknownNameError: There is none.
    """
    if name not in STRATEGIES:
        raise unknown_name("search strategy", name, STRATEGIES)
    return STRATEGIES[name]
