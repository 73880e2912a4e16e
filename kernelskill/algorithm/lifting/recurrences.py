"""What a loop carries from one iteration to the next: reductions where the form is known, else folds."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Expression,
    Fold,
    Loop,
    Num,
    Poly,
    Reduce,
    Select,
    Sym,
)
from kernelskill.algorithm.lifting.arithmetic import negative, number, zero_of
from kernelskill.algorithm.rewriting import replace_outermost, substitute
from kernelskill.algorithm.types import is_float, is_integer, is_signed, size_of

_EXTREMA = {"fmaxf": "fmax", "fmax": "fmax", "fminf": "fmin", "fmin": "fmin", "max": "max", "min": "min"}


@dataclass(frozen=True)
class Step:
    """One accumulator's step: `accumulator = accumulator op body`, over further loops inside."""

    op: str
    body: Expression
    loops: tuple[Loop, ...] = ()


def recognise(end: Expression, state: Sym, initial: Expression) -> Step | None:
    """Return the step that turns a state into its value after an iteration; None for no known reduction.

    The association of the source is kept: `(s + a) + b` is no single step of floating-point numbers.
    """
    match end:
        case Poly():
            return _polynomial(end, state)
        case Binary():
            return _binary(end, state)
        case Call():
            return _call(end, state)
        case Select():
            return _select(end, state, initial)
        case Reduce():
            inside = (end.body, *(bound for loop in end.loops for bound in (loop.lower, loop.upper)))
            if end.initial == state and not any(part.depends_on(state.name) for part in inside):
                return Step(end.op, end.body, end.loops)
    return None


def _polynomial(end: Poly, state: Sym) -> Step | None:
    factor = integers.coefficient(end, state.name)
    if factor is None:
        return None
    rest = integers.without(end, state.name)
    if integers.value_of(factor) == 1:
        return Step("+", rest)
    if integers.value_of(rest) == 0 and integers.value_of(factor) != 0:
        return Step("*", factor)
    return None


def _sides(left: Expression, right: Expression, state: Sym) -> Expression | None:
    """Return the other of two operands, one of which must be the state itself."""
    for own, other in ((left, right), (right, left)):
        if own == state and not other.depends_on(state.name):
            return other
    return None


def _binary(end: Binary, state: Sym) -> Step | None:
    other = _sides(end.left, end.right, state)
    if end.op in ("+", "*", "&", "|", "^", "&&", "||") and other is not None:
        return Step(end.op, other)
    if end.op == "-" and end.left == state and other is not None:
        return Step("+", negative(other, {}))
    if is_integer(end.kind) and end.op in ("+", "*", "&", "|", "^"):
        return _integer_chain(end, state)
    return None


def _integer_chain(end: Binary, state: Sym) -> Step | None:
    """Return the step of `(s + a) + b`: modular arithmetic associates."""
    for own, other in ((end.left, end.right), (end.right, end.left)):
        if own.depends_on(state.name) and not other.depends_on(state.name):
            inner = recognise(own, state, integers.constant(0, end.kind))
            if inner is not None and inner.op == end.op and not inner.loops:
                return Step(end.op, Binary(end.op, inner.body, other, end.kind))
    return None


def _call(end: Call, state: Sym) -> Step | None:
    if end.function in _EXTREMA and len(end.arguments) == 2:
        other = _sides(end.arguments[0], end.arguments[1], state)
        return Step(_EXTREMA[end.function], other) if other is not None else None
    if end.function in ("fmaf", "fma") and end.arguments[2] == state:
        first, second, _ = end.arguments
        if not first.depends_on(state.name) and not second.depends_on(state.name):
            return Step("+", Binary("*", first, second, end.kind))
    return None


def _select(end: Select, state: Sym, initial: Expression) -> Step | None:
    extremum = _extremum(end, state)
    if extremum is not None:
        return extremum
    if not end.condition.depends_on(state.name):
        return _masked(end.condition, end.first, end.second, state, initial)
    parts = integers.conjuncts(end.condition)
    free = [part for part in parts if not part.depends_on(state.name)]
    bound = [part for part in parts if part.depends_on(state.name)]
    if free and end.second == state:
        inner = integers.selected(integers.conjunction(bound), end.first, state)
        return _masked(integers.conjunction(free), inner, state, state, initial)
    return None


