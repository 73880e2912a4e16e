"""Loops over windows written out: one expression over all their taps."""

from __future__ import annotations

from itertools import product
from math import prod

from kernelskill.algorithm.expression import Binary, Call, Cast, Expression, Fold, Reduce
from kernelskill.algorithm.integers import add, constant, typed, value_of
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.algorithm.types import is_integer, promoted

_MOST_STEPS = 64
"""Steps of a loop that are written out."""


def unrolled(value: Expression) -> Expression:
    """Return a value whose loops over constant ranges are written out.

    Raises:
        IllegalMove: A loop has an unknown number of steps, accumulates floats, or is no plain accumulation.
    """

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Fold):
            raise IllegalMove("a recurrence over a loop")
        return _written_out(node) if isinstance(node, Reduce) else None

    return rebuild(value, change)


def _written_out(node: Reduce) -> Expression:
    if not is_integer(node.kind):
        raise IllegalMove(f"values are {node.kind}, not integers")
    ranges = [(value_of(loop.lower), value_of(loop.upper)) for loop in node.loops]
    steps = [range(low, high) for low, high in ranges if low is not None and high is not None]
    if len(steps) < len(ranges) or prod(map(len, steps)) > _MOST_STEPS:
        raise IllegalMove(f"a loop of an unknown number of steps, or of more than {_MOST_STEPS}")
    found = node.initial
    for place in product(*steps):
        at: dict[str, Expression] = {
            loop.name: constant(number) for loop, number in zip(node.loops, place, strict=True)
        }
        found = _combined(node, found, substitute(node.body, at))
    return found


def _combined(node: Reduce, before: Expression, step: Expression) -> Expression:
    """Return the accumulator after one step, in its own type."""
    kind = promoted(node.kind)
    if node.op == "+":
        after: Expression = typed(add(before, step), kind)
    elif node.op in ("max", "min"):
        after = Call(node.op, (before, step), kind)
    elif node.op in ("&", "|", "^"):
        after = Binary(node.op, before, step, kind)
    else:
        raise IllegalMove(f"a loop that accumulates by {node.op}")
    return after if kind == node.kind else Cast(node.kind, after)
