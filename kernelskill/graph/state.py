"""State of one round: ids and plain values only, so that any checkpointer can keep it."""

from __future__ import annotations

from operator import add
from typing import Annotated, TypedDict


class RoundState(TypedDict, total=False):
    """What the nodes of a round hand on."""

    round: int
    bases: list[str]
    """Digests of the frontier members that this round starts from."""
    offers: Annotated[list[str], add]
    """Names of the specialists' offers, as they return."""
    slate: str
    pending: list[str]
    """Ids of the proposals to evaluate next."""
    judged: Annotated[list[str], add]
    """Ids of the proposals judged so far."""
    accepted: Annotated[list[str], add]
    """Those of them that gained on their base."""
    combining: bool
    """Whether what is pending are combinations."""
    turn: int
    """Position of the present slate in the round."""
    fresh: bool
    """Whether there is something to rank since a model was asked."""


class SpecialistTask(TypedDict):
    """What one specialist is sent."""

    round: int
    specialist: str
    base: str


def initial_state(number: int, bases: list[str]) -> RoundState:
    """Return the state a round starts with."""
    return {
        "round": number,
        "bases": bases,
        "offers": [],
        "slate": "",
        "pending": [],
        "judged": [],
        "accepted": [],
        "combining": False,
        "turn": 0,
        "fresh": False,
    }
