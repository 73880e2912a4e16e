"""Random values: arithmetic, choices, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Load,
    Loop,
    Num,
    Reduce,
    Select,
    Sym,
    Unary,
)
from kernelskill.algorithm.types import is_integer, joined
from tests.algorithm.accesses import ZERO, Accesses
from tests.algorithm.sample import Variable

LOOP_NAMES = ("k", "t", "j", "tile", "q", "w")


@dataclass
class Values(Accesses):
    """Draws values."""

    def value(self, scope: Sequence[Variable], depth: int) -> Expression:
        """Return a value of a floating type."""
        ways = ["load", "load", "load"]
        if depth > 0:
            ways += ["binary", "binary", "binary", "call", "select", "negative", "scalar", "number"]
            ways += ["integer", "guarded", "sentinel"] if scope else []
        way = self.pick(*ways)
        if way == "load":
            return self.load(scope) if scope else self.number()
        if way == "binary":
            return self.combined(self.pick("+", "-", "*", "/"), scope, depth)
        if way == "negative":
            operand = self.value(scope, depth - 1)
            return Unary("-", operand, operand.type) if not is_integer(operand.type) else operand
        if way == "scalar":
            self.scalars["alpha"] = 0.75
            return Sym("alpha", "double" if self.base == "double" else "float")
        if way == "integer":
            return Cast("float", self.integer(scope, 1))
        if way == "guarded":
            return self.guarded(scope)
        if way == "sentinel":
            loaded, is_index = self.sentinel(scope)
            return Select(is_index, loaded, self.number())
        if way == "select":
            condition = self.condition(scope)
            first, second = self.value(scope, depth - 1), self.value(scope, depth - 1)
            return first if first == second else Select(condition, first, second)
        return self.call(scope, depth) if way == "call" else self.number()

    def combined(self, op: str, scope: Sequence[Variable], depth: int) -> Expression:
        left, right = self.value(scope, depth - 1), self.value(scope, depth - 1)
        kind = joined(left.type, right.type)
        if is_integer(kind):
            left, kind = Cast("float", left), "float"
        return Binary(op, left, right, kind)

    def call(self, scope: Sequence[Variable], depth: int) -> Expression:
        name = self.pick("fmaxf", "fminf", "fmaf", "sqrtf", "fabsf", "expf")
        first = self.value(scope, depth - 1)
        if name == "sqrtf":
            return Call("sqrtf", (Call("fabsf", (first,), "float"),), "float")
        if name == "expf":
            # The host's own rounding of expf is not ours; a large step hides the last bits.
            return Call("floorf", (Call("fminf", (first, Num("4.0f", "float")), "float"),), "float")
        count = {"fabsf": 1, "fmaf": 3}.get(name, 2)
        return Call(name, (first, *(self.value(scope, depth - 1) for _ in range(count - 1))), "float")

    def integer(self, scope: Sequence[Variable], depth: int) -> Expression:
        """Return a small integer over variables, sizes and integer buffers."""
        way = self.pick("variable", "variable", "load", *(["binary"] * 2 if depth > 0 else []))
        if way == "variable":
            return self.pick(*scope).symbol
        if way == "load":
            index, shape = self.place(self.some(scope))
            return Load(self.buffer("int", shape), index, "int")
        left, right = self.integer(scope, depth - 1), self.integer(scope, depth - 1)
        op = self.pick("+", "-", "*", "/", "%", "&", "<<")
        if op in ("+", "-", "*"):
            made = {"+": integers.add, "-": integers.subtract, "*": integers.multiply}[op]
            return made(left, right)
        if op in ("/", "%"):
            divisor = integers.constant(self.pick(2, 3, 5))
            return (integers.divide if op == "/" else integers.remainder)(left, divisor)
        return Binary(op, left, integers.constant(self.pick(1, 2)), "int")

    def condition(self, scope: Sequence[Variable]) -> Expression:
        way = self.pick("integers", "floats", "both") if scope else "floats"
        if way == "integers":
            op = self.pick("<", "<=", ">", ">=", "==", "!=")
            return Binary(op, self.integer(scope, 1), self.integer(scope, 0), "bool")
        if way == "both":
            return Binary(self.pick("&&", "||"), self.condition(scope), self.condition(scope), "bool")
        return Binary(self.pick("<", ">", ">="), self.value(scope, 0), self.number(), "bool")

    def reduction(self, scope: Sequence[Variable], nested: int = 1) -> Expression:
        """Return an accumulator over one or two loops."""
        loops, inner = self.nest(scope)
        kind = self.pick(self.base, self.base, "float", "double", "int")
        if kind == "half":
            kind = "float"
        if kind == "int":
            op = self.pick("+", "max", "min", "&", "|", "^")
            return Reduce(op, loops, self.integer(inner, 1), self.pick(ZERO, integers.constant(7)), "int")
        body = self.value(inner, 2)
        if nested and self.pick(True, False, False):
            body = Binary("*", body, self.reduction(inner, nested - 1), "")
            body = Binary("*", body.left, body.right, joined(body.left.type, body.right.type))
        op = self.pick("+", "+", "+", "*", "fmax", "max", "min")
        if op == "fmax" and kind == "double":
            op = "max"
        start = Num("0.0f" if kind == "float" else "0.0", kind)
        return Reduce(op, loops, body, start, kind)

    def contraction(self, scope: Sequence[Variable]) -> Reduce:
        """Return a sum of products, each factor over some of the axes."""
        loops, inner = self.nest(scope, plain=True)
        added = inner[len(scope) :]
        factors = []
        for _ in range(self.pick(2, 2, 2, 1, 3)):
            variables = self.shuffled([*self.some(scope), *added])
            index, shape = self.place(variables)
            factors.append(self.read(self.buffer(self.base, shape), index, self.base))
        body = factors[0]
        for factor in factors[1:]:
            body = Binary(self.pick("*", "*", "-"), body, factor, joined(body.type, factor.type))
        if self.pick(True, False, False, False):
            body = Select(self.condition(inner), body, self.number())
        kind = joined(body.type, "float")
        return Reduce(
            self.pick("+", "+", "+", "max"),
            loops,
            body,
            Num("0.0f" if kind == "float" else "0.0", kind),
            kind,
        )

    def window(self, scope: Sequence[Variable]) -> Reduce:
        """Return a sum over a window round the point, nothing counting outside the array."""
        moved = self.choose.some(scope, 1, 2)
        dims = [*(v for v in self.some(scope) if v not in moved), *moved]
        loops, taps, conditions, index = [], [], [], ZERO
        for variable in dims:
            place: Expression = variable.symbol
            if variable in moved:
                tap = self.tap()
                loops.append(Loop(tap.name, ZERO, tap.extent))
                taps.append(tap)
                place = integers.add(integers.add(place, tap.symbol), integers.constant(-1))
                conditions += [
                    integers.compared(">=", place, ZERO),
                    integers.compared("<", place, variable.extent),
                ]
            index = integers.add(integers.multiply(index, variable.extent), place)
        shape = tuple(variable.extent for variable in dims)
        value = self.read(self.buffer(self.base, shape), index, self.base)
        weight_index, weight_shape = self.place(taps)
        weight = self.read(self.buffer(self.base, weight_shape), weight_index, self.base)
        kind = joined(value.type, "float")
        zero = Num("0.0f" if kind == "float" else "0.0", kind)
        body: Expression = Binary("*", value, weight, kind)
        body = Select(integers.conjunction(conditions), body, zero)
        return Reduce("+", tuple(loops), body, zero, kind)

    def tap(self) -> Variable:
        name = f"r{self.loops}"
        self.loops += 1
        return Variable(name, integers.constant(3))

    def normalised(self, scope: Sequence[Variable]) -> tuple[tuple[Loop, ...], list[Variable], Expression]:
        """Return loops over a row and what is stored for each element, from statistics of the whole row."""
        extent = self.extent()
        names = [f"{name}{self.loops}" for name in ("c", "d", "e")]
        self.loops += 1
        rows = [Variable(name, extent) for name in names]
        _, shape = self.place([*scope, rows[0]])
        buffer = self.buffer(self.base, shape)

        def element(column: Variable) -> Expression:
            return self.read(buffer, self.place([*scope, column])[0], self.base)

        kind = joined(element(rows[0]).type, "float")
        zero = Num("0.0f" if kind == "float" else "0.0", kind)
        loops = [Loop(row.name, ZERO, extent) for row in rows]
        op = self.pick("fmax", "max", "+") if kind == "float" else "max"
        first = Reduce(op, (loops[1],), element(rows[1]), zero, kind)
        spread = Binary("-", element(rows[2]), first, kind)
        second = Reduce("+", (loops[2],), Binary("*", spread, spread, kind), zero, kind)
        value = Binary("/", Binary("-", element(rows[0]), first, kind), second, kind)
        return (loops[0],), [*scope, rows[0]], self.pick(value, Binary("*", element(rows[0]), second, kind))

    def nest(self, scope: Sequence[Variable], plain: bool = False) -> tuple[tuple[Loop, ...], list[Variable]]:
        """Return loops, plain or ragged, and the variables in scope inside them."""
        inner = list(scope)
        loops: list[Loop] = []
        for _ in range(self.pick(1, 1, 2)):
            name = LOOP_NAMES[self.loops % len(LOOP_NAMES)] + ("" if self.loops < 6 else str(self.loops))
            self.loops += 1
            way = (
                self.pick("plain", "plain", "plain", "triangle", "ragged") if scope and not plain else "plain"
            )
            outer = self.pick(*scope) if scope else Variable("", ZERO)
            if way == "triangle":
                loops.append(Loop(name, ZERO, integers.add(outer.symbol, integers.constant(self.pick(0, 1)))))
                inner.append(Variable(name, outer.extent))
            elif way == "ragged":
                extent = self.extent()
                size = integers.add(outer.extent, integers.constant(1))
                table = self.buffer("int", (size,), "offsets")
                self.offsets[table] = extent
                after = Load(table, integers.add(outer.symbol, integers.constant(1)), "int")
                loops.append(Loop(name, Load(table, outer.symbol, "int"), after))
                inner.append(Variable(name, extent))
            else:
                extent = self.extent()
                loops.append(Loop(name, ZERO, extent))
                inner.append(Variable(name, extent))
        return tuple(loops), inner

    def arg_max(self, scope: Sequence[Variable]) -> Expression:
        """Return the position of the greatest value, or the value."""
        name = f"k{self.loops}"
        self.loops += 1
        variable = Variable(name, self.extent())
        value = self.load([*scope, variable])
        best, at = Sym(f"best{self.loops}", value.type), Sym(f"at{self.loops}", "int")
        better = Binary(">", value, best, "bool")
        return Fold(
            (Loop(name, ZERO, variable.extent),),
            (best, at),
            (Cast(value.type, Num("-1000.0f", "float")), ZERO),
            (Select(better, value, best), Select(better, variable.symbol, at)),
            self.pick(0, 1),
        )
