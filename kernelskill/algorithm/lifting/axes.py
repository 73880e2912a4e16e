"""Turn thread and block indices into parallel axes with the ranges that guards and grid give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, cast

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Loop, Reduce, Sym
from kernelskill.algorithm.lifting.coverage import covers
from kernelskill.algorithm.lifting.draft import Draft
from kernelskill.algorithm.lifting.launch import Binding as LaunchBinding
from kernelskill.algorithm.lifting.partials import has_parts, share_of, unmarked
from kernelskill.algorithm.lifting.recurrences import neutral_of
from kernelskill.algorithm.model import Axis, Binding, CannotLift, Store
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import is_float, is_integer

Dimension = Literal["x", "y", "z"]


def make_axes(draft: Draft, launch: LaunchBinding) -> None:
    """Make an axis of every builtin index in use; `blockIdx * blockDim + threadIdx` becomes one.

    Raises:
        CannotLift: Atomics are repeated by threads that are not told apart, or gridDim is used.
    """
    for position, dimension in enumerate("xyz"):
        block, grid = launch.block[position], launch.grid[position]
        _make_axis(draft, cast(Dimension, dimension), block, grid)
    for dimension, block, grid in zip("xyz", launch.block, launch.grid, strict=True):
        draft.substitute({f"blockDim.{dimension}": block, f"gridDim.{dimension}": grid})
    draft.simplify()
    if draft.joined:
        _fold_loops(draft)
    _fold_blocks(draft)


def _fold_loops(draft: Draft) -> None:
    """Make one axis of a thread index and the loop in which each thread takes every so many rows of a tile."""
    for loop in draft.stores[0].loops:
        count = integers.value_of(loop.upper)
        if count is None or integers.value_of(loop.lower) != 0:
            continue
        if not all(loop in store.loops for store in draft.stores):
            continue
        for inner in list(draft.axes.values()):
            length = integers.value_of(inner.upper)
            if length is None or integers.value_of(inner.lower) != 0:
                continue
            both = f"{inner.name}+{loop.name}"
            trial = Draft(list(draft.stores), dict(draft.axes), list(draft.named))
            start = integers.multiply(loop.symbol, integers.constant(length))
            trial.substitute({inner.name: integers.subtract(Sym(both), start)})
            if trial.depends_on(loop.name) or trial.depends_on(inner.name):
                continue
            draft.stores = [
                replace(store, loops=tuple(each for each in store.loops if each.name != loop.name))
                for store in trial.stores
            ]
            draft.named = trial.named
            del draft.axes[inner.name]
            upper = integers.constant(count * length)
            draft.axes[both] = Axis(both, integers.constant(0), upper, None, inner.kind)
            break


def _fold_blocks(draft: Draft) -> None:
    """Make one axis of a block index and what counts inside the block, wherever that comes from."""
    blocks = [a for a in draft.axes.values() if a.binding is not None and a.binding.source == "block"]
    for block in blocks:
        for inner in list(draft.axes.values()):
            size = integers.value_of(inner.upper)
            if inner.name == block.name or size is None or integers.value_of(inner.lower) != 0:
                continue
            both = f"{block.name}+{inner.name}"
            start = integers.multiply(Sym(block.name), integers.constant(size))
            trial = Draft(list(draft.stores), dict(draft.axes), list(draft.named))
            trial.substitute({inner.name: integers.subtract(Sym(both), start)})
            if trial.depends_on(block.name) or trial.depends_on(inner.name):
                continue
            draft.stores, draft.named = trial.stores, trial.named
            upper = integers.multiply(block.upper, integers.constant(size))
            axes = {name: axis for name, axis in draft.axes.items() if name not in (block.name, inner.name)}
            axes[both] = Axis(both, integers.constant(0), upper, None, inner.kind)
            draft.axes = axes
            break


def _make_axis(draft: Draft, dimension: Dimension, block: Expression, grid: Expression) -> None:
    thread, index, both = f"threadIdx.{dimension}", f"blockIdx.{dimension}", f"global.{dimension}"
    known = integers.value_of(block)
    threads = block if known is not None else Sym(f"blockDim.{dimension}", "unsigned")
    uses = draft.depends_on(thread), draft.depends_on(index)
    zero = integers.constant(0)
    if all(uses):
        start = integers.multiply(Sym(index), threads)
        trial = Draft(list(draft.stores), dict(draft.axes), list(draft.named))
        trial.substitute({thread: integers.subtract(Sym(both), start)})
        if not trial.depends_on(index) and not trial.depends_on(thread):
            draft.stores, draft.axes, draft.named = trial.stores, trial.axes, trial.named
            upper = integers.multiply(grid, block)
            draft.axes[both] = Axis(both, zero, upper, Binding(dimension, "global"))
            return
    used_up = {name for names in draft.strided.values() for name in names}
    for name, used, extent, source in (
        (index, uses[1], grid, "block"),
        (thread, uses[0], block, "thread"),
    ):
        if used:
            kind = cast(Literal["block", "thread"], source)
            draft.axes[name] = Axis(name, zero, extent, Binding(dimension, kind))
        elif integers.value_of(extent) != 1 and name not in draft.pinned:
            _check_repeated(draft, name, name in used_up)


def _check_repeated(draft: Draft, name: str, is_shared: bool) -> None:
    """Refuse atomics outside the loops that use up an index which nothing else tells apart."""
    for store in draft.stores:
        loops = [draft.strided.get(key, ()) for key in (*(loop.name for loop in store.loops), *draft.axes)]
        if store.mode != "=" and not (is_shared and any(name in used for used in loops)):
            raise CannotLift(f"every thread along {name} repeats the same atomic on {store.buffer}")


def tighten(draft: Draft, launch: LaunchBinding) -> None:
    """Turn guards that all stores share into ranges of axes where the grid provably reaches them."""
    for test in _shared_guards(draft):
        if _fix(draft, test) or _bound_axis(draft, launch, test):
            draft.stores = [
                replace(store, guard=tuple(part for part in store.guard if part != test))
                for store in draft.stores
            ]


def _shared_guards(draft: Draft) -> list[Expression]:
    if not draft.stores:
        return []
    return [test for test in draft.stores[0].guard if all(test in store.guard for store in draft.stores)]


def _fix(draft: Draft, test: Expression) -> bool:
    """Use `axis == constant`: one value of the axis is left."""
    if not isinstance(test, Binary) or test.op != "==" or not is_integer(test.left.type):
        return False
    for side, other in ((test.left, test.right), (test.right, test.left)):
        value = integers.value_of(other)
        if not isinstance(side, Sym) or side.name not in draft.axes or value is None:
            continue
        axis = draft.axes[side.name]
        low, high = integers.value_of(axis.lower), integers.value_of(axis.upper)
        is_first = value == 0 and low == 0
        if is_first or (low is not None and high is not None and low <= value < high):
            del draft.axes[side.name]
            draft.substitute({side.name: integers.constant(value)})
            return True
    return False


def _bound_axis(draft: Draft, launch: LaunchBinding, test: Expression) -> bool:
    """Use a comparison that bounds one axis; returns whether the range now says all of it."""
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
        return False
    if not is_integer(test.left.type) or not is_integer(test.right.type):
        return False
    first, second = (test.left, test.right) if test.op[0] == "<" else (test.right, test.left)
    slack = integers.subtract(second, first)
    if test.op in ("<", ">"):
        slack = integers.add(slack, integers.constant(1), -1)
    used = [name for name in draft.axes if slack.depends_on(name)]
    if len(used) != 1 or not _is_uniform(draft, slack, used[0]):
        return False
    axis = draft.axes[used[0]]
    factor = integers.coefficient(slack, axis.name)
    rest = integers.without(slack, axis.name)
    sign = integers.value_of(factor) if factor is not None else None
    if sign == -1:
        upper = integers.add(rest, integers.constant(1))
        if not covers(axis.upper, upper, launch):
            return False
        draft.axes[axis.name] = replace(axis, upper=upper)
        return True
    lower = integers.multiply(rest, integers.constant(-1))
    low, before = integers.value_of(lower), integers.value_of(axis.lower)
    if sign == 1 and low is not None and before is not None:
        draft.axes[axis.name] = replace(axis, lower=integers.constant(max(low, before)))
        return True
    return False


def _is_uniform(draft: Draft, slack: Expression, axis: str) -> bool:
    """Whether a bound is made of sizes only besides one axis."""
    loops = {loop.name for store in draft.stores for loop in store.loops}
    others = slack.symbols - {axis}
    has_load = any(type(atom).__name__ == "Load" for atom in slack.children) or type(slack).__name__ == "Load"
    return not has_load and not (others & (loops | draft.axes.keys()))


def promote_loops(draft: Draft) -> None:
    """Make axes of loops that the source spreads over threads, where every store is inside them.

    Raises:
        CannotLift: A thread's own part of a reduction is used other than by an atomic.
    """
    draft.stores = [_merge_partial(draft, store) for store in draft.stores]
    for expression in draft.expressions():
        if has_parts(expression):
            raise CannotLift("cooperative: each thread has a part of a reduction only")
    for name in _common_strided(draft):
        _promote(draft, name)


def _merge_partial(draft: Draft, store: Store) -> Store:
    """Use that adding every thread's partial sum atomically adds everything."""
    value = store.value
    if store.mode == "=" or not isinstance(value, Reduce) or value.op != store.mode:
        return store
    for position, loop in enumerate(value.loops):
        share = share_of(loop)
        if share is None or any(place != Sym(name) for name, place in share.items()):
            continue
        if value.initial != neutral_of(store.mode, value.kind) and not (
            store.mode == "+" and _is_zero(value.initial)
        ):
            raise CannotLift(f"a thread's part of a sum for {store.buffer} starts with something else")
        if any(part.depends_on(*share) for part in (store.index, *store.guard)):
            raise CannotLift(f"cooperative: only some threads add their part to {store.buffer}")
        if position:
            return store
        draft.strided[loop.name] = tuple(share)
        draft.notes.append(f"what threads have for {store.buffer} is joined in another order")
        draft.reorders |= is_float(value.kind)
        rest = value.loops[1:]
        inner = replace(value, loops=rest) if rest else value.body
        return replace(store, value=inner, loops=(*store.loops, unmarked(loop)))
    return store


