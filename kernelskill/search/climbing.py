"""Climbing: which points of a family are looked at where a look at each tells how good it is.

One parameter after another: of all points that differ from the best one in one value the best is the next best one.
So every value is looked at beside the best others, and few points of a large space are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernelskill.agents.families import Values, far_points, neighbours
from kernelskill.schema.proposal import Choice

Telling = Callable[[Sequence[Values]], Mapping[Values, float]]
"""Says how good points are, of those of which it can be said; more is better."""


def climbed(choices: Sequence[Choice], start: Values, most: int, tell: Telling) -> list[Values]:
    """Return the points of which something could be told, the best first.

    Args:
        choices: The space.
        start: Where the climb begins; the middle and the far end of the space are looked at, too.
        most: Points that are told of.
        tell: Is asked for several points at once, for none twice.
    """
    best = start
    wave = [start, *far_points(choices)]
    asked: dict[Values, None] = {}
    told: dict[Values, float] = {}
    while True:
        near = dict.fromkeys([*wave, *neighbours(choices, best)])
        wave = [values for values in near if values not in asked][: most - len(asked)]
        asked |= dict.fromkeys(wave)
        told |= tell(wave) if wave else {}
        highest = max(told, key=lambda values: told[values], default=best)
        if not wave or highest == best:
            return sorted(told, key=lambda values: -told[values])
        best, wave = highest, []
