"""Fuse two launches in a row: what the second reads of the first's results becomes their value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations

from kernelskill.algorithm.access import load_sites
from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Load,
    Select,
    Sym,
    Unary,
    loads,
    walk,
)
from kernelskill.algorithm.flatten import flattened
from kernelskill.algorithm.integers import (
    Ranges,
    add,
    coefficient,
    conjuncts,
    constant,
    multiply,
    simplify_division,
    value_of,
)
from kernelskill.algorithm.model import Algorithm, Axis, IllegalMove, Parameter, Store
from kernelskill.algorithm.renaming import renamed
from kernelskill.algorithm.rewriting import rebuild, replace_outermost, substitute

Apart = Callable[[str, str], bool]
"""Whether two buffers, by name, cannot overlap."""
_EXACT_PRODUCTS = {
    "float": "__fmul_rn",
    "double": "__dmul_rn",
    "half": "__hmul_rn",
    "bfloat16": "__hmul_rn",
}
"""Products that the compiler does not contract with a sum: in its own kernel each was rounded."""


@dataclass(frozen=True)
class Pair:
    """Two algorithms whose parameters and other names say whether they mean the same."""

    first: Algorithm
    second: Algorithm
    values: Mapping[str, Expression]
    """Integer parameter -> its value in the launcher's terms."""

    def alike(self, left: Expression, right: Expression) -> bool:
        """Whether two values are equal in any call of the launcher."""
        return left == right or self._plain(left) == self._plain(right)

    def _plain(self, expression: Expression) -> Expression:
        return substitute(expression, self.values)


@dataclass(frozen=True)
class Fused:
    """One algorithm that does what two did."""

    algorithm: Algorithm
    mapped_as_first: bool
    """Whether the first launch's mapping is kept, otherwise the second's."""
    forwarded: tuple[str, ...]
    """Buffers whose values the second takes from the first."""


def fuse(pair: Pair, name: str, *, dropped: frozenset[str], apart: Apart) -> Fused:
    """Return one algorithm that does what two do one after the other.

    Args:
        pair: The two.
        name: Name of the kernel.
        dropped: Buffers whose contents nobody needs afterwards.
        apart: What is known of buffers that may overlap.

    Raises:
        IllegalMove: Points of the second need more of the first than their own point, or it is not
            known that they don't.
    """
    if pair.first.joined or pair.second.joined:
        raise IllegalMove("threads of a block exchange values")
    if pair.first.reorders or pair.second.reorders:
        raise IllegalMove("reading the kernels takes sums of floats in another order")
    reasons: dict[str, None] = {}
    for first, second, as_first in _shapes(pair):
        matched = replace(pair, first=first, second=second)
        try:
            return _Fusion(matched, name, dropped, apart).run(as_first)
        except IllegalMove as refused:
            reasons[refused.reason] = None
    raise IllegalMove(next(iter(reasons), "the launches do not run over the same points"))


def _shapes(pair: Pair) -> Iterator[tuple[Algorithm, Algorithm, bool]]:
    """Yield the two with the same axes, and whether it is the first whose mapping is kept."""
    first, second = pair.first, pair.second
    seen: list[tuple[Algorithm, Algorithm]] = []
    for left, right, as_first in (
        (first, second, False),
        (flattened(first), second, False),
        (first, flattened(second), True),
        (_split(pair, first, second.axes), second, False),
        (first, _split(pair, second, first.axes), True),
    ):
        if left is None or right is None or len(left.axes) != len(right.axes) or (left, right) in seen:
            continue
        seen.append((left, right))
        kept, other = (left, right) if as_first else (right, left)
        for order in permutations(kept.axes):
            table = {own.name: axis.name for own, axis in zip(other.axes, order, strict=True)}
            turned = renamed(other, table)
            same = all(
                pair.alike(own.lower, axis.lower) and pair.alike(own.upper, axis.upper)
                for own, axis in zip(turned.axes, order, strict=True)
            )
            if same:
                yield (kept, turned, True) if as_first else (turned, kept, False)


