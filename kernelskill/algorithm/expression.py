"""Expressions of a lifted kernel: frozen, hashable, equal where two spellings mean the same.

Integer arithmetic that cannot wrap is kept as `Poly`, a polynomial over atoms, so that
`row * n + k` is one object in any spelling. Everything else keeps its C meaning, types included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar, dataclass_transform

from kernelskill.algorithm.types import joined
from kernelskill.computed import computed

_Node = TypeVar("_Node")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def _node(cls: type[_Node]) -> type[_Node]:
    """Make a frozen dataclass that computes its hash and its text once: expressions are deep, every memo asks for
    the one, and whatever is sorted for the other.
    """
    made = dataclass(frozen=True)(cls)
    generated = made.__hash__, made.__eq__, made.__repr__

    def remembered(node: object) -> int:
        known: int | None = node.__dict__.get("_hash")
        if known is None:
            known = node.__dict__["_hash"] = generated[0](node)
        return known

    def same(node: object, other: object) -> bool:
        if node is other:
            return True
        if other.__class__ is not node.__class__:
            return False
        return remembered(node) == hash(other) and bool(generated[1](node, other))

    def text(node: object) -> str:
        known: str | None = node.__dict__.get("_text")
        if known is None:
            known = node.__dict__["_text"] = generated[2](node)
        return known

    for name, method in (("__hash__", remembered), ("__eq__", same), ("__repr__", text)):
        setattr(made, name, method)
    return made


@_node
class Expression:
    """Base of all nodes."""

    @property
    def type(self) -> str:
        """The canonical C type (`algorithm.types`)."""
        raise NotImplementedError

    @property
    def children(self) -> tuple[Expression, ...]:
        """The operands, those of ranges included."""
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the node with other operands; use `rewriting.rebuild`, which keeps integers in their form."""
        return self

    @computed
    def key(self) -> str:
        """A text that tells nodes apart; orders factors and terms."""
        return repr(self)

    @computed
    def size(self) -> int:
        """How many nodes it has as a tree, equal ones counted as often as they occur."""
        return 1 + sum(child.size for child in self.children)

    @computed
    def symbols(self) -> frozenset[str]:
        """Names of the symbols inside; those bound by a `Reduce` or `Fold` inside are not free and left out."""
        return frozenset().union(*(child.symbols for child in self.children))

    def depends_on(self, *names: str) -> bool:
        """Whether one of the symbols occurs freely."""
        return not self.symbols.isdisjoint(names)


@_node
class Sym(Expression):
    """A scalar parameter, an axis, or the state of a `Fold`."""

    name: str
    kind: str = field(default="int", compare=False)

    @property
    def type(self) -> str:
        return self.kind

    @computed
    def symbols(self) -> frozenset[str]:
        return frozenset({self.name})


@_node
class Num(Expression):
    """A literal or named constant that is not an integer, as the user wrote it: `0.5f`, `INFINITY`."""

    text: str
    kind: str

    @property
    def type(self) -> str:
        return self.kind


Monomial = tuple[Expression, ...]


@_node
class Poly(Expression):
    """A sum of products of atoms (integer expressions) with integer coefficients, in one fixed order.

    Build it with `integers.poly` and the operations there, never directly.
    """

    terms: tuple[tuple[Monomial, int], ...]
    kind: str = field(default="int", compare=False)

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return tuple(dict.fromkeys(atom for monomial, _ in self.terms for atom in monomial))


@_node
class Load(Expression):
    """An element of a buffer as it was when the kernel began."""

    buffer: str
    index: Expression
    kind: str

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.index,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, index=children[0])


COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
LOGICAL = frozenset({"&&", "||"})


@_node
class Binary(Expression):
    """An operation of C. Of integers only what a polynomial cannot say: `/ % & | ^ << >>`, and what may wrap."""

    op: str
    left: Expression
    right: Expression
    kind: str
    """Type of the result; `bool` for comparisons and logic."""

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)


@_node
class Unary(Expression):
    """`-x` of a float, `!x`, `~x`."""

    op: str
    operand: Expression
    kind: str

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, operand=children[0])


@_node
class Call(Expression):
    """A call of a pure function of CUDA: `expf`, `min`, `__half2float`."""

    function: str
    arguments: tuple[Expression, ...]
    kind: str

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, arguments=children)


@_node
class Select(Expression):
    """`condition ? first : second`; only the chosen side is evaluated."""

    condition: Expression
    first: Expression
    second: Expression

    @property
    def type(self) -> str:
        first, second = self.first.type, self.second.type
        return first if first == second else joined(first, second)

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.condition, self.first, self.second)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return Select(*children)


