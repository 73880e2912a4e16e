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


def climbed(choices: Sequence[Choice], order: Sequence[Values], most: int, tell: Telling) -> list[Values]:
    """Return the points of which something could be told, the best first.

    Args:
        choices: The space.
        order: Points in the order in which they are thought of; the first one is where the climb begins.
        most: Points that are told of.
        tell: Is asked for several points at once, for none twice.
    """
    places = {values: place for place, values in enumerate(order)}
    best = order[0]
    wave = [best, *far_points(choices)]
    asked: dict[Values, None] = {}
    told: dict[Values, float] = {}
    while True:
        near = sorted(neighbours(choices, best), key=lambda values: places.get(values, len(places)))
        wave = [values for values in dict.fromkeys([*wave, *near]) if values not in asked]
        wave = wave[: most - len(asked)]
        asked |= dict.fromkeys(wave)
        told |= tell(wave) if wave else {}
        highest = max(told, key=lambda values: told[values], default=best)
        if not wave or highest == best:
            return sorted(told, key=lambda values: -told[values])
        best, wave = highest, []