def _split(pair: Pair, algorithm: Algorithm, axes: tuple[Axis, ...]) -> Algorithm | None:
    """Return an algorithm over a flat index in terms of rows and columns; None where it isn't one."""
    if len(algorithm.axes) != 1 or len(axes) < 2:
        return None
    (flat,) = algorithm.axes
    index: Expression = constant(0)
    length: Expression = constant(1)
    for axis in axes:
        index = add(multiply(index, axis.upper), Sym(axis.name, axis.kind))
        length = multiply(length, axis.upper)
    zero = all(value_of(axis.lower) == 0 for axis in (flat, *axes))
    if not zero or not pair.alike(length, flat.upper):
        return None
    ranges = {axis.name: (axis.lower, axis.upper) for axis in axes}
    changed = replace(algorithm, axes=()).mapped(
        lambda expression: _resolved(substitute(expression, {flat.name: index}), ranges)
    )
    return replace(changed, axes=axes)


def _resolved(expression: Expression, ranges: Ranges) -> Expression:
    """Resolve the divisions that take an index apart into what it was put together from."""
    return rebuild(expression, lambda node: simplify_division(node, ranges))


class _Fusion:
    def __init__(self, pair: Pair, name: str, dropped: frozenset[str], apart: Apart) -> None:
        self._pair, self._name, self._dropped, self._apart = pair, name, dropped, apart
        self._first, self._second = pair.first, pair.second
        written = {store.buffer for store in self._first.stores}
        read = {load.buffer for load in _loads_of(self._second)}
        self._forwarded = tuple(sorted(written & read))

    def run(self, as_first: bool) -> Fused:
        if not self._forwarded:
            raise IllegalMove("the second launch reads nothing that the first one writes")
        if any(_loads(axis.lower) or _loads(axis.upper) for axis in self._second.axes):
            raise IllegalMove("the range of an axis is read from memory")
        values = {buffer: self._value(buffer) for buffer in self._forwarded}
        self._check_conflicts()

        def change(expression: Expression) -> Expression:
            return _forwarded(expression, values)

        second = self._second.mapped(change)
        stores = (*self._kept(values, second.stores), *second.stores)
        self._check_order(stores, second.stores)
        base = self._first if as_first else self._second
        parameters: dict[str, Parameter] = {}
        for parameter in (*self._first.parameters, *self._second.parameters):
            if not (parameter.is_const and parameter.name in parameters):
                parameters[parameter.name] = parameter
        known = {name: e for e, name in (*second.names, *self._first.names)}
        named = set(known.values())
        names = {f"{buffer}_value": e for buffer, e in values.items() if e not in named} | known
        algorithm = Algorithm(
            kernel=self._name,
            parameters=tuple(parameters.values()),
            axes=base.axes,
            stores=stores,
            names=tuple((e, name) for name, e in names.items() if not isinstance(e, Sym)),
            notes=tuple(dict.fromkeys((*self._first.notes, *self._second.notes))),
        )
        return Fused(_with_used_parameters(algorithm), as_first, self._forwarded)

    # values

    def _value(self, buffer: str) -> Expression:
        """Return what each point finds of a buffer that the first wrote."""
        stores = [store for store in self._first.stores if store.buffer == buffer]
        if len(stores) > 1:
            raise IllegalMove(f"the first launch writes {buffer} in several places")
        (store,) = stores
        if store.mode != "=":
            raise IllegalMove(f"the first launch updates {buffer} atomically")
        if store.loops:
            raise IllegalMove(f"a point of the first launch writes several elements of {buffer}")
        for load, conditions in self._sites(buffer):
            if not self._pair.alike(load.index, store.index):
                raise IllegalMove(f"the second launch reads other elements of {buffer} than its point's own")
            if not all(any(self._pair.alike(g, c) for c in conditions) for g in store.guard):
                raise IllegalMove(f"the first launch writes {buffer} under a condition of its own")
        if not self._is_own(store.index):
            raise IllegalMove(f"several points share an element of {buffer}")
        value = _uncontracted(store.value)
        return value if value.type == store.kind else Cast(store.kind, value)

    def _sites(self, buffer: str) -> Iterator[tuple[Load, tuple[Expression, ...]]]:
        for store in self._second.stores:
            guard = tuple(part for test in store.guard for part in conjuncts(test))
            for expression in store.expressions:
                is_guard = expression in store.guard
                for site in load_sites(expression):
                    if site.load.buffer == buffer:
                        own = tuple(part for test in site.conditions for part in conjuncts(test))
                        yield site.load, own if is_guard else (*guard, *own)

    def _is_own(self, index: Expression) -> bool:
        """Whether every point has an element of its own: its index moves along every axis."""
        if _loads(index):
            return False
        for axis in self._second.axes:
            factor = coefficient(index, axis.name)
            if factor is None or value_of(factor) == 0:
                return False
        return True

    # conflicts

    def _check_conflicts(self) -> None:
        """Refuse where a point of one launch meets what another point of the other one touches."""
        for write in self._second.stores:
            for load in dict.fromkeys(_loads_of(self._first)):
                self._check_meeting(load.buffer, load.index, load.kind, write, "reads")
            for earlier in self._first.stores:
                if earlier.loops or earlier.mode != "=" or write.mode != "=":
                    self._check_apart(earlier.buffer, write.buffer, "writes")
                else:
                    self._check_meeting(earlier.buffer, earlier.index, earlier.kind, write, "writes")
        for load in dict.fromkeys(_loads_of(self._second)):
            for earlier in self._first.stores:
                if load.buffer not in self._forwarded:
                    self._check_apart(earlier.buffer, load.buffer, "writes")

    def _check_meeting(self, buffer: str, index: Expression, kind: str, write: Store, verb: str) -> None:
        pointwise = (
            not write.loops
            and kind == write.kind
            and self._pair.alike(index, write.index)
            and self._is_own(write.index)
        )
        if not pointwise:
            self._check_apart(buffer, write.buffer, verb)

    def _check_apart(self, buffer: str, other: str, verb: str) -> None:
        if buffer == other:
            raise IllegalMove(f"the first launch {verb} {buffer} at elements that the second one changes")
        if not self._apart(buffer, other):
            raise IllegalMove(f"{buffer} and {other} may overlap: it needs the promise no_alias")

    def _check_order(self, stores: tuple[Store, ...], second: tuple[Store, ...]) -> None:
        """Refuse where a value would be computed again after a store that may have changed its operands."""
        if not any(store.loops for store in stores) and len({store.guard for store in stores}) == 1:
            return
        needed = {load.buffer for store in second for e in store.expressions for load in loads(e)}
        for store in stores[: len(stores) - len(second)]:
            for buffer in needed:
                if buffer != store.buffer and not self._apart(buffer, store.buffer):
                    raise IllegalMove(
                        f"{buffer} and {store.buffer} may overlap: it needs the promise no_alias"
                    )

    # stores

    def _kept(self, values: Mapping[str, Expression], second: tuple[Store, ...]) -> Iterable[Store]:
        """Return the first's stores without those that nobody needs."""
        for store in self._first.stores:
            if store.buffer in self._dropped and store.buffer in self._forwarded:
                continue
            if any(self._covers(later, store) for later in second):
                continue
            value = values.get(store.buffer)
            yield store if value is None else replace(store, value=value)

    def _covers(self, later: Store, earlier: Store) -> bool:
        if later.buffer != earlier.buffer or later.mode != "=" or later.loops or earlier.loops:
            return False
        return self._pair.alike(later.index, earlier.index) and set(later.guard) <= set(earlier.guard)


