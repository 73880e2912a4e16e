"""Lanes: the points and iterations over which expressions are evaluated side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kernelskill.algorithm.expression import Expression, Num, Poly, Sym
from kernelskill.algorithm.interpreting.values import InterpretError, Value

Index = NDArray[np.int64]


class Numbering:
    """Gives equal expressions, types included, one number, however often they were built."""

    def __init__(self) -> None:
        self._by_object: dict[int, int] = {}
        self._by_shape: dict[tuple[object, ...], int] = {}
        self._kept: list[Expression] = []

    def of(self, node: Expression) -> int:
        """Return the number of an expression."""
        known = self._by_object.get(id(node))
        if known is None:
            shape = (type(node).__name__, node.type, _own(node, self), *map(self.of, node.children))
            known = self._by_shape.setdefault(shape, len(self._by_shape))
            self._by_object[id(node)] = known
            self._kept.append(node)  # an id is good as long as its object lives
        return known


def _own(node: Expression, numbering: Numbering) -> tuple[object, ...]:
    """Return what tells a node apart besides its type and its operands."""
    match node:
        case Sym():
            return (node.name,)
        case Num():
            return (node.text,)
        case Poly():
            return tuple((tuple(map(numbering.of, atoms)), factor) for atoms, factor in node.terms)
    loops = tuple(loop.name for loop in getattr(node, "loops", ()))
    states = tuple((state.name, state.kind) for state in getattr(node, "states", ()))
    named = tuple(getattr(node, name, None) for name in ("buffer", "op", "function", "index"))
    return (*(value for value in named if isinstance(value, str | int)), loops, states)


class Frame:
    """Some lanes with the values of symbols in them.

    Args:
        count: How many lanes.
        values: Symbols bound here.
        parent: The lanes that these came from.
        index: For every lane the one of the parent that it belongs to.
    """

    def __init__(
        self,
        count: int,
        values: Mapping[str, Value],
        parent: Frame | None = None,
        index: Index | None = None,
    ) -> None:
        self.count = count
        self._bound = frozenset(values)
        self._values = dict(values)
        self._parent, self._index = parent, index
        self._known: dict[int, Value] = {}

    def symbol(self, name: str) -> Value:
        """Return the value of a symbol in every lane.

        Raises:
            InterpretError: Nothing binds it.
        """
        found = self._values.get(name)
        if found is None:
            if self._parent is None:
                raise InterpretError(f"no value for {name!r}")
            found = self._values[name] = self._taken(self._parent.symbol(name))
        return found

    def keep(self, number: int, value: Value) -> None:
        """Remember the value of an expression."""
        self._known[number] = value

    def recall(self, number: int, node: Expression) -> Value | None:
        """Return the value of an expression that was evaluated here or, all symbols alike, further out."""
        found = self._known.get(number)
        if found is None and self._parent is not None and self._bound.isdisjoint(node.symbols):
            outer = self._parent.recall(number, node)
            if outer is not None:
                found = self._known[number] = self._taken(outer)
        return found

    def subset(self, lanes: Index) -> Frame:
        """Return some of the lanes."""
        return Frame(len(lanes), {}, self, lanes)

    def _taken(self, value: Value) -> Value:
        return value if value.ndim == 0 or self._index is None else value[self._index]
