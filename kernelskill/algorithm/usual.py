"""Usual sizes: values that parameters have where the user times, a hint for the order of choices.

Nothing that is emitted relies on them: every emitted kernel works for all sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log2

from kernelskill.algorithm.expression import Expression, Loop
from kernelskill.algorithm.integers import constant, subtract, value_of
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.rewriting import substitute


def with_usual(
    algorithm: Algorithm, values: Sequence[tuple[str, Expression]], sizes: Mapping[str, int]
) -> Algorithm:
    """Return an algorithm whose integer parameters know what they usually are.

    Args:
        algorithm: What the kernel computes.
        values: Its integer parameters -> their values in the launcher's terms.
        sizes: Names that these use for the launcher's scalars -> their values in a timed case.
    """
    known = {name: constant(size) for name, size in sizes.items()}
    usual = {name: value_of(substitute(value, known)) for name, value in values}
    parameters = tuple(replace(p, usual=usual.get(p.name)) for p in algorithm.parameters)
    return replace(algorithm, parameters=parameters)


def usual_length(algorithm: Algorithm, loops: Sequence[Loop]) -> int | None:
    """Return the steps of the longest of some loops in a timed case; None where that is unknown."""
    known = {p.name: constant(p.usual) for p in algorithm.parameters if p.usual is not None}
    lengths = [value_of(substitute(subtract(loop.upper, loop.lower), known)) for loop in loops]
    return max((length for length in lengths if length is not None), default=None)


def nearest_first(values: Sequence[str], wanted: float) -> tuple[str, ...]:
    """Return numbers in the order of their distance from a wanted one, as factors; equal ones keep their order."""
    return tuple(sorted(values, key=lambda value: abs(log2(int(value) / wanted))))
