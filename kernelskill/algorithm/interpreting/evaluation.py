"""Evaluation of expressions over many lanes at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Load,
    Loop,
    Num,
    Poly,
    Reduce,
    Select,
    Sym,
    Unary,
)
from kernelskill.algorithm.interpreting.accumulation import Accumulator
from kernelskill.algorithm.interpreting.frames import Frame, Index, Numbering
from kernelskill.algorithm.interpreting.functions import call
from kernelskill.algorithm.interpreting.literals import literal
from kernelskill.algorithm.interpreting.memory import Memory
from kernelskill.algorithm.interpreting.values import (
    InterpretError,
    Value,
    binary,
    checked,
    convert,
    dtype_of,
    unary,
)
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.types import is_integer

LANES = 1 << 20
"""Most lanes that are evaluated at once."""


class Evaluator:
    """Evaluates expressions on the contents of a memory.

    Args:
        memory: Where loads read.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._numbering = Numbering()

    def value(self, node: Expression, frame: Frame) -> Value:
        """Return the value of an expression in the lanes of a frame, in the type of the node.

        Raises:
            InterpretError: The expression does in some lane what a kernel may not.
        """
        if frame.count == 0:
            return np.zeros(0, dtype_of(node.type))
        number = self._numbering.of(node)
        found = frame.recall(number, node)
        if found is None:
            found = self._computed(node, frame)
            frame.keep(number, found)
        return found

    def pieces(self, loops: tuple[Loop, ...], frame: Frame) -> Iterator[tuple[Frame, Index]]:
        """Yield the iterations of loops, in lexicographic order within a lane, as frames of limited size.

        With every frame comes the lane of `frame` that each iteration belongs to, ascending.
        """
        if not loops:
            yield frame, np.arange(frame.count)
            return
        loop, rest = loops[0], loops[1:]
        lower, upper = (self.bound(limit, frame) for limit in (loop.lower, loop.upper))
        counts = np.maximum(upper - lower, 0)
        ends = np.cumsum(counts)
        total = int(ends[-1]) if frame.count else 0
        for begin in range(0, total, LANES):
            flat = np.arange(begin, min(begin + LANES, total))
            owner = np.searchsorted(ends, flat, side="right")
            variable = lower[owner] + (flat - (ends - counts)[owner])
            inner = Frame(len(flat), {loop.name: variable}, frame, owner)
            for deeper, owners in self.pieces(rest, inner):
                yield deeper, owner[owners]

    def bound(self, limit: Expression, frame: Frame) -> Index:
        """Return the bound of a loop in every lane."""
        value = self.value(limit, frame)
        if not is_integer(limit.type):
            raise InterpretError(f"the bound {show(limit)} of a loop is {limit.type}")
        return np.asarray(np.broadcast_to(value.astype(np.int64), (frame.count,)))

    def lanes(self, conditions: tuple[Expression, ...], frame: Frame) -> Frame:
        """Return the lanes in which all conditions hold; a condition counts where those before it hold."""
        return frame.subset(self.holding(conditions, frame))

    def holding(self, conditions: tuple[Expression, ...], frame: Frame) -> Index:
        """Return which lanes fulfil all conditions."""
        chosen = np.arange(frame.count)
        for condition in conditions:
            held = self._truth(condition, frame.subset(chosen))
            chosen = chosen[held]
        return chosen

    def _truth(self, condition: Expression, frame: Frame) -> Value:
        value = convert(self.value(condition, frame), "bool")
        return np.broadcast_to(value, (frame.count,))

    def _computed(self, node: Expression, frame: Frame) -> Value:
        match node:
            case Sym():
                return _kept(frame.symbol(node.name), node)
            case Num():
                return literal(node.text, node.kind)
            case Poly():
                return self._polynomial(node, frame)
            case Load():
                return self._memory.load(node.buffer, self.value(node.index, frame), node.kind)
            case Binary() if node.op in ("&&", "||"):
                return self._logic(node, frame)
            case Select():
                return self._selection(node.condition, node.first, node.second, node.type, frame)
            case Reduce():
                return self._reduction(node, frame)
            case Fold():
                return self._fold(node, frame)[node.index]
        return self._operation(node, frame)

    def _operation(self, node: Expression, frame: Frame) -> Value:
        values = [self.value(child, frame) for child in node.children]
        kinds = [child.type for child in node.children]
        match node:
            case Binary():
                result = binary(node.op, values[0], values[1], (kinds[0], kinds[1]), node.kind)
                return convert(result, node.kind)
            case Unary():
                return unary(node.op, values[0], node.kind)
            case Cast():
                return convert(values[0], node.kind)
            case Call():
                return call(node.function, values, kinds, node.kind)
        raise InterpretError(f"no meaning for {type(node).__name__}")

    def _polynomial(self, node: Poly, frame: Frame) -> Value:
        total = np.asarray(0, np.int64)
        for atoms, factor in node.terms:
            term = np.asarray(factor, np.int64)
            for atom in atoms:
                term = term * self.value(atom, frame).astype(np.int64)
            total = total + term
        return checked(total, node.kind, lambda: show(node))

    def _logic(self, node: Binary, frame: Frame) -> Value:
        left = convert(self.value(node.left, frame), "bool")
        decided = node.op == "||"  # the value of the left side that settles it
        if left.ndim == 0:
            settled = bool(left) is decided
            value = np.asarray(decided) if settled else convert(self.value(node.right, frame), "bool")
            return convert(value, node.kind)
        result = left.copy()
        rest = np.flatnonzero(left != decided)
        result[rest] = self._truth(node.right, frame.subset(rest))
        return convert(result, node.kind)

    def _selection(
        self, condition: Expression, first: Expression, second: Expression, kind: str, frame: Frame
    ) -> Value:
        truth = convert(self.value(condition, frame), "bool")
        if truth.ndim == 0 or truth.all() or not truth.any():
            side = first if bool(truth.flat[0]) else second
            return convert(self.value(side, frame), kind)
        result = np.empty(frame.count, dtype_of(kind))
        for side, held in ((first, truth), (second, ~truth)):
            lanes = np.flatnonzero(held)
            result[lanes] = convert(self.value(side, frame.subset(lanes)), kind)
        return result

    def _reduction(self, node: Reduce, frame: Frame) -> Value:
        initial = convert(self.value(node.initial, frame), node.kind)
        total = np.array(np.broadcast_to(initial, (frame.count,)))
        accumulator = Accumulator(node.op, node.kind, node.body.type)
        for inner, owner in self.pieces(node.loops, frame):
            body = np.broadcast_to(self.value(node.body, inner), (inner.count,))
            accumulator.combine(total, owner, body)
        return total

    def _fold(self, node: Fold, frame: Frame) -> list[Value]:
        """Return the last values of all states, and remember them for the other states' nodes."""
        kinds = [state.kind for state in node.states]
        states = [
            np.array(np.broadcast_to(convert(self.value(initial, frame), kind), (frame.count,)))
            for initial, kind in zip(node.initials, kinds, strict=True)
        ]
        for inner, owner in self.pieces(node.loops, frame):
            for lanes in _turns(owner):
                names = {
                    state.name: values[owner[lanes]]
                    for state, values in zip(node.states, states, strict=True)
                }
                step = Frame(len(lanes), names, inner, lanes)
                fresh = [self.value(update, step) for update in node.updates]
                for values, update, kind in zip(states, fresh, kinds, strict=True):
                    values[owner[lanes]] = convert(update, kind)
        for index, values in enumerate(states):
            sibling = Fold(node.loops, node.states, node.initials, node.updates, index)
            frame.keep(self._numbering.of(sibling), values)
        return states


def _turns(owner: Index) -> Iterator[Index]:
    """Yield the first iteration of every lane, then every lane's second, and so on."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    lengths = np.diff(starts, append=len(owner))
    for turn in range(int(lengths.max(initial=0))):
        yield starts[lengths > turn] + turn


def _kept(value: Value, node: Sym) -> Value:
    """Return the value of a symbol in the type that the node says; integers must not change by that."""
    result = convert(value, node.kind)
    if is_integer(node.kind) and np.any(result.astype(np.int64) != value.astype(np.int64)):
        raise InterpretError(f"{node.name!r} does not fit {node.kind}")
    return result
