"""Random buffers and accesses, all inside their bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Call, Expression, Load, Num, Select, Sym
from tests.algorithm.choosing import Chooser
from tests.algorithm.sample import Variable

SIZE_NAMES = ("n", "m", "width")
BUFFER_NAMES = ("x", "in", "a", "weights", "tmp", "smem", "b", "c", "data", "p")
LITERALS = ("0.5f", "2.0f", "-1.25f", "3.0f", "0.1f", "1e-3f", "0.0f")
ZERO = integers.constant(0)


@dataclass
class Accesses:
    """Draws buffers and accesses."""

    choose: Chooser
    base: str
    shapes: dict[str, tuple[Expression, ...]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    indices: dict[str, Expression] = field(default_factory=dict)
    sentinels: dict[str, Expression] = field(default_factory=dict)
    offsets: dict[str, Expression] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)
    loops: int = 0
    sized: set[str] = field(default_factory=set)

    def pick(self, *options: Any) -> Any:
        return self.choose.pick(*options)

    def extent(self, names: Sequence[str] = SIZE_NAMES) -> Expression:
        choice = self.pick(*names, 3)
        if isinstance(choice, int):
            return integers.constant(choice)
        self.sized.add(choice)
        return Sym(choice)

    def buffer(self, kind: str, shape: tuple[Expression, ...], special: str = "") -> str:
        """Return a buffer of a kind and shape, one that is there or a new one."""
        plain = special == "" and self.base
        for name, other in self.shapes.items():
            is_plain = name not in {*self.indices, *self.sentinels, *self.offsets, *self.outputs}
            if plain and is_plain and other == shape and self.kinds[name] == kind and self.pick(True, False):
                return name
        used = set(self.shapes)
        name = next(n for n in (*BUFFER_NAMES, *(f"b{i}" for i in range(40))) if n not in used)
        self.shapes[name], self.kinds[name] = shape, kind
        return name

    def place(self, variables: Sequence[Variable]) -> tuple[Expression, tuple[Expression, ...]]:
        """Return a row-major index over variables in their order, and the shape."""
        index: Expression = ZERO
        for variable in variables:
            index = integers.add(integers.multiply(index, variable.extent), variable.symbol)
        return index, tuple(variable.extent for variable in variables) or (integers.constant(1),)

    def some(self, scope: Sequence[Variable], least: int = 0) -> list[Variable]:
        chosen = self.choose.some(scope, least, 3)
        return chosen if self.pick(True, True, False) else sorted(chosen, key=lambda v: scope.index(v))

    def shuffled(self, variables: Sequence[Variable]) -> list[Variable]:
        return self.choose.some(variables, len(variables), len(variables))

    def load(self, scope: Sequence[Variable]) -> Expression:
        """Return an affine or gathered load, as a float."""
        kind = self.pick(self.base, self.base, self.base, self.pick("float", "double", "half", "int"))
        variables = self.some(scope)
        index, shape = self.place(variables)
        way = self.pick("plain", "plain", "gather", "reversed") if variables else "plain"
        if way == "reversed":
            last = variables[-1]
            flipped = integers.subtract(integers.add(last.extent, integers.constant(-1)), last.symbol)
            index = integers.add(integers.subtract(index, last.symbol), flipped)
        elif way == "gather":
            extent = self.extent()
            table = self.buffer("int", shape, "indices")
            self.indices[table] = extent
            index, shape = Load(table, index, "int"), (extent,)
        return self.read(self.buffer(kind, shape), index, kind)

    def read(self, buffer: str, index: Expression, kind: str) -> Expression:
        loaded = Load(buffer, index, kind)
        return Call("__half2float", (loaded,), "float") if kind == "half" else loaded

    def guarded(self, scope: Sequence[Variable]) -> Expression:
        """Return a load of a neighbour where there is one."""
        variables = self.some(scope, 1)
        shift = self.pick(-1, 1, 2)
        moved = variables[-1]
        inside = integers.add(moved.symbol, integers.constant(shift))
        index, shape = self.place(variables)
        value = self.read(
            self.buffer(self.base, shape), integers.add(index, integers.constant(shift)), self.base
        )
        at_edge = [
            integers.compared("<", inside, ZERO),
            integers.compared(">=", inside, moved.extent),
        ]
        if self.pick(True, False):
            fine = integers.conjunction(integers.negated(condition) for condition in at_edge)
            return Select(fine, value, self.number())
        return Select(Binary("||", at_edge[0], at_edge[1], "bool"), self.number(), value)

    def sentinel(self, scope: Sequence[Variable]) -> tuple[Expression, Expression]:
        """Return a gathered load and the condition under which its index is one."""
        index, shape = self.place(self.some(scope))
        extent = self.extent()
        table = self.buffer("int", shape, "sentinels")
        self.sentinels[table] = extent
        place = Load(table, index, "int")
        is_index = integers.compared(">=", place, ZERO)
        return self.read(self.buffer(self.base, (extent,)), place, self.base), is_index

    def number(self) -> Num:
        text = self.pick(*LITERALS)
        return Num(text.rstrip("f"), "double") if self.base == "double" else Num(text, "float")
