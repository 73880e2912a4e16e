"""Interpreter: what an algorithm makes of given buffers, exactly as C says, in numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.interpreting.evaluation import Evaluator
from kernelskill.algorithm.interpreting.frames import Frame
from kernelskill.algorithm.interpreting.memory import Memory
from kernelskill.algorithm.interpreting.values import InterpretError, Value, convert
from kernelskill.algorithm.model import Algorithm, Store

__all__ = ["InterpretError", "evaluate", "interpret"]

Scalar = int | float | bool | np.generic


def interpret(
    algorithm: Algorithm, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar]
) -> dict[str, NDArray[Any]]:
    """Return every buffer as the kernel leaves it; the arrays given are not changed.

    Operations keep the precision, width and order that the expressions say. Functions such as `expf` give
    the rounded value of the exact result, which a device may miss by its documented error. Atomic
    operations are done in the order of the points.

    Args:
        algorithm: What to carry out.
        arrays: Contents of every pointer parameter, of its element type.
        scalars: Value of every other parameter.

    Raises:
        InterpretError: The algorithm reads or writes outside a buffer, takes arithmetic not to wrap that
            does, divides by zero, or lets two points write different values to one element. Also where
            an array or a scalar is missing, or something has no meaning here.
    """
    values = {name: _scalar(algorithm, name, value) for name, value in scalars.items()}
    with np.errstate(all="ignore"):
        memory = Memory(algorithm, arrays)
        evaluator = Evaluator(memory)
        root = Frame(1, values)
        for store in algorithm.stores:
            _carry_out(store, algorithm, evaluator, memory, root)
        return memory.result()


def evaluate(expression: Expression, scalars: Mapping[str, Scalar]) -> int | float | bool:
    """Return the value of an expression without loads: a size, a bound, an argument of the launch.

    Raises:
        InterpretError: A symbol has no value, or there are loads.
    """
    nothing = Algorithm("", (), (), ())
    with np.errstate(all="ignore"):
        evaluator = Evaluator(Memory(nothing, {}))
        values = {name: np.asarray(value) for name, value in scalars.items()}
        result: int | float | bool = evaluator.value(expression, Frame(1, values)).reshape(-1)[0].item()
        return result


def _scalar(algorithm: Algorithm, name: str, value: Scalar) -> Value:
    """Return a scalar in the type of its parameter."""
    given = np.asarray(value)
    kinds = [p.kind for p in algorithm.parameters if p.name == name and not p.is_pointer]
    return convert(given, kinds[0]) if kinds else given


def _carry_out(store: Store, algorithm: Algorithm, evaluator: Evaluator, memory: Memory, root: Frame) -> None:
    first = 0
    for points, _ in evaluator.pieces(tuple(axis.loop for axis in algorithm.axes), root):
        for inner, owner in evaluator.pieces(store.loops, points):
            chosen = evaluator.holding(store.guard, inner)
            frame = inner if len(chosen) == inner.count else inner.subset(chosen)
            if frame.count:
                index = evaluator.value(store.index, frame)
                value = evaluator.value(store.value, frame)
                memory.store(store, index, value, first + owner[chosen])
        first += points.count
