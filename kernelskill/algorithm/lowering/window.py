"""Window: elements of one buffer that the points of one thread read, in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.algorithm.access import Footprint, footprint
from kernelskill.algorithm.expression import Expression, Load, Sym
from kernelskill.algorithm.integers import add, constant, terms_of

Row = tuple[int, ...]
"""Coordinates along all dimensions of a footprint but the one of stride one, from the thread's first point."""


@dataclass(frozen=True)
class Window:
    """A box of elements of which each row holds one stretch."""

    name: str
    buffer: str
    kind: str
    loads: frozenset[Load]
    """The loads that it serves."""
    footprint: Footprint
    """Of one of them: strides, and how the axes move."""
    counts: tuple[tuple[str, int], ...]
    """Axes and loops with how many values each takes."""
    stretches: tuple[tuple[Row, range], ...]
    """Columns held of each row, in order of rows."""
    width: int
    """Elements of one wide access."""
    phase: int
    """Elements from an aligned one to column 0."""

    @property
    def unit(self) -> int:
        """Position of the dimension along which columns run."""
        found = self.footprint.unit()
        assert found is not None
        return found

    @property
    def rows(self) -> tuple[int, ...]:
        """Positions of the other dimensions, slowest first."""
        others = [d for d in range(len(self.footprint.dimensions)) if d != self.unit]
        return tuple(sorted(others, key=lambda d: _size(self.footprint.dimensions[d].stride), reverse=True))

    def span(self, position: int) -> range:
        """Return the coordinates that are held along a dimension."""
        if position == self.unit:
            parts = [part for _, part in self.stretches]
        else:
            place = position - (position > self.unit)
            parts = [range(row[place], row[place] + 1) for row, _ in self.stretches]
        return range(min(part.start for part in parts), max(part.stop for part in parts))

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Positions of the dimensions of the array, slowest first: those with more than one coordinate."""
        return tuple(d for d in (*self.rows, self.unit) if len(self.span(d)) > 1)

    def aligned_part(self, stretch: range) -> range:
        """Return the columns of a stretch that wide accesses read."""
        start = stretch.start + -(stretch.start + self.phase) % self.width
        return range(start, start + max(0, stretch.stop - start) // self.width * self.width)

    def places_of(self, load: Load, points: Mapping[str, Expression]) -> list[Expression]:
        """Return where a load finds its element, over loops and the points of axes."""
        own = footprint(load.index, dict(self.counts))
        assert own is not None
        return [
            add(own.dimensions[d].coordinate(points), constant(-self.span(d).start)) for d in self.dimensions
        ]

    def coordinate(self, position: int, firsts: Mapping[str, Sym]) -> Expression:
        """Return the first point's coordinate along a dimension, in elements of its stride."""
        total: Expression = constant(0)
        for name, factor in self.footprint.dimensions[position].coefficients:
            if name in firsts:
                total = add(total, firsts[name], factor)
        return total


def _size(stride: Expression) -> tuple[int, int]:
    ((atoms, factor),) = terms_of(stride).items()
    return len(atoms), factor
