"""Stores: the values of each point are computed, then written, wide where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Fold, Load, Reduce, Select, loads, walk
from kernelskill.algorithm.integers import conjunction
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.hoisting import hoistable
from kernelskill.algorithm.lowering.holding import unheld_loads
from kernelskill.algorithm.lowering.invariants import hold_invariants
from kernelskill.algorithm.lowering.kept import kept_chunks, serves, write_kept
from kernelskill.algorithm.lowering.loop_heads import open_loop
from kernelskill.algorithm.lowering.packs import (
    Packs,
    Run,
    element_text,
    packs_of_loads,
    packs_of_stores,
    wide_steps,
)
from kernelskill.algorithm.lowering.reductions import lower_reductions
from kernelskill.algorithm.lowering.values import print_values
from kernelskill.algorithm.model import IllegalMove, Store
from kernelskill.algorithm.types import cuda_name

_ATOMICS = {
    "+": "atomicAdd",
    "max": "atomicMax",
    "min": "atomicMin",
    "&": "atomicAnd",
    "|": "atomicOr",
    "^": "atomicXor",
}


def lower_stores(context: Context) -> None:
    """Write all stores of the kernel.

    Where a buffer is both read and written, a point's values are all computed before the first is written.

    Raises:
        IllegalMove: A later store reads what an earlier one, under another condition, has written.
    """
    written: set[str] = set()
    for group in _groups(context.algorithm.stores):
        read = {
            n.buffer for store in group for e in store.expressions for n in walk(e) if isinstance(n, Load)
        }
        if read & written:
            raise IllegalMove(f"{min(read & written)} is read again after a part of it was written")
        written |= {store.buffer for store in group}
        _lower_group(context, group)


def _groups(stores: Sequence[Store]) -> list[list[Store]]:
    """Return neighbouring stores without loops under one condition together, every other store alone.

    Stores of single elements that read what others of them write stay together under all conditions,
    where every element that a condition protects is read in any case.
    """
    single = [store for store in stores if not store.loops]
    if len(single) == len(stores) and _is_mixed(single):
        return [single]
    groups: list[list[Store]] = []
    for store in stores:
        last = groups[-1] if groups else []
        if last and not store.loops and not last[0].loops and store.guard == last[0].guard:
            last.append(store)
        else:
            groups.append([store])
    return groups


def _is_mixed(stores: Sequence[Store]) -> bool:
    written = {store.buffer for store in stores}
    read = {load for store in stores for load in loads(store.value)}
    guards = [guard for store in stores for guard in store.guard]
    if not any(load.buffer in written for load in read) or len({store.guard for store in stores}) == 1:
        return False
    if any(True for store in stores for e in (store.value, *store.guard) for _ in hoistable(e)):
        return False
    certain = frozenset().union(*(certain_loads(guard) for guard in guards))
    certain |= frozenset().union(*(certain_loads(store.value) for store in stores if not store.guard))
    return all(set(loads(store.value)) <= certain for store in stores if store.guard)


def _lower_group(context: Context, stores: Sequence[Store]) -> None:
    is_mixed = len({store.guard for store in stores}) > 1
    guard = [] if stores[0].loops or is_mixed else list(stores[0].guard)
    needed = [e for store in stores for e in (store.index, store.value, *store.guard)]
    if not guard or not any(True for e in needed for _ in hoistable(e)):
        _lower_some(context, stores)
        return
    # What accumulates under a condition reads memory under it only.
    if context.register_axes or context.schedule.lanes > 1 or context.tiles:
        raise IllegalMove("points accumulate under a condition")
    lower_reductions(context, guard)
    before = dict(context.values)
    with context.out.block(f"if ({' && '.join(_joined([context.show(each) for each in guard]))})"):
        _lower_some(context, [replace(store, guard=()) for store in stores])
    context.values = before


def _lower_some(context: Context, stores: Sequence[Store]) -> None:
    needed = [e for store in stores for e in (store.index, store.value, *store.guard)]
    lower_reductions(context, needed, frozenset(loop.name for store in stores for loop in store.loops))
    for vector in reversed(context.register_axes):
        wide = vector.plan.vector > 1 and not any(store.loops for store in stores)
        run = Run(vector.axis.name, vector.axis.lower, vector.plan.vector)
        packs = packs_of_stores(context, stores, run) if wide else None
        if packs is not None:
            _VectorStores(context, stores, vector, packs).write()
            return
    _scalar_stores(context, stores)


def _scalar_stores(context: Context, stores: Sequence[Store]) -> None:
    axes = context.register_axes
    needed = [e for store in stores for e in (store.index, store.value, *store.guard)]
    with ExitStack() as stack:
        stack.enter_context(context.over_points(axes, needed))
        symbols = context.printed_symbols(needed)
        for text in axes:
            if text.axis.name not in symbols:
                context.declare_point(text)
        tests = [*([context.active] if context.active else []), *context.in_range(axes)]
        lanes = context.schedule.lanes
        if lanes > 1 and not any(store.loops for store in stores):
            tests.append(f"{context.lane} == 0")
        if tests:
            stack.enter_context(context.out.block(f"if ({' && '.join(tests)})"))
        active, context.active = context.active, ""
        write_point(context, stores)
        context.active = active


def write_point(context: Context, stores: Sequence[Store]) -> None:
    """Write the stores of one point whose coordinates are declared and in range."""
    for store in stores:
        if store.loops:
            _write_looped(context, store)
    plain = [store for store in stores if not store.loops]
    if len(plain) <= 1 or not (_reads_written(context) or _shares_loads(plain)):
        for store in plain:
            _write_one(context, store)
        return
    guard = plain[0].guard
    if guard and all(store.guard == guard for store in plain):
        tests = print_values(context, list(guard))
        context.out.lines(tests.declarations)
        with context.out.block(f"if ({' && '.join(_joined(tests.texts))})"):
            write_point(context, [replace(store, guard=()) for store in plain])
        return
    guards = list(dict.fromkeys(conjunction(store.guard) for store in plain if store.guard))
    values = print_values(context, [*guards, *(store.value for store in plain)])
    context.out.lines(values.declarations)
    tested: dict[Expression, str] = {}
    for guard_test, text in zip(guards, values.texts, strict=False):
        tested[guard_test] = context.names.fresh("holds")
        context.out.line(f"const bool {tested[guard_test]} = {text};")
    names = []
    for store, text in zip(plain, values.texts[len(guards) :], strict=True):
        names.append(text if text.isidentifier() else context.names.fresh(f"new_{store.buffer}"))
        if names[-1] != text:
            context.out.line(f"const {cuda_name(store.kind)} {names[-1]} = {text};")
    for store, name in zip(plain, names, strict=True):
        test = f"if ({tested[conjunction(store.guard)]}) " if store.guard else ""
        context.out.line(test + _store_text(context, store, name))


def _reads_written(context: Context) -> bool:
    written = {store.buffer for store in context.algorithm.stores}
    loads = {n.buffer for e in context.algorithm.expressions for n in walk(e) if isinstance(n, Load)}
    return bool(written & loads) or len(written) < len(context.algorithm.stores)


def _shares_loads(stores: Sequence[Store]) -> bool:
    """Whether values read the same elements: they are read once, before anything is written."""
    found: set[Load] = set()
    for store in stores:
        own = set(loads(store.value))
        if own & found:
            return True
        found |= own
    return False


def write_wide(context: Context, stores: Sequence[Store], packs: Packs, first: str) -> None:
    """Write stores of neighbouring points by wide accesses; guards are tested by the caller."""
    run, j = packs.run, context.local("j")
    with packs.reading(context, first):
        results = {key: context.names.fresh(f"{key.buffer}_out") for key in packs.written_keys}
        context.out.lines(f"{packs.type_of(context, key)} {name};" for key, name in results.items())
        with context.out.unrolled(f"for (int {j} = 0; {j} < {run.width}; ++{j})"):
            values = [store.value for store in stores]
            if run.name in context.printed_symbols(values):
                context.out.line(f"const {context.index_type} {run.name} = {first} + {j};")
            printed = print_values(context, values)
            context.out.lines(printed.declarations)
            for store, text in zip(stores, printed.texts, strict=True):
                key, offset = packs.written[store]
                context.out.line(f"{results[key]}.at[{element_text(j, key.step, offset)}] = {text};")
        for key, name in results.items():
            pack = packs.type_of(context, key)
            place = packs.place_of(context, key, first)
            context.out.line(f"*reinterpret_cast<{pack}*>(&{place}) = {name};")


def _write_looped(context: Context, store: Store) -> None:
    before = dict(context.values)
    if not store.guard and not context.register_axes:
        hold_invariants(context, [store.value], store.loops)
    if serves(context, store.loops, [store.value]):
        _write_looped_kept(context, store)
        with context.out.block("else"):
            _write_looped_shared(context, store)
    else:
        _write_looped_shared(context, store)
    context.values = before


def _write_looped_kept(context: Context, store: Store) -> None:
    """Write a store along a row whose elements are in registers."""
    (loop,) = store.loops
    needed = [store.index, store.value, *store.guard]
    run = Run(loop.name, loop.lower, context.schedule.lane_vector)
    before = dict(context.values)

    def step() -> None:
        context.depth += 1
        lower_reductions(context, needed)
        _write_one(context, store)
        context.depth -= 1

    packs = packs_of_stores(context, [store], run) if run.width > 1 and not store.guard else None
    if packs is None or any(_nested(context, e) for e in (store.index, store.value)):
        write_kept(context, loop, needed, step, store.guard or needed)
    else:
        packs.note_alignment(context)
        with kept_chunks(context, loop) as first:
            held = packs_of_loads(context, [store.value], run)
            write_wide(context, [store], replace(packs, read=held), first)
    context.values = before


def _write_looped_shared(context: Context, store: Store) -> None:
    if context.shares_loops and context.schedule.lane_vector > 1 and _write_looped_wide(context, store):
        return
    with ExitStack() as stack:
        for number, loop in enumerate(store.loops):
            shared = context.shares_loops and number == len(store.loops) - 1
            stack.enter_context(open_loop(context, loop, shared=shared))
        before = dict(context.values)
        context.depth += 1
        lower_reductions(context, [store.index, store.value, *store.guard])
        _write_one(context, store)
        context.depth -= 1
        context.values = before


def _write_looped_wide(context: Context, store: Store) -> bool:
    """Write a store whose innermost loop is shared by lanes that take neighbouring steps together."""
    loop, width = store.loops[-1], context.schedule.lane_vector
    run = Run(loop.name, loop.lower, width)
    packs = packs_of_stores(context, [store], run) if not store.guard else None
    if packs is None or any(True for e in (store.index, store.value) for _ in _nested(context, e)):
        return False
    packs.note_alignment(context)
    with ExitStack() as stack:
        for outer in store.loops[:-1]:
            stack.enter_context(open_loop(context, outer))
        with wide_steps(context, loop, width) as steps:
            with steps.whole():
                write_wide(context, [store], packs, steps.first)
            with steps.single():
                _write_one(context, store)
    return True


def _nested(context: Context, expression: Expression) -> list[Expression]:
    """Return the reductions that are not computed yet."""
    return [
        node for node in walk(expression) if isinstance(node, Reduce | Fold) and node not in context.values
    ]


def _write_one(context: Context, store: Store) -> None:
    with ExitStack() as stack:
        if store.guard:
            tests = print_values(context, list(store.guard))
            context.out.lines(tests.declarations)
            stack.enter_context(context.out.block(f"if ({' && '.join(_joined(tests.texts))})"))
        value = store.value
        if isinstance(value, Select) and unheld_loads(context, (value.first, value.second)):
            # What is read on one side only gets names there.
            with context.out.block(f"if ({context.show(value.condition)})"):
                _write_one(context, replace(store, guard=(), value=value.first))
            with context.out.block("else"):
                _write_one(context, replace(store, guard=(), value=value.second))
            return
        values = print_values(context, [value])
        context.out.lines(values.declarations)
        context.out.line(_store_text(context, store, values.texts[0]))


def _joined(texts: Sequence[str]) -> list[str]:
    return (
        [f"({text})" if "||" in text or "?" in text else text for text in texts]
        if len(texts) > 1
        else list(texts)
    )


def _store_text(context: Context, store: Store, text: str) -> str:
    element = f"{store.buffer}[{context.show(store.index)}]"
    if store.mode != "=":
        return f"{_ATOMICS[store.mode]}(&{element}, {text});"
    return f"{element} = {text};"


class _VectorStores:
    """Writes stores in groups of neighbouring points, with a path for the ragged end."""

    def __init__(
        self,
        context: Context,
        stores: Sequence[Store],
        vector: AxisText,
        packs: Packs,
    ) -> None:
        self._context, self._stores, self._vector, self._packs = context, stores, vector, packs

    def write(self) -> None:
        context, vector, width = self._context, self._vector, self._vector.plan.vector
        self._packs.note_alignment(context)
        others = tuple(text for text in context.register_axes if text is not vector)
        needed = [e for store in self._stores for e in (store.index, store.value, *store.guard)]
        groups = vector.plan.points // width
        with ExitStack() as stack:
            stack.enter_context(context.over_points(others, needed))
            symbols = context.printed_symbols(needed)
            for text in others:
                if text.axis.name not in symbols:
                    context.declare_point(text)
            tests = [*([context.active] if context.active else []), *context.in_range(others)]
            tests += _joined([context.show(guard) for guard in self._stores[0].guard])
            if tests:
                stack.enter_context(context.out.block(f"if ({' && '.join(tests)})"))
            group = "0"
            if groups > 1:
                group = context.local("g")
                stack.enter_context(
                    context.out.unrolled(f"for (int {group} = 0; {group} < {groups}; ++{group})")
                )
            self._group(group)

    def _group(self, group: str) -> None:
        context, vector, width = self._context, self._vector, self._vector.plan.vector
        first = context.names.fresh(f"{vector.axis.name}_first")
        place = f"({group} * {vector.threads} + {vector.thread})" if group != "0" else vector.thread
        context.out.line(f"const {context.index_type} {first} = {vector.start} + {place} * {width};")
        end = context.show(vector.axis.upper, 8)
        tests = [context.aligned_flag, *([] if context.is_inner else [f"{first} + {width} <= {end}"])]
        with context.out.block(f"if ({' && '.join(tests)})"):
            self._wide(group, first)
        name = vector.axis.name
        j = context.local("j")
        head = f"for (int {j} = 0; {j} < {width}; ++{j})"
        with context.out.block("else"), context.out.unrolled(head):
            context.out.line(f"const {context.index_type} {name} = {first} + {j};")
            tested = nullcontext() if context.is_inner else context.out.block(f"if ({name} < {end})")
            with self._point(group), tested:
                write_point(context, [replace(store, guard=()) for store in self._stores])

    def _point(self, group: str) -> ExitStack:
        """Let texts of accumulators name the point within the group."""
        width = self._vector.plan.vector
        stack = ExitStack()
        j = self._context.local("j")
        number = f"{group} * {width} + {j}" if group != "0" else j
        token = f"[{self._vector.point}]"
        before = dict(self._context.values)
        self._context.values = {e: text.replace(token, f"[{number}]") for e, text in before.items()}

        def restore() -> None:
            self._context.values = before

        stack.callback(restore)
        return stack

    def _wide(self, group: str, first: str) -> None:
        context = self._context
        with self._point(group):
            write_wide(context, self._stores, self._packs, first)
