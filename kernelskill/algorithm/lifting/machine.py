"""State of the symbolic execution of one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Loop
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lifting.arithmetic import condition, convert
from kernelskill.algorithm.lifting.bounds import decided, narrowed
from kernelskill.algorithm.lifting.partials import Group
from kernelskill.algorithm.lifting.types import TypeTable
from kernelskill.algorithm.lifting.values import (
    Aggregate,
    Array,
    Pointer,
    Poison,
    Slot,
    Value,
    Variable,
    scalars_of,
    with_scalar,
)
from kernelskill.algorithm.model import CannotLift, Store
from kernelskill.algorithm.types import joined
from kernelskill.source.definitions import FunctionDef
from kernelskill.source.preprocessor import MacroDef
from kernelskill.source.syntax import SyntaxTree
from kernelskill.source.unit import SourceUnit

RETURNED = "%return"
"""Name of the variable that takes what an inlined function returns."""


@dataclass(frozen=True)
class Read:
    """A load that one iteration of a loop made."""

    buffer: str
    index: Expression
    kind: str


@dataclass(frozen=True)
class Named:
    """What the user called an expression."""

    expression: Expression
    name: str
    kind: str


@dataclass(frozen=True)
class Snapshot:
    """Everything that executing a statement may change."""

    scopes: tuple[dict[str, int], ...]
    slots: dict[int, Value | None]
    stores: tuple[Store, ...]
    path: tuple[Expression, ...]
    loops: tuple[Loop, ...]
    named: tuple[Named, ...]


@dataclass
class Machine:
    """One thread of a launch, or the host on its way to the launch."""

    unit: SourceUnit
    types: TypeTable
    builtins: dict[str, Expression]
    """`threadIdx.x` and the like; empty on the host."""
    syntax: SyntaxTree
    headers: tuple[SourceUnit, ...] = ()
    """Local headers that the file includes."""
    scopes: list[dict[str, int]] = field(default_factory=lambda: [{}])
    slots: dict[int, Value | None] = field(default_factory=dict)
    variables: dict[int, Variable] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    path: tuple[Expression, ...] = ()
    loops: tuple[Loop, ...] = ()
    ranges: dict[str, tuple[Expression, Expression]] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)
    named: list[Named] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    strided: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Loop that the threads share -> the builtin indices it uses up."""
    shared_reads: list[Read] = field(default_factory=list)
    dynamic_shared: int | None = None
    """Where the array in the block's dynamic memory is declared; there may be one only."""
    groups: dict[Expression, Group] = field(default_factory=dict)
    """What reductions over threads are joined from."""
    fresh_names: dict[str, int] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    """Functions being inlined."""
    outer_scopes: list[dict[str, int]] = field(default_factory=list)
    """Scopes of the place that called the function being inlined."""
    loops_at_call: int = 0
    """Loops round the call being inlined."""
    exited: bool = False
    """Whether the last statements ended by `return` or `continue`."""
    evaluator: Callable[[Machine, Node], Value] | None = None
    """Evaluates expressions; this and the next are set by whoever builds the machine."""
    runner: Callable[[Machine, Node], None] | None = None
    """Executes the body of an inlined function."""

    @property
    def units(self) -> tuple[SourceUnit, ...]:
        """The file and its headers."""
        return (self.unit, *self.headers)

    def macro(self, name: str) -> MacroDef | None:
        """Return the macro of that name."""
        return next((m for unit in self.units if (m := unit.macro(name)) is not None), None)

    def functions(self) -> list[tuple[SourceUnit, FunctionDef]]:
        """Return the device and host functions of the file and its headers."""
        return [(unit, function) for unit in self.units for function in unit.functions]

    def text(self, node: Node) -> str:
        """Return the original text of a node of the tree being read."""
        return self.syntax.text_of(node)

    def refuse(self, node: Node | None, reason: str) -> CannotLift:
        """Return the refusal with the line where it happened."""
        if node is not None and self.syntax is self.unit.syntax:
            return CannotLift(f"line {self.unit.line_of(node)}: {reason}")
        return CannotLift(reason)

    def value(self, node: Node) -> Value:
        """Return the value of an expression."""
        if self.evaluator is None:
            raise self.refuse(node, "expressions are not understood here")
        return self.evaluator(self, node)

    def number(self, node: Node) -> Expression:
        """Return the value of an expression that must be a scalar."""
        value = self.value(node)
        if not isinstance(value, Expression):
            raise self.refuse(node, f"{self.text(node)!r} is used as a number")
        return value

    @contextmanager
    def reading(self, syntax: SyntaxTree) -> Iterator[None]:
        """Read nodes of another tree, such as the expansion of a macro."""
        before, self.syntax = self.syntax, syntax
        try:
            yield
        finally:
            self.syntax = before

    # -- names

    def find(self, name: str) -> int | None:
        """Return the number of the variable that a name means here."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, variable: Variable, value: Value | None) -> int:
        """Add a variable to the innermost scope."""
        number = len(self.variables)
        self.variables[number] = variable
        self.scopes[-1][variable.name] = number
        self.slots[number] = value
        return number

    def fresh(self, base: str) -> str:
        """Return a name for a loop that no other loop has."""
        count = self.fresh_names.get(base, 0)
        self.fresh_names[base] = count + 1
        return f"{base}@{count}"

    def scalar_at(self, slot: Slot) -> Value | None:
        """Return the value of a variable, or of one scalar of it."""
        value = self.slots[slot[0]]
        if slot[1] is None:
            return value
        parts = scalars_of(value)
        return parts[slot[1]] if parts is not None else None

    def set_scalar(self, slot: Slot, value: Value | None) -> None:
        """Set a variable, or one scalar of it."""
        number, part = slot
        if part is None:
            self.slots[number] = value
            return
        whole = self.slots[number]
        if not isinstance(whole, Aggregate | Array) or not (value is None or isinstance(value, Expression)):
            raise CannotLift(f"{self.variables[number].name} is used in a way that is not understood")
        self.slots[number] = with_scalar(whole, part, value)

    def kind_of(self, slot: Slot) -> str:
        """Return the scalar type of a variable."""
        return self.variables[slot[0]].layout.kind

    def name_value(self, variable: Variable, value: Value | None) -> None:
        """Remember what the user calls an expression."""
        if isinstance(value, Expression) and not self.calls and not variable.is_pointer:
            self.named.append(Named(value, variable.name, variable.layout.kind))

    # -- branches

    def snapshot(self) -> Snapshot:
        """Return a copy of what statements change."""
        return Snapshot(
            tuple(dict(scope) for scope in self.scopes),
            dict(self.slots),
            tuple(self.stores),
            self.path,
            self.loops,
            tuple(self.named),
        )

    def restore(self, saved: Snapshot) -> None:
        """Go back to a copy."""
        self.scopes = [dict(scope) for scope in saved.scopes]
        self.slots = dict(saved.slots)
        self.stores = list(saved.stores)
        self.path, self.loops = saved.path, saved.loops
        self.named = list(saved.named)

    def holds(self, test: Expression) -> bool | None:
        """Return what the conditions on the way say of a condition; None where they say nothing."""
        known = integers.value_of(test)
        if known is not None:
            return bool(known)
        if test in self.path:
            return True
        if integers.negated(test) in self.path:
            return False
        if all(part in self.path for part in integers.conjuncts(test)):
            return True
        return decided(test, self.here()) if self.builtins else None

    def here(self) -> Ranges:
        """Return the ranges of symbols as the conditions on the way narrow them."""
        return narrowed(self.ranges, self.path)

    def choose(self, test: Expression, first: Value | None, second: Value | None) -> Value | None:
        """Return `test ? first : second` of any kind of value."""
        if first == second or second is None or isinstance(second, Poison):
            return first
        if first is None or isinstance(first, Poison):
            return second
        if isinstance(first, Pointer) and isinstance(second, Pointer):
            if (first.buffer, first.layout) != (second.buffer, second.layout):
                return Poison("a pointer points at one buffer or another")
            offset = select(test, first.offset, second.offset)
            return Pointer(first.buffer, offset, first.layout)
        if isinstance(first, Aggregate) and isinstance(second, Aggregate):
            return Aggregate(first.layout, self._choose_parts(test, first.parts, second.parts))
        if isinstance(first, Array) and isinstance(second, Array):
            return Array(first.layout, first.shape, self._choose_parts(test, first.cells, second.cells))
        if isinstance(first, Expression) and isinstance(second, Expression):
            return select(test, first, second)
        return Poison("a variable holds different kinds of values")

    def _choose_parts(
        self, test: Expression, first: tuple[Expression | None, ...], second: tuple[Expression | None, ...]
    ) -> tuple[Expression | None, ...]:
        chosen = [self.choose(test, a, b) for a, b in zip(first, second, strict=True)]
        return tuple(part if isinstance(part, Expression) else None for part in chosen)


def select(test: Expression, first: Expression, second: Expression) -> Expression:
    """Return `test ? first : second` with the two sides of one type."""
    if first.type != second.type:
        kind = joined(first.type, second.type)
        first, second = convert(first, kind), convert(second, kind)
    return integers.selected(condition(test), first, second)
