"""Whether the stores of all threads together mean what one thread's stores say, and which are dead."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, Loop, loads
from kernelskill.algorithm.lifting.draft import Draft
from kernelskill.algorithm.lifting.loop_memory import apart
from kernelskill.algorithm.lifting.memory import solve
from kernelskill.algorithm.model import CannotLift, Store
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import substitute


def without_dead_stores(draft: Draft) -> None:
    """Leave out stores whose cells the same thread stores to again."""
    live = []
    for position, earlier in enumerate(draft.stores):
        if any(_covers(later, earlier, draft) for later in draft.stores[position + 1 :]):
            note = f"a store to {earlier.buffer} that the kernel overwrites itself is left out"
            if note not in draft.notes and f"{earlier.buffer} is accumulated" not in " ".join(draft.notes):
                draft.notes.append(note)
        else:
            live.append(earlier)
    draft.stores = live


def _covers(later: Store, earlier: Store, draft: Draft) -> bool:
    """Whether a later store writes every cell that an earlier one writes."""
    if later.buffer != earlier.buffer or later.mode != "=" or earlier.mode != "=":
        return False
    own = tuple(loop for loop in later.loops if loop not in earlier.loops)
    found = solve(later.index, earlier.index, own, draft.ranges(), draft.strided)
    if found is None:
        return False
    return {substitute(test, found) for test in later.guard} <= set(earlier.guard)


def check_races(draft: Draft) -> None:
    """Check that no thread reads what another one stores, and that no two store different values.

    Raises:
        CannotLift: It may be so.
    """
    for store in draft.stores:
        _check_store(draft, store)
        if not draft.axes:
            continue
        for expression in store.expressions:
            for read in loads(expression):
                for other in draft.stores:
                    if other.buffer == read.buffer:
                        _check_read(draft, read.index, other)


def _check_read(draft: Draft, index: Expression, other: Store) -> None:
    ranges = draft.ranges()
    if other.mode == "=":
        own = solve(other.index, index, other.loops, ranges, draft.strided, at_ends=True)
        if own is not None:
            return
    everything = tuple(Loop(name, *bounds) for name, bounds in ranges.items())
    if apart(other.index, index, everything):
        return
    where = f"{other.buffer} is read at [{show(index)}] and written at [{show(other.index)}]"
    raise CannotLift(f"{where} in one launch: threads race")


def _check_store(draft: Draft, store: Store) -> None:
    if store.mode != "=":
        return
    for name in draft.axes:
        if store.value.depends_on(name) and not store.index.depends_on(name):
            raise CannotLift(
                f"threads along {name} store different values to {store.buffer}[{show(store.index)}]"
            )
