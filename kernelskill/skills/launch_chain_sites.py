"""Sites that are chains of launches: their keys, and finding them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.launches import LaunchSite


class Chain(Protocol):
    """Launches in a row."""

    @property
    def launches(self) -> tuple[LaunchSite, ...]:
        """In their order."""


_Chain = TypeVar("_Chain", bound=Chain)


def keyed(chains: Sequence[_Chain]) -> dict[str, _Chain]:
    """Return chains by the names of their kernels, those that are alike by number."""
    found: dict[str, _Chain] = {}
    counts: dict[str, int] = {}
    for chain in chains:
        key = "/with:".join(launch.kernel for launch in chain.launches)
        counts[key] = counts.get(key, 0) + 1
        found[key + (f"#{counts[key]}" if counts[key] > 1 else "")] = chain
    return found


def at(chains: dict[str, _Chain], key: str) -> _Chain:
    """Return the chain of a key.

    Raises:
        SkillRefused: It is gone.
    """
    if key not in chains:
        raise SkillRefused(f"the launches of {key!r} are gone")
    return chains[key]
