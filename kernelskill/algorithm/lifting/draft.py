"""An algorithm in the making: stores and axes that later steps change together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Fold, Loop, Reduce, walk
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lifting.machine import Named
from kernelskill.algorithm.model import Axis, Store
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.algorithm.types import is_integer


@dataclass
class Draft:
    """Stores with the axes they range over."""

    stores: list[Store]
    axes: dict[str, Axis]
    named: list[Named]
    notes: list[str] = field(default_factory=list)
    strided: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Loops whose iterations the source spreads over threads -> the builtin indices used up."""

    pinned: set[str] = field(default_factory=set)
    """Thread indices of which one value only does what is left."""

    joined: bool = False
    """Whether threads of a block exchange values in the source."""

    reorders: bool = False
    """Whether sums of floats are taken in another order than the user's."""

    def expressions(self) -> Iterator[Expression]:
        """Yield everything that the stores evaluate."""
        for store in self.stores:
            yield from store.expressions

    def change(self, function: Callable[[Expression], Expression]) -> None:
        """Replace every expression of the stores, and of names."""
        changed = [changed_store(store, function) for store in self.stores]
        self.stores = [s for s in changed if all(integers.value_of(test) is None for test in s.guard)]
        self.named = [replace(entry, expression=function(entry.expression)) for entry in self.named]

    def substitute(self, values: Mapping[str, Expression]) -> None:
        """Replace symbols everywhere, ranges of axes included."""
        self.change(lambda expression: substitute(expression, values))
        self.axes = {
            name: replace(axis, lower=substitute(axis.lower, values), upper=substitute(axis.upper, values))
            for name, axis in self.axes.items()
        }

    def simplify(self) -> None:
        """Resolve divisions that the ranges decide."""
        ranges = self.ranges()
        self.change(lambda expression: resolved(expression, ranges))

    def ranges(self) -> dict[str, tuple[Expression, Expression]]:
        """Return the ranges of axes and loops."""
        found: dict[str, tuple[Expression, Expression]] = {
            name: (axis.lower, axis.upper) for name, axis in self.axes.items()
        }
        for store in self.stores:
            found.update({loop.name: (loop.lower, loop.upper) for loop in store.loops})
            for expression in store.expressions:
                found.update({loop.name: (loop.lower, loop.upper) for loop in loops_in(expression)})
        return found

    def depends_on(self, name: str) -> bool:
        """Whether a symbol is used by a store or a range."""
        bounds = (bound for axis in self.axes.values() for bound in (axis.lower, axis.upper))
        return any(expression.depends_on(name) for expression in (*self.expressions(), *bounds))


def changed_store(store: Store, function: Callable[[Expression], Expression]) -> Store:
    """Return a store with every expression replaced."""
    return replace(
        store,
        index=function(store.index),
        value=function(store.value),
        guard=tuple(
            part
            for test in store.guard
            for part in integers.conjuncts(function(test))
            if not integers.value_of(part)
        ),
        loops=tuple(
            Loop(loop.name, function(loop.lower), function(loop.upper), loop.kind) for loop in store.loops
        ),
    )


def loops_in(expression: Expression) -> Iterator[Loop]:
    """Yield the loops of reductions and folds inside an expression."""
    for node in walk(expression):
        if isinstance(node, Reduce | Fold):
            yield from node.loops


def resolved(expression: Expression, ranges: Ranges) -> Expression:
    """Return an expression with its integer divisions resolved as far as ranges allow."""
    return rebuild(expression, lambda node: _division(node, ranges))


def _division(node: Expression, ranges: Ranges) -> Expression | None:
    if not isinstance(node, Binary) or node.op not in ("/", "%") or not is_integer(node.type):
        return None
    simple = integers.simplify_division(node, ranges)
    if simple is not None:
        return simple
    quotient, rest = integers.exact_division(node.left, node.right)
    if integers.value_of(quotient) == 0:
        return None
    if integers.value_of(rest) == 0:
        return quotient if node.op == "/" else integers.constant(0)
    if not integers.is_non_negative(quotient, ranges) or not integers.is_non_negative(rest, ranges):
        return None
    inner = replace(node, left=rest)
    shorter = integers.simplify_division(inner, ranges) or inner
    return integers.add(quotient, shorter) if node.op == "/" else shorter