@_node
class Cast(Expression):
    """Conversion to another type."""

    kind: str
    operand: Expression

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, operand=children[0])


@_node
class Loop:
    """A loop variable with its half-open range, taken in steps of one."""

    name: str
    lower: Expression
    upper: Expression
    kind: str = field(default="int", compare=False)
    """Type of the variable in the source."""

    @property
    def symbol(self) -> Sym:
        """The variable as an expression."""
        return Sym(self.name, self.kind)


COMBINERS = {
    # op of a Reduce -> what it does to the accumulator `a` and a value `b`
    "+": "a + b",
    "*": "a * b",
    "fmax": "fmaxf(a, b)",
    "fmin": "fminf(a, b)",
    "max": "b > a ? b : a",
    "min": "b < a ? b : a",
    "&": "a & b",
    "|": "a | b",
    "^": "a ^ b",
    "&&": "a && b",
    "||": "a || b",
}
"""`max` and `min` are the ternaries (for floats they differ from `fmax` on NaN; for integers they are both)."""


@_node
class Reduce(Expression):
    """An accumulator over loops: starts at `initial`, takes `body` in lexicographic order of the loops.

    Inner loops' ranges may depend on outer variables. A sum of sums that the user keeps in an
    accumulator of its own is a Reduce inside the body of another: association is part of the meaning.
    """

    op: str
    loops: tuple[Loop, ...]
    body: Expression
    initial: Expression
    kind: str
    """Type of the accumulator."""

    @property
    def type(self) -> str:
        return self.kind

    @property
    def children(self) -> tuple[Expression, ...]:
        ranges = tuple(bound for loop in self.loops for bound in (loop.lower, loop.upper))
        return (*ranges, self.body, self.initial)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        loops = _with_ranges(self.loops, children)
        return replace(self, loops=loops, body=children[-2], initial=children[-1])

    @computed
    def symbols(self) -> frozenset[str]:
        return _free(self.loops, self.body.symbols) | self.initial.symbols


@_node
class Fold(Expression):
    """One state of a general recurrence over loops; each step computes all states from the states before.

    For what is not a single associative accumulator: arg-max, Welford, online softmax, Horner's scheme.
    Equal recurrences with different `index` belong together and run in one loop.
    """

    loops: tuple[Loop, ...]
    states: tuple[Sym, ...]
    """Names under which `updates` read the states; bound here."""
    initials: tuple[Expression, ...]
    updates: tuple[Expression, ...]
    index: int
    """Which state is the value."""

    @property
    def type(self) -> str:
        return self.states[self.index].type

    @property
    def children(self) -> tuple[Expression, ...]:
        ranges = tuple(bound for loop in self.loops for bound in (loop.lower, loop.upper))
        return (*ranges, *self.initials, *self.updates)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        loops, count = _with_ranges(self.loops, children), len(self.states)
        rest = children[2 * len(loops) :]
        return replace(self, loops=loops, initials=rest[:count], updates=rest[count:])

    @computed
    def symbols(self) -> frozenset[str]:
        inner = frozenset().union(*(update.symbols for update in self.updates))
        free = _free(self.loops, inner - {state.name for state in self.states})
        return free.union(*(initial.symbols for initial in self.initials))


def _with_ranges(loops: tuple[Loop, ...], children: tuple[Expression, ...]) -> tuple[Loop, ...]:
    return tuple(
        Loop(loop.name, children[2 * position], children[2 * position + 1], loop.kind)
        for position, loop in enumerate(loops)
    )


def _free(loops: tuple[Loop, ...], inner: frozenset[str]) -> frozenset[str]:
    """Return the free symbols of something inside loops, ranges included."""
    for loop in reversed(loops):
        inner = (inner - {loop.name}) | loop.lower.symbols | loop.upper.symbols
    return inner


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield a node and everything below it, parents first; equal nodes as often as they occur."""
    left = [expression]
    while left:
        node = left.pop()
        yield node
        left.extend(reversed(node.children))


def loads(expression: Expression) -> tuple[Load, ...]:
    """Return the loads inside, each once, in order of first occurrence."""
    return tuple(dict.fromkeys(node for node in walk(expression) if isinstance(node, Load)))


def reductions(expression: Expression) -> tuple[Reduce | Fold, ...]:
    """Return the reductions and folds inside, each once, outer ones first."""
    return tuple(dict.fromkeys(node for node in walk(expression) if isinstance(node, Reduce | Fold)))
