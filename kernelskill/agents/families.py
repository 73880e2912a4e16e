"""Families: the same steps with their parameters left open.

A slate offers a family once, by its most promising point; whoever chooses it searches the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from kernelskill.schema.candidate import Step
from kernelskill.schema.proposal import Choice, Skill, SkillParameter
from kernelskill.skills.apply import FoundStep

MOST_ENUMERATED = 4096
"""Points that are put in order at once; of larger spaces the later values are left out."""

Values = tuple[str, ...]
"""A point: one value for each choice."""


@dataclass(frozen=True)
class Family:
    """Steps at the first values of their parameters, and what may be chosen instead."""

    steps: tuple[Step, ...]
    choices: tuple[Choice, ...]
    reason: str


def site_families(skill: Skill, found: Sequence[FoundStep]) -> list[Family]:
    """Return a family for every site, chains over all sites of a kernel first.

    What is slow in one place of a kernel is often slow in its neighbours too, and mending one of
    them gains nothing.
    """
    sites: dict[str, FoundStep] = {}
    for each in found:
        sites.setdefault(each.step.site, each)
    single = [
        _family([each], each.site.parameters or skill.parameters, each.site.reason) for each in sites.values()
    ]
    return [*_chains(skill, list(sites.values())), *single]


def steps_at(steps: Sequence[Step], choices: Sequence[Choice], values: Values) -> tuple[Step, ...]:
    """Return the steps of one point."""
    changed: list[dict[str, str]] = [dict(step.parameters) for step in steps]
    for choice, value in zip(choices, values, strict=True):
        for position in choice.steps:
            changed[position][choice.name] = value
    return tuple(
        step.model_copy(update={"parameters": tuple(sorted(parameters.items()))})
        for step, parameters in zip(steps, changed, strict=True)
    )


def points(choices: Sequence[Choice], limit: int) -> list[Values]:
    """Return points of a space, the most promising first.

    Values are listed best first, so a point's place is the sum of its values' places.
    """
    lengths = [len(choice.values) for choice in choices]
    while _size(lengths) > MOST_ENUMERATED:
        lengths[lengths.index(max(lengths))] -= 1
    places = sorted(product(*(range(length) for length in lengths)), key=lambda place: (sum(place), place))
    return [
        tuple(choice.values[i] for choice, i in zip(choices, place, strict=True)) for place in places[:limit]
    ]


def values_of(choices: Sequence[Choice], steps: Sequence[Step]) -> Values:
    """Return the point at which steps stand."""
    return tuple(dict(steps[choice.steps[0]].parameters)[choice.name] for choice in choices)


def neighbours(choices: Sequence[Choice], values: Values) -> list[Values]:
    """Return the points that differ from a point in one value, nearer values first."""
    found = [
        (abs(place - choice.values.index(values[at])), (*values[:at], value, *values[at + 1 :]))
        for at, choice in enumerate(choices)
        for place, value in enumerate(choice.values)
        if value != values[at]
    ]
    return [point for _, point in sorted(found, key=lambda pair: pair[0])]


def place_of(choices: Sequence[Choice], values: Values) -> int:
    """Return how far down its lists a point's values stand, together."""
    return sum(choice.values.index(value) for choice, value in zip(choices, values, strict=True))


def far_points(choices: Sequence[Choice]) -> list[Values]:
    """Return the middle and the far end of a space: what suits sizes that the first values do not suit."""
    middle = tuple(choice.values[len(choice.values) // 2] for choice in choices)
    far = tuple(choice.values[-1] for choice in choices)
    first = tuple(choice.values[0] for choice in choices)
    return [values for values in dict.fromkeys((middle, far)) if values != first]


def size_of(choices: Sequence[Choice]) -> int:
    """Return the number of points."""
    return _size([len(choice.values) for choice in choices])


def shifted(choices: Sequence[Choice], by: int) -> tuple[Choice, ...]:
    """Return the choices of steps that stand behind `by` others."""
    return tuple(
        choice.model_copy(update={"steps": tuple(position + by for position in choice.steps)})
        for choice in choices
    )


def _size(lengths: Sequence[int]) -> int:
    size = 1
    for length in lengths:
        size *= length
    return size


def _chains(skill: Skill, sites: Sequence[FoundStep]) -> list[Family]:
    chains = []
    for kernel in dict.fromkeys(each.site.kernel for each in sites):
        own = [each for each in sites if each.site.kernel == kernel]
        shared = _shared_parameters([each.site.parameters or skill.parameters for each in own])
        if len(own) > 1 and shared is not None:
            chains.append(_family(own, shared, f"{len(own)} places at once: {own[0].site.reason}"))
    return chains


def _shared_parameters(lists: Sequence[Sequence[SkillParameter]]) -> tuple[SkillParameter, ...] | None:
    """Return the parameters with the values that all sites take; None where they have none in common."""
    shared = []
    for parameter in lists[0]:
        others = [next((p.values for p in other if p.name == parameter.name), ()) for other in lists[1:]]
        values = tuple(value for value in parameter.values if all(value in other for other in others))
        if not values:
            return None
        shared.append(parameter.model_copy(update={"values": values}))
    same = all({p.name for p in other} == {p.name for p in lists[0]} for other in lists[1:])
    return tuple(shared) if same else None


def _family(sites: Sequence[FoundStep], parameters: Sequence[SkillParameter], reason: str) -> Family:
    first = tuple(sorted((parameter.name, parameter.values[0]) for parameter in parameters))
    positions = tuple(range(len(sites)))
    return Family(
        steps=tuple(each.step.model_copy(update={"parameters": first}) for each in sites),
        choices=tuple(
            Choice(name=parameter.name, values=parameter.values, steps=positions)
            for parameter in parameters
            if len(parameter.values) > 1
        ),
        reason=reason,
    )