def _is_zero(value: Expression) -> bool:
    text = show(value)
    return text in ("0", "0.0f", "0.f", "0.0", "0f", "0.")


def _common_strided(draft: Draft) -> list[str]:
    """Return spread loops of the first store whose twins every other store has, renamed to be the same."""
    if not draft.stores:
        return []
    found = []
    for loop in draft.stores[0].loops:
        if loop.name not in draft.strided:
            continue
        twins = [_twin(draft, store.loops, loop) for store in draft.stores]
        if all(twin is not None for twin in twins):
            draft.stores = [
                replace(
                    store,
                    index=substitute(store.index, {twin.name: loop.symbol}),
                    value=substitute(store.value, {twin.name: loop.symbol}),
                    guard=tuple(substitute(test, {twin.name: loop.symbol}) for test in store.guard),
                    loops=tuple(loop if entry == twin else entry for entry in store.loops),
                )
                for store, twin in zip(draft.stores, twins, strict=True)
                if twin is not None
            ]
            found.append(loop.name)
    return found


def _twin(draft: Draft, loops: tuple[Loop, ...], wanted: Loop) -> Loop | None:
    for loop in loops:
        same = (loop.lower, loop.upper) == (wanted.lower, wanted.upper)
        if same and draft.strided.get(loop.name) == draft.strided[wanted.name]:
            return loop
    return None


def _promote(draft: Draft, name: str) -> None:
    loop = next(entry for entry in draft.stores[0].loops if entry.name == name)
    outer = {entry.name for entry in draft.stores[0].loops} - {name}
    if loop.lower.symbols & outer or loop.upper.symbols & outer:
        return
    used = draft.strided[name]
    dimension = cast(Dimension, used[0][-1])
    source: Literal["global", "block", "thread"] = "global"
    if len(used) == 1:
        source = "block" if used[0].startswith("block") else "thread"
    draft.axes[name] = Axis(name, loop.lower, loop.upper, Binding(dimension, source, strided=True), loop.kind)
    draft.stores = [
        replace(store, loops=tuple(entry for entry in store.loops if entry.name != name))
        for store in draft.stores
    ]