def _forwarded(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    def change(node: Expression) -> Expression | None:
        return values.get(node.buffer) if isinstance(node, Load) else None

    return replace_outermost(expression, change)


def _uncontracted(value: Expression) -> Expression:
    """Return a value whose last product is rounded before anything is added to it."""
    match value:
        case Binary(op="*") if value.kind in _EXACT_PRODUCTS:
            return Call(_EXACT_PRODUCTS[value.kind], (value.left, value.right), value.kind)
        case Unary(op="-"):
            return replace(value, operand=_uncontracted(value.operand))
        case Select():
            return replace(value, first=_uncontracted(value.first), second=_uncontracted(value.second))
        case _:
            return value


def _loads(expression: Expression) -> bool:
    return any(isinstance(node, Load) for node in walk(expression))


def _loads_of(algorithm: Algorithm) -> Iterator[Load]:
    for expression in algorithm.expressions:
        yield from loads(expression)


def _with_used_parameters(algorithm: Algorithm) -> Algorithm:
    """Leave out the parameters that nothing needs any more."""
    used = {store.buffer for store in algorithm.stores} | {load.buffer for load in _loads_of(algorithm)}
    bounds = [bound for axis in algorithm.axes for bound in (axis.lower, axis.upper)]
    weights = [
        a.binding.weight for a in algorithm.axes if a.binding is not None and a.binding.weight is not None
    ]
    for expression in (*algorithm.expressions, *bounds, *weights):
        used |= expression.symbols
    return replace(algorithm, parameters=tuple(p for p in algorithm.parameters if p.name in used))
