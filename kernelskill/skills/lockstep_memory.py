"""Elements of a shared array: what they hold, and which threads touched them since the last barrier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.expression_types import plain_type
from kernelskill.skills.lockstep_values import Mask, Numbers, Value
from kernelskill.source.declarations import VariableDef
from kernelskill.source.syntax import Node


@dataclass(frozen=True)
class Read:
    """What one evaluation of an element found."""

    node: Node = field(repr=False)
    mask: Mask
    places: Numbers | None
    """None where they can't be told."""
    value: Value


class Elements:
    """The elements of one array."""

    length: int
    memory: Value
    threads: Numbers
    writer: Numbers
    """The thread that wrote an element since the last barrier, -1 for none, their number for any."""
    reader: Numbers
    """The same of reads."""

    def begin(self, size: int, length: int) -> None:
        """Take an array that nothing is known of, in a block of some threads."""
        self.length = length
        self.memory = values.unknown(length)
        self.threads = np.arange(size, dtype=np.int64)
        self.meet()

    def meet(self) -> None:
        """Forget who touched which element: all threads are at a barrier."""
        self.writer = np.full(self.length, -1, np.int64)
        self.reader = np.full(self.length, -1, np.int64)

    def lose_array(self) -> None:
        """Take the array for unknown, written by any threads since the last barrier."""
        self.memory = values.unknown(self.length)
        self.writer[:] = len(self.threads)

    def note_read(self, places: Numbers, mask: Mask) -> bool:
        """Note which threads read which elements; return whether another thread may have just written one."""
        taken, threads = places[mask], self.threads[mask]
        writers = self.writer[taken]
        raced = bool(((writers >= 0) & (writers != threads)).any())
        many = (self.reader[taken] >= 0) & (self.reader[taken] != threads)
        self.reader[taken] = np.where(many, len(self.threads), threads)
        counts = np.bincount(taken, minlength=self.length)
        self.reader[counts > 1] = len(self.threads)
        return raced

    def has_raced(self, places: Numbers, mask: Mask) -> bool:
        """Whether elements that threads are about to write are touched by others."""
        taken, threads = places[mask], self.threads[mask]
        touched = (self.writer[taken], self.reader[taken])
        raced = any(((by >= 0) & (by != threads)).any() for by in touched)
        return raced or len(np.unique(taken)) != len(taken)

    def put(self, places: Numbers, stored: Value, mask: Mask) -> None:
        """Store what each thread of a mask has at its place."""
        taken = places[mask]
        self.writer[taken] = self.threads[mask]
        source = np.zeros(self.length, np.int64)
        source[taken] = np.flatnonzero(mask)
        written = np.zeros(self.length, np.bool_)
        written[taken] = True
        self.memory = values.select(written, stored.at(source), self.memory)


def element_kind(array: VariableDef, bindings: Mapping[str, str]) -> str:
    """Return the plain type of an array's elements."""
    return plain_type(bindings.get(array.base_type, array.base_type))
