"""A random algorithm with its spelling and its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.interpreting.values import dtype_of
from kernelskill.algorithm.model import Algorithm, Parameter
from kernelskill.algorithm.types import is_integer
from tests.algorithm.naive import Style, naive_text


@dataclass(frozen=True)
class Variable:
    """An axis or a loop variable from zero to a size."""

    name: str
    extent: Expression

    @property
    def symbol(self) -> Sym:
        return Sym(self.name)


@dataclass
class Sample:
    """An algorithm, its spelling and what it runs on."""

    algorithm: Algorithm
    style: Style
    sizes: dict[str, int]
    scalars: dict[str, float]
    shapes: dict[str, tuple[Expression, ...]]
    seed: int
    specials: bool
    indices: dict[str, Expression]
    """Integer buffers that hold indices below a size."""
    sentinels: dict[str, Expression]
    """Integer buffers that hold indices below a size, or -1 for none."""
    offsets: dict[str, Expression]
    """Integer buffers that hold ascending offsets up to a size."""

    @property
    def text(self) -> str:
        return naive_text(self.algorithm, self.style)

    def __repr__(self) -> str:
        return f"{self.sizes} {self.scalars} seed={self.seed} {self.style}\n{self.text}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    @property
    def arguments(self) -> dict[str, Any]:
        """Return values of all parameters."""
        return self.values(self.sizes)

    def values(self, sizes: dict[str, int]) -> dict[str, Any]:
        """Return arrays and scalars for some sizes."""
        rng = np.random.default_rng(self.seed)
        values: dict[str, Any] = {}
        for parameter in self.algorithm.parameters:
            if parameter.is_pointer:
                values[parameter.name] = self._array(parameter, sizes, rng)
            else:
                values[parameter.name] = (sizes | self.scalars)[parameter.name]
        return values

    def _array(self, parameter: Parameter, sizes: dict[str, int], rng: np.random.Generator) -> np.ndarray:
        count = 1
        for extent in self.shapes[parameter.name]:
            count *= _size(extent, sizes)
        if parameter.name in self.indices:
            return rng.integers(0, max(_size(self.indices[parameter.name], sizes), 1), count).astype(np.int32)
        if parameter.name in self.sentinels:
            return rng.integers(-1, _size(self.sentinels[parameter.name], sizes), count).astype(np.int32)
        if parameter.name in self.offsets:
            steps = rng.integers(0, 4, count)
            steps[0] = 0
            return np.minimum(np.cumsum(steps), _size(self.offsets[parameter.name], sizes)).astype(np.int32)
        if is_integer(parameter.kind):
            low = -5 if parameter.kind == "int" else 0
            return rng.integers(low, 6, count).astype(dtype_of(parameter.kind))
        array = rng.standard_normal(count)
        if self.specials:
            chosen = rng.random(count) < 0.1
            array[chosen] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], int(chosen.sum()))
        return array.astype(dtype_of(parameter.kind))


def _size(extent: Expression, sizes: dict[str, int]) -> int:
    total = 0
    for atoms, factor in integers.terms_of(extent).items():
        term = factor
        for atom in atoms:
            assert isinstance(atom, Sym)
            term *= sizes[atom.name]
        total += term
    return total
