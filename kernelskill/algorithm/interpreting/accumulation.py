"""Accumulators: runs of values combined in their order, many runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelskill.algorithm.interpreting.frames import Index
from kernelskill.algorithm.interpreting.values import InterpretError, Value, binary, convert, fmax, fmin
from kernelskill.algorithm.types import is_integer, joined

_FEW = 64
"""Runs shorter than this are combined column by column."""

Step = Callable[[Value, Value], Value]


class Accumulator:
    """The operation of a reduction.

    Args:
        op: A key of `expression.COMBINERS`.
        kind: Type of the accumulator.
        body_kind: Type of the values.

    Raises:
        InterpretError: There is no such operation.
    """

    def __init__(self, op: str, kind: str, body_kind: str) -> None:
        self.op, self.kind, self.body_kind = op, kind, body_kind
        self._step = self._step_of()

    def combine(self, initial: Value, lanes: Index, values: Value) -> None:
        """Take values into `initial`, in place; `lanes` says to which accumulator each goes, ascending."""
        starts = np.flatnonzero(np.diff(lanes, prepend=-1))
        lengths = np.diff(starts, append=len(lanes))
        for length in np.unique(lengths):
            chosen = starts[lengths == length]
            owners = lanes[chosen]
            if len(chosen) == len(starts):
                block = values.reshape(len(starts), int(length))
            else:
                block = values[chosen[:, None] + np.arange(length)]
            initial[owners] = self._rows(initial[owners], block)

    def _rows(self, start: Value, block: Value) -> Value:
        """Combine every row of a matrix with its accumulator, from left to right."""
        length = block.shape[1]
        if length > _FEW and self._is_plain and self.op in ("+", "*"):
            ufunc = np.add if self.op == "+" else np.multiply
            columns = np.concatenate([start[:, None], convert(block, self.kind)], axis=1)
            return np.asarray(ufunc.accumulate(columns, axis=1, dtype=columns.dtype)[:, -1])
        if length > _FEW and self._is_associative(start, block):
            return self._pairwise(start, block)
        for column in range(length):
            start = self._step(start, block[:, column])
        return start

    def _pairwise(self, start: Value, block: Value) -> Value:
        columns = np.concatenate([start[:, None], convert(block, self.kind)], axis=1)
        while columns.shape[1] > 1:
            even = columns.shape[1] // 2 * 2
            joined_columns = self._step(columns[:, 0:even:2], columns[:, 1:even:2])
            columns = np.concatenate([joined_columns, columns[:, even:]], axis=1)
        return columns[:, 0]

    @property
    def _is_plain(self) -> bool:
        """Whether a step is one rounding of the accumulator's own type; numpy then keeps the order."""
        return self.kind in ("float", "double", "half", "int", "unsigned", "long long") and (
            joined(self.kind, self.body_kind) == self.kind
        )

    def _is_associative(self, start: Value, block: Value) -> bool:
        """Whether any bracketing that keeps the order gives the same bits."""
        if joined(self.kind, self.body_kind) != self.kind:
            return False
        if self.op in ("max", "min") and not is_integer(self.kind):
            return not (np.isnan(start).any() or np.isnan(block).any())
        return self.op not in ("+", "*")

    def _step_of(self) -> Step:
        op, kind, body_kind = self.op, self.kind, self.body_kind
        if op in ("fmax", "fmin"):
            chosen = fmax if op == "fmax" else fmin
            return lambda a, b: chosen(a, convert(b, kind))
        if op in ("max", "min"):
            compare = ">" if op == "max" else "<"

            def ternary(a: Value, b: Value) -> Value:
                replaces = binary(compare, b, a, (body_kind, kind), "bool")
                return np.asarray(np.where(replaces, convert(b, kind), a))

            return ternary
        if op in ("&&", "||"):
            logic: Any = np.logical_and if op == "&&" else np.logical_or
            return lambda a, b: convert(np.asarray(logic(a != 0, b != 0)), kind)
        if op in ("+", "*", "&", "|", "^"):
            return lambda a, b: binary(op, a, b, (kind, body_kind), kind)
        raise InterpretError(f"no reduction {op!r}")
