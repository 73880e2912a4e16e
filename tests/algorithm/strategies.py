"""Random algorithms with inputs: what ordinary kernels compute, put together at random.

Accesses lie inside their buffers, points are independent, integer arithmetic is small. So a plain
kernel is a correct kernel, and everything that disagrees with it is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Call, Cast, Expression, Load, walk
from kernelskill.algorithm.model import Algorithm, Axis, Parameter, Store, StoreMode
from kernelskill.algorithm.types import cuda_name, is_integer, joined
from tests.algorithm.accesses import ZERO
from tests.algorithm.choosing import Chooser, Drawn
from tests.algorithm.naive import Style
from tests.algorithm.sample import Sample, Variable
from tests.algorithm.values import Values

STORES = ("plain", "plain", "plain", "permuted", "atomic", "in place", "row", "sentinel")
FAMILIES = ("value", "value", "reduction", "contraction", "contraction", "window")
SIZES = (1, 2, 3, 4, 5, 8, 17, 31, 33)
AXIS_NAMES = ("i", "row", "lane")
OUTPUT_NAMES = ("out", "y", "result")


@dataclass
class Maker(Values):
    """Draws stores."""

    families: tuple[str, ...] = FAMILIES
    """What the values of floating types are."""

    def store(self, number: int, axes: Sequence[Variable]) -> Store:
        kind = self.pick(self.base, self.base, "float", "int")
        mode: StoreMode = "="
        name = OUTPUT_NAMES[number]
        self.outputs.add(name)
        self.kinds[name] = kind
        guard: tuple[Expression, ...] = (
            (self.condition(axes),) if self.pick(True, False, False, False) else ()
        )
        way = self.pick(*STORES)
        if way == "row":
            return self.row(name, kind, axes)
        variables = list(axes)
        if way == "permuted":
            variables = self.shuffled(variables)
        if way == "atomic":
            self.kinds[name] = kind = "int"
            mode = self.pick("+", "max", "min", "|", "&", "^")
            variables = self.some(axes)
        index, shape = self.place(variables)
        if way == "atomic" and variables and self.pick(True, False):
            extent = self.extent()
            table = self.buffer("int", shape, "indices")
            self.indices[table] = extent
            index, shape = Load(table, index, "int"), (extent,)
        self.shapes[name] = shape
        value = self.stored(axes, kind)
        if way == "sentinel" and kind != "int":
            value, is_index = self.sentinel(axes)
            guard = (is_index,)
        if way == "in place":
            old: Expression = Load(name, index, kind)
            old = Call("__half2float", (old,), "float") if kind == "half" else old
            value = (
                integers.add(old, value)
                if kind == "int"
                else Binary("+", old, value, joined(old.type, value.type))
            )
        if kind == "half":
            value = Call("__float2half", (value,), "half")
        return Store(name, index, value, (), guard, mode, kind)

    def row(self, name: str, kind: str, axes: Sequence[Variable]) -> Store:
        """Return a store of a whole row by each point."""
        loops, variables, value = self.normalised(axes)
        index, self.shapes[name] = self.place(variables)
        if kind == "int":
            self.kinds[name] = kind = "float"
        if kind == "half":
            value = Call("__float2half", (value,), "half")
        return Store(name, index, value, loops, (), "=", kind)

    def stored(self, axes: Sequence[Variable], kind: str) -> Expression:
        if kind == "int":
            way = self.pick("integer", "reduction", "position")
            if way == "position":
                found = self.arg_max(axes)
                return (
                    found
                    if is_integer(found.type)
                    else Cast("int", Binary(">", found, self.number(), "bool"))
                )
            reduction = self.reduction(axes, 0) if way == "reduction" else self.integer(axes, 2)
            return reduction if is_integer(reduction.type) else self.integer(axes, 1)
        way = self.pick(*self.families)
        if way == "value":
            return self.value(axes, 3)
        made = {"reduction": self.reduction, "contraction": self.contraction, "window": self.window}
        reduction = made[way](axes)
        if is_integer(reduction.type):
            reduction = Cast("float", reduction)
        if self.pick(True, False):
            return reduction
        epilogue = self.value(axes, 1)
        return Binary(self.pick("+", "*"), reduction, epilogue, joined(reduction.type, epilogue.type))


def sample(choose: Chooser, max_axes: int = 3, families: tuple[str, ...] = FAMILIES) -> Sample:
    """Return a random algorithm with a spelling and inputs."""
    maker = Maker(choose, choose.pick("float", "float", "float", "double", "half"), families=families)
    count = choose.pick(*range(1, max_axes + 1))
    axes = [Variable(AXIS_NAMES[position], maker.extent()) for position in range(count)]
    stores = [maker.store(number, axes) for number in range(choose.pick(1, 1, 1, 2, 3))]
    largest = 8 if count == 3 else 33
    sizes = {name: min(choose.pick(*SIZES), largest) for name in sorted(maker.sized)}
    style = spelling(choose, count)
    read = {buffer for store in stores for buffer in _buffers_read(store)}
    parameters = [*_pointers(maker, style), *_scalars(maker, sizes)]
    algorithm = Algorithm(
        kernel="kernel",
        parameters=tuple(p for p in parameters if not p.is_pointer or p.name in read | maker.outputs),
        axes=tuple(Axis(axis.name, ZERO, axis.extent) for axis in axes),
        stores=tuple(stores),
    )
    return Sample(
        algorithm=algorithm,
        style=style,
        sizes=sizes,
        scalars=dict(maker.scalars),
        shapes=maker.shapes,
        seed=choose.pick(0, 1, 2, 3),
        specials=choose.pick(False, False, True),
        indices=maker.indices,
        sentinels=maker.sentinels,
        offsets=maker.offsets,
    )


def spelling(choose: Chooser, axes: int) -> Style:
    """Return a way to spell a kernel."""
    return Style(
        serial=choose.pick(*range(axes)),
        flat=choose.pick(False, True),
        index=choose.pick("int", "int", "unsigned", "size_t", "long long"),
        early_return=choose.pick(False, True),
        in_memory=choose.pick(False, True),
        branches=choose.pick(False, True),
        loop=choose.pick("for", "for", "while", "inclusive"),
        forward=choose.pick(False, True),
        restrict=choose.pick(False, True),
        block=choose.pick(128, 32, 256),
        reads_first=choose.pick(False, True),
    )


@st.composite
def samples(draw: Any, *, max_axes: int = 3) -> Sample:
    """Draw an algorithm, the way it is spelled and its inputs."""
    return sample(Drawn(draw), max_axes)


def _buffers_read(store: Store) -> set[str]:
    return {node.buffer for e in store.expressions for node in walk(e) if isinstance(node, Load)}


def _pointers(maker: Maker, style: Style) -> list[Parameter]:
    found = []
    for name in maker.shapes:
        kind, is_const = maker.kinds[name], name not in maker.outputs
        words = f"{'const ' if is_const else ''}{cuda_name(kind)}*{' __restrict__' if style.restrict else ''} {name}"
        found.append(Parameter(words, name, kind, True, is_const, style.restrict))
    return found


def _scalars(maker: Maker, sizes: dict[str, int]) -> list[Parameter]:
    real = "double" if maker.base == "double" else "float"
    found = [Parameter(f"{real} {name}", name, real, False) for name in maker.scalars]
    return found + [Parameter(f"int {name}", name, "int", False) for name in sizes]