def _masked(
    test: Expression, first: Expression, second: Expression, state: Sym, initial: Expression
) -> Step | None:
    """Return the step of `test ? step : state`: a neutral value where the test says no."""
    if second == state:
        step = recognise(first, state, initial)
    elif first == state:
        step = recognise(second, state, initial)
    else:
        return None
    neutral = neutral_for(step.op, state.kind, initial) if step is not None else None
    if step is None or neutral is None:
        return None
    sides = (step.body, neutral) if second == state else (neutral, step.body)
    return Step(step.op, integers.selected(test, *sides), step.loops)


def _extremum(end: Select, state: Sym) -> Step | None:
    """Recognise `x > s ? x : s` and its mirror image; other forms differ on NaN and signed zeros."""
    test = end.condition
    if not isinstance(test, Binary) or {end.first, end.second} != {test.left, test.right}:
        return None
    other = _sides(test.left, test.right, state)
    if other is None or test.op not in ("<", "<=", ">", ">="):
        return None
    wants_greater = (test.op[0] == ">") == (test.left == end.first)
    exact = end.first == other and test.op in ("<", ">")
    if exact or is_integer(state.kind):
        return Step("max" if wants_greater else "min", other)
    return None


def neutral_for(op: str, kind: str, initial: Expression) -> Expression | None:
    """Return the value that leaves an accumulator as it is, whatever it holds after such a start."""
    if op == "+":
        return zero_of(kind, negative=is_float(kind) and not _is_never_negative_zero(initial))
    if op == "*":
        return number(1, kind)
    if op in ("|", "^", "||"):
        return integers.constant(0, kind)
    if op in ("max", "min") and is_integer(kind):
        bits = 8 * size_of(kind)
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(kind) else (0, (1 << bits) - 1)
        return integers.constant(low if op == "max" else high, kind)
    if op in ("max", "min", "fmax", "fmin") and kind in ("float", "double"):
        is_number = isinstance(initial, Num) and "NAN" not in initial.text
        if op in ("max", "min") or is_number:
            return Num("-INFINITY" if op.endswith("max") else "INFINITY", kind)
    return None


def _with_plain_zero(body: Expression, kind: str) -> Expression:
    """Return a masked summand with 0 where it has -0: all the same for a sum that never is -0."""
    if isinstance(body, Select):
        sides = _with_plain_zero(body.first, kind), _with_plain_zero(body.second, kind)
        return integers.selected(body.condition, *sides)
    return zero_of(kind) if body == zero_of(kind, negative=True) else body


def joined_with(op: str, first: Expression, second: Expression) -> Expression:
    """Return one step of a reduction."""
    kind = second.type
    if op in ("max", "min") and is_integer(kind):
        return Call(op, (first, second), kind)
    if op == "+" and is_integer(kind) and is_signed(kind):
        return integers.add(first, second)
    return Binary(op, first, second, kind)


def neutral_of(op: str, kind: str) -> Expression | None:
    """Return what a reduction of a type starts from when nothing is reduced yet."""
    return neutral_for(op, kind, zero_of(kind))


def _is_never_negative_zero(initial: Expression) -> bool:
    """Whether a sum that starts here can't become -0: it starts at a literal other than -0."""
    return isinstance(initial, Num) and not (initial.text.startswith("-") and _is_zero(initial.text))


def _is_zero(text: str) -> bool:
    return not any(character in "123456789" for character in text.lower().split("e")[0])


@dataclass
class Carried:
    """Something that a loop carries: a variable or a cell of memory."""

    state: Sym
    initial: Expression | None
    end: Expression
    """Its value after one iteration, in terms of the states before it."""


