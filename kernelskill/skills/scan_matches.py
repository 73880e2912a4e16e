"""Recognise a scan by what was computed: each thread's result holds the elements up to its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kernelskill.skills import lockstep_values as values
from kernelskill.skills.lockstep_expressions import Block
from kernelskill.skills.lockstep_values import Mask, Value
from kernelskill.skills.shared_scans import Found, Group

_SHARES = (4, 2, 1)


class Matcher:
    """Compares the state of a block with what a scan would have made of it."""

    def __init__(self, state: Block, groups: Sequence[Group], contents: int) -> None:
        """Remember the state before the scan.

        Args:
            state: Of the block; it is looked at again later.
            groups: The elements that statements before brought into the array.
            contents: First of the elements that lay in the array.
        """
        self.state, self.groups, self.contents = state, groups, contents
        self.threads = state.size
        self.entry: Mapping[int, Value] = dict(state.scalars)

    def results(self, start: int) -> Found | None:
        """Return what the statements run so far computed; None where it is no scan yet."""
        if self.state.way is None:
            return None
        for group in self._groups():
            found = self._match(group, start)
            if found is not None:
                return found
        return None

    def _groups(self) -> Iterator[Group]:
        yield from self.groups
        for key, first in self.state.variables.items():
            yield Group(first, self.threads, None, self.state.names[key], 0)
        for share in _SHARES:
            size = share * self.threads
            for at in range(0, self.state.length - size + 1, self.state.extents[-1]):
                yield Group(self.contents + at, size, None, None, at)

    def _match(self, group: Group, start: int) -> Found | None:
        inclusive = values.running_parts(group.size, group.first)
        memory = self._match_memory(group, inclusive)
        scalars = {}
        if group.size == self.threads:
            for key, value in self.state.scalars.items():
                outside = self.state.names[key].name_span.start < start
                changed = outside and value is not self.entry.get(key)
                which = self.which(value, inclusive, np.ones(self.threads, np.bool_)) if changed else ""
                if which in ("inclusive", "exclusive"):
                    scalars[key] = which
        if memory is None and not scalars:
            return None
        return Found(group, inclusive, memory, scalars)

    def _match_memory(self, group: Group, inclusive: Value) -> tuple[int, bool] | None:
        """Return where in the array the results lie, and whether they are exclusive."""
        memory, length = self.state.memory, self.state.length
        for is_exclusive in (False, True):
            rest = inclusive.at(np.arange(group.size - is_exclusive))
            last = rest.at(np.full(length, len(rest.kind) - 1))
            for end in np.flatnonzero(values.is_same(memory, last)):
                first = int(end) + 1 - rest.size
                at = first - is_exclusive
                if at < 0 or not values.is_same(memory.at(np.arange(first, first + rest.size)), rest).all():
                    continue
                if not is_exclusive or self._is_neutral(memory.at(np.array([at]))):
                    return at, is_exclusive
        return None

    def _is_neutral(self, value: Value) -> bool:
        way = self.state.way
        return way is not None and bool(values.is_neutral(value, way.operator, self.state.kind).all())

    def which(self, value: Value, inclusive: Value, mask: Mask) -> str:
        """Return what values of the threads of a mask are of a scan of one element a thread."""
        if len(inclusive.kind) != self.threads or not mask.any():
            return ""
        if values.is_same(value, inclusive)[mask].all():
            return "inclusive"
        before = inclusive.at(np.maximum(self.state.threads - 1, 0))
        same = values.is_same(value, before) & (self.state.threads > 0)
        way = self.state.way
        neutral = values.is_neutral(value, way.operator, self.state.kind) if way is not None else same
        if (same | (neutral & (self.state.threads == 0)))[mask].all():
            return "exclusive"
        total = inclusive.at(np.full(self.threads, self.threads - 1))
        return "total" if values.is_same(value, total)[mask].all() else ""
