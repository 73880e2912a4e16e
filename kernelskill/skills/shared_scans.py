"""Scans of a block over a shared array: what one is, and where its elements and results are."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.lockstep_values import Value
from kernelskill.skills.row_accumulators import Way
from kernelskill.source.declarations import VariableDef
from kernelskill.source.scopes import Declared
from kernelskill.source.syntax import Node


@dataclass(frozen=True, eq=False)
class Fill:
    """The statement by which every thread puts its element into the array."""

    statement: Node = field(repr=False)
    value: Node = field(repr=False)


@dataclass(frozen=True, eq=False)
class Scan:
    """A stretch of statements that together take a running result over a block's elements."""

    array: VariableDef
    extents: tuple[int, ...]
    """Of the array; of one that the launch gives its size, as many as can be of interest."""
    kind: str
    way: Way
    threads: int
    share: int
    """Neighbouring elements for each thread."""
    statements: tuple[Node, ...] = field(repr=False)
    """What computes the scan, barriers around it included."""
    block: Node = field(repr=False)
    """The compound statement that they stand in."""
    fill: Fill | None
    """Where the elements are what one statement stores; it is replaced, too."""
    variable: Declared | None
    """Where the elements are what a variable holds."""
    copies: tuple[Node, ...] = field(repr=False)
    """Statements before it that put them into the array, then."""
    first: int
    """Where the elements lie in the array, if there is neither of them."""
    scalars: tuple[tuple[Declared, str], ...]
    """Variables that are changed and used later: `inclusive`, `exclusive`, or a number as text."""
    memory: tuple[int, bool] | None
    """Where in the array the results lie, and whether they are exclusive."""
    reads: tuple[tuple[Node, str], ...]
    """What later reads find, in the order of the text: `inclusive`, `exclusive` or `total`."""
    needs_array: bool
    """Whether something else reads results in the array."""
    waits: bool
    """Whether the elements lie in the array and other threads may have put them there since the last barrier."""
    is_repeated: bool
    """Whether it stands in a loop."""


@dataclass(frozen=True, eq=False)
class Group:
    """Elements that may be those of a scan."""

    first: int
    """Number of the first of them."""
    size: int
    fill: Fill | None
    variable: Declared | None
    at: int
    """Where they lie in the array, if neither brought them."""


@dataclass(frozen=True, eq=False)
class Found:
    """What statements have made of a group of elements."""

    group: Group
    inclusive: Value
    """What an inclusive scan makes of the group."""
    memory: tuple[int, bool] | None
    scalars: dict[int, str]
