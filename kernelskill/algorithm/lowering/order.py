"""Whether stores can be written in a loop: a load means the contents at the start of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Fold, Load, Reduce
from kernelskill.algorithm.model import Algorithm, IllegalMove, Store
from kernelskill.algorithm.printing import show


def check_order(algorithm: Algorithm) -> None:
    """Check that no turn of a store's loops reads what another turn stores.

    Raises:
        IllegalMove: It may be so.
    """
    for store in algorithm.stores:
        if store.loops:
            _check_turns(algorithm, store)


def _check_turns(algorithm: Algorithm, store: Store) -> None:
    names = frozenset(loop.name for loop in store.loops)
    for expression in store.expressions:
        for read in _loads_between_stores(expression, names):
            if read.buffer != store.buffer or read.index == store.index:
                continue
            if not _are_apart(store.index, read.index, algorithm):
                raise IllegalMove(
                    f"{read.buffer} is read at [{show(read.index)}] in a loop whose other turns write it"
                )


def _are_apart(first: Expression, second: Expression, algorithm: Algorithm) -> bool:
    """Whether two indices can never be the same: both walk in steps that their distance is no multiple of."""
    names = tuple(algorithm.ranges)
    fixed = integers.without(first, *names), integers.without(second, *names)
    distance = integers.value_of(integers.subtract(*fixed))
    steps = [
        factor
        for index, rest in zip((first, second), fixed, strict=True)
        for factor in integers.terms_of(integers.subtract(index, rest)).values()
    ]
    if distance is None:
        return False
    return distance % gcd(*steps) != 0 if steps else distance != 0


def _loads_between_stores(expression: Expression, bound: frozenset[str]) -> Iterator[Load]:
    """Yield the loads that are carried out inside loops: not those of sums that are complete before them."""
    if isinstance(expression, Reduce | Fold):
        if not expression.depends_on(*bound):
            return
        bound |= {loop.name for loop in expression.loops}
    if isinstance(expression, Load):
        yield expression
    for child in expression.children:
        yield from _loads_between_stores(child, bound)
