"""Stages: the kernels that stand in for one, and what the launcher computes and allocates for them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm.expression import Expression, Loop
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.schedule import Schedule


@dataclass(frozen=True)
class Stage:
    """One kernel."""

    algorithm: Algorithm
    schedule: Schedule
    comment: str
    """What it does, for the launcher's reader."""
    loops: tuple[Loop, ...] = ()
    """Loops that are axes now: where one of them has no turns there is nothing to launch."""


@dataclass(frozen=True)
class Temporary:
    """Memory that lives from the first stage to the last."""

    name: str
    kind: str
    size: Expression
    """Number of elements, in the algorithm's parameters and in what the launcher computes."""


@dataclass(frozen=True)
class Cut:
    """A loop whose steps several blocks share, each a stretch of neighbouring ones."""

    loop: Loop
    parts: str
    """Name of the number of stretches."""
    steps: str
    """Name of the length of a stretch."""
    multiple: int
    """Number that divides the length of a stretch."""


@dataclass(frozen=True)
class Sharing:
    """How many blocks share each of several results; computed by the launcher before all stages."""

    rows: Expression
    """Number of results, or of rows of neighbouring ones where a block takes several."""
    row: Expression
    """Neighbouring results of a row; one where each result has blocks of its own."""
    columns: int
    """Neighbouring results of a block."""
    blocks: int
    """Blocks that are aimed at; one result has one at least."""
    cuts: tuple[Cut, ...]
    """Outer loop first: the inner one is cut as far as the outer one is too short."""


@dataclass(frozen=True)
class Stages:
    """All that replaces a launch."""

    stages: tuple[Stage, ...]
    sharings: tuple[Sharing, ...]
    temporaries: tuple[Temporary, ...]
