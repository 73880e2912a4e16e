"""Buffers of a kernel: loads see them as they were at entry, stores go to a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelskill.algorithm.interpreting.frames import Index
from kernelskill.algorithm.interpreting.values import InterpretError, Value, convert, dtype_of, is_floating
from kernelskill.algorithm.model import Algorithm, Store

_ATOMIC: dict[str, np.ufunc] = {
    "+": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
}


class Memory:
    """The buffers before and after.

    Args:
        algorithm: Whose pointer parameters they are.
        arrays: Contents by name; of any shape, flat inside.

    Raises:
        InterpretError: One is missing or has another element type than its parameter.
    """

    def __init__(self, algorithm: Algorithm, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
        self._before: dict[str, Value] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for parameter in algorithm.parameters:
            if not parameter.is_pointer:
                continue
            if parameter.name not in arrays:
                raise InterpretError(f"no array for the pointer {parameter.name!r}")
            array = np.asarray(arrays[parameter.name])
            if array.dtype != dtype_of(parameter.kind):
                raise InterpretError(f"{parameter.name!r} is {parameter.kind}, its array {array.dtype}")
            self._before[parameter.name] = array.reshape(-1)
            self._shapes[parameter.name] = array.shape
        self._after = {name: array.copy() for name, array in self._before.items()}
        self._writers: dict[str, Index] = {}

    def load(self, buffer: str, index: Value, kind: str) -> Value:
        """Return elements as they were at entry.

        Raises:
            InterpretError: One lies outside, or the buffer has another type.
        """
        array = self._buffer(buffer, kind)
        _check(f"reads {buffer}", array, index)
        return np.asarray(array[index.astype(np.int64)])

    def store(self, store: Store, index: Value, value: Value, points: Index) -> None:
        """Write elements, in the order of the lanes.

        Args:
            store: Says where and how.
            index: Element of every lane, or one for all.
            value: Value of every lane, or one for all.
            points: Which point of the parallel space every lane belongs to.

        Raises:
            InterpretError: One lies outside, or two points write different values to one element.
        """
        array = self._buffer(store.buffer, store.kind)
        _check(f"writes {store.buffer}", array, index)
        places = np.broadcast_to(index.astype(np.int64), points.shape)
        values = np.broadcast_to(convert(value, store.kind), points.shape)
        after = self._after[store.buffer]
        if store.mode == "=":
            self._assign(store.buffer, places, values, points)
        elif store.mode in ("max", "min") and is_floating(after):
            raise InterpretError(f"no atomic {store.mode} of {store.kind}")
        else:
            _ATOMIC[store.mode].at(after, places, values)

    def _assign(self, buffer: str, places: Index, values: Value, points: Index) -> None:
        after = self._after[buffer]
        writers = self._writers.setdefault(buffer, np.full(len(after), -1, np.int64))
        foreign = (writers[places] >= 0) & (writers[places] != points) & ~_same(after[places], values)
        after[places] = values
        conflict = foreign | ~_same(after[places], values)
        if conflict.any():
            place = int(places[conflict][0])
            raise InterpretError(f"different points write different values to {buffer}[{place}]")
        writers[places] = points

    def result(self) -> dict[str, Value]:
        """Return the buffers as they are now, in the shapes they came in."""
        return {name: array.reshape(self._shapes[name]) for name, array in self._after.items()}

    def _buffer(self, name: str, kind: str) -> Value:
        array = self._before.get(name)
        if array is None:
            raise InterpretError(f"no buffer {name!r}")
        if array.dtype != dtype_of(kind):
            raise InterpretError(f"{name!r} is accessed as {kind} but holds {array.dtype}")
        return array


def _check(what: str, array: Value, index: Value) -> None:
    if index.size and (index.min() < 0 or index.max() >= len(array)):
        wrong = index.min() if index.min() < 0 else index.max()
        raise InterpretError(f"{what}[{wrong}] of {len(array)} elements")


def _same(a: Value, b: Value) -> Value:
    """Whether elements are the same bits, NaN in any form being one."""
    return np.asarray((a == b) | ((a != a) & (b != b)))
