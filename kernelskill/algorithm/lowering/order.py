"""Whether stores can be written in a loop: a load means the contents at the start of the kernel."""

from __future__ import annotations

from collections.abc import Iterator

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
            if not integers.never_equal(store.index, read.index, algorithm.ranges):
                raise IllegalMove(
                    f"{read.buffer} is read at [{show(read.index)}] in a loop whose other turns write it"
                )


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
