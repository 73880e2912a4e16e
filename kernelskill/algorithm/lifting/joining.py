"""Leave cooperation behind: threads' parts become whole reductions, stores of one thread stores of the block."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Load, Reduce, walk
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lifting.draft import Draft, changed_store
from kernelskill.algorithm.lifting.partials import whole
from kernelskill.algorithm.lifting.sharing import is_shared
from kernelskill.algorithm.model import CannotLift, Store
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import is_float


def join_threads(draft: Draft, ranges: Ranges) -> None:
    """Resolve what threads do together.

    Raises:
        CannotLift: Shared memory is used in a way that is not understood.
    """
    cooperative = any(is_shared(store.buffer) for store in draft.stores)
    draft.stores = [store for store in draft.stores if not is_shared(store.buffer)]
    before = list(draft.stores)
    draft.stores = [_at_its_thread(store, ranges)[0] for store in draft.stores]
    draft.change(lambda expression: whole(expression, ranges))
    if draft.stores != before:
        cooperative = True
    for expression in draft.expressions():
        for node in walk(expression):
            if isinstance(node, Load) and is_shared(node.buffer):
                raise CannotLift("cooperative: shared memory is read in a way that is not understood")
    for name in [name for name in ranges if name.startswith("threadIdx.")]:
        _pin(draft, name, ranges)
    draft.joined = cooperative
    if cooperative and any(_is_sum(expression) for expression in draft.expressions()):
        draft.notes.append("what the threads of a block have is joined in the order of the loops")
        draft.reorders |= any(_is_float_sum(expression) for expression in draft.expressions())


def _is_sum(expression: Expression) -> bool:
    return any(type(node).__name__ == "Reduce" for node in walk(expression))


def _is_float_sum(expression: Expression) -> bool:
    return any(isinstance(node, Reduce) and is_float(node.kind) for node in walk(expression))


def _thread_of(test: Expression, ranges: Ranges) -> tuple[str, int] | None:
    """Return which thread a condition picks; None for other conditions."""
    if not isinstance(test, Binary) or test.op != "==":
        return None
    for side, other in ((test.left, test.right), (test.right, test.left)):
        value = integers.value_of(other)
        name = next(iter(side.symbols), "") if len(side.symbols) == 1 and not side.children else ""
        if value is None or not name.startswith("threadIdx.") or name not in ranges:
            continue
        high = integers.value_of(ranges[name][1])
        if value == 0 or (high is not None and 0 <= value < high):
            return name, value
    return None


def _at_its_thread(store: Store, ranges: Ranges) -> tuple[Store, dict[str, Expression]]:
    """Return a store with the index of the one thread that makes it written out; the guard stays."""
    chosen = [found for test in store.guard if (found := _thread_of(test, ranges)) is not None]
    values: dict[str, Expression] = {name: integers.constant(value) for name, value in chosen}
    if not values:
        return store, values
    guard = store.guard
    moved = changed_store(replace(store, guard=()), lambda part: substitute(part, values))
    kept = tuple(test if _thread_of(test, ranges) is not None else substitute(test, values) for test in guard)
    return replace(moved, guard=kept), values


def _pin(draft: Draft, name: str, ranges: Ranges) -> None:
    """Drop conditions that pick one thread where no store needs to tell threads apart any more."""
    stores: list[Store] = []
    used = False
    for store in draft.stores:
        rest = tuple(test for test in store.guard if (_thread_of(test, ranges) or ("", 0))[0] != name)
        fixed = len(rest) < len(store.guard)
        used |= fixed
        spread = any(name in draft.strided.get(loop.name, ()) for loop in store.loops)
        if store.mode != "=" and not fixed and not spread:
            return
        stores.append(replace(store, guard=rest))
    if used and not any(part.depends_on(name) for store in stores for part in store.expressions):
        draft.stores = stores
        draft.pinned.add(name)