@dataclass
class Closer:
    """Gives the values that a loop carries, after any number of iterations."""

    loop: Loop
    carried: dict[str, Carried]
    fresh: dict[str, int]
    _scopes: dict[Expression, tuple[Loop, dict[str, Sym]]] = field(default_factory=dict)

    def at(self, name: str, upper: Expression) -> Expression | None:
        """Return a state after the iterations below `upper`; None where it had no value to start with."""
        entry = self.carried[name]
        inside = self._needed(name)
        if not inside:
            return self._last(entry, upper)
        if entry.initial is None:
            return None
        if inside == {name}:
            step = recognise(entry.end, entry.state, entry.initial)
            if step is not None:
                loop, _ = self._scope(upper)
                return self._reduce(step, loop, entry)
        return self._fold(name, inside, upper)

    def _reduce(self, step: Step, loop: Loop, entry: Carried) -> Expression:
        renamed = {self.loop.name: loop.symbol}
        inner = tuple(
            Loop(each.name, substitute(each.lower, renamed), substitute(each.upper, renamed), each.kind)
            for each in step.loops
        )
        initial = entry.initial if entry.initial is not None else entry.state
        body = substitute(step.body, renamed)
        if step.op == "+" and is_float(entry.state.kind) and _is_never_negative_zero(initial):
            body = _with_plain_zero(body, entry.state.kind)
        return Reduce(step.op, (loop, *inner), body, initial, entry.state.kind)

    def _last(self, entry: Carried, upper: Expression) -> Expression:
        """Return what the last iteration gave; without any iteration, what was there before."""
        before = integers.add(upper, integers.constant(1), -1)
        last = substitute(entry.end, {self.loop.name: before})
        if entry.initial is None:
            return last
        test = integers.compared("<", self.loop.lower, upper)
        return integers.selected(test, last, entry.initial)

    def _needed(self, name: str) -> set[str]:
        """Return the states that a state depends on, directly or not."""
        found: set[str] = set()
        todo = [name]
        while todo:
            used = {s for s in self.carried[todo.pop()].end.symbols if s in self.carried}
            todo += [s for s in used if s not in found]
            found |= used
        return found | {name} if found else found

    def _fold(self, name: str, inside: set[str], upper: Expression) -> Expression | None:
        loop, states = self._scope(upper)
        ordered = [key for key in self.carried if key in inside]
        initials = [self.carried[key].initial for key in ordered]
        if any(initial is None for initial in initials):
            return None
        renamed: dict[str, Expression] = {self.loop.name: loop.symbol, **states}
        updates = tuple(substitute(self.carried[key].end, renamed) for key in ordered)
        return Fold(
            (loop,),
            tuple(states[key] for key in ordered),
            tuple(initial for initial in initials if initial is not None),
            updates,
            ordered.index(name),
        )

    def _scope(self, upper: Expression) -> tuple[Loop, dict[str, Sym]]:
        """Return the loop and the states' names for a bound: the loop's own where it runs to its end."""
        if upper not in self._scopes:
            name = self.loop.name
            if upper != self.loop.upper:
                name = self._fresh(name)
            loop = Loop(name, self.loop.lower, upper, self.loop.kind)
            states = {
                key: Sym(self._fresh(key.lstrip("%")), entry.state.kind)
                for key, entry in self.carried.items()
            }
            self._scopes[upper] = (loop, states)
        return self._scopes[upper]

    def _fresh(self, name: str) -> str:
        base = name.split("@")[0]
        count = self.fresh.get(base, 0)
        self.fresh[base] = count + 1
        return f"{base}@{count}"

    def replaced(self, expression: Expression) -> Expression | None:
        """Return an expression of one iteration with the states it starts from written out.

        A value at the iteration's end becomes a reduction up to and with this iteration.
        """
        here: Expression = self.loop.symbol
        following = integers.add(here, integers.constant(1))
        ends = {
            entry.end: key for key, entry in self.carried.items() if entry.end.symbols & self.carried.keys()
        }
        missing: list[str] = []

        def change(node: Expression) -> Expression | None:
            key, upper = ends.get(node), following
            if key is None and isinstance(node, Sym) and node.name in self.carried:
                key, upper = node.name, here
            if key is None:
                return None
            value = self.at(key, upper)
            if value is None:
                missing.append(key)
            return value

        changed = replace_outermost(expression, change)
        return None if missing else changed
