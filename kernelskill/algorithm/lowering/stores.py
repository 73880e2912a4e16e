"""Stores: the values of each point are computed, then written, wide where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from kernelskill.algorithm.access import certain_loads
from kernelskill.algorithm.expression import Expression, Load, Sym, walk
from kernelskill.algorithm.integers import (
    add,
    coefficient,
    constant,
    multiply,
    product,
    subtract,
    terms_of,
    value_of,
)
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.reductions import hoistable, loop_head, lower_reductions
from kernelskill.algorithm.lowering.staging import inner_loops, note_divisible
from kernelskill.algorithm.lowering.text import pack_alignment
from kernelskill.algorithm.lowering.values import print_values
from kernelskill.algorithm.model import IllegalMove, Store
from kernelskill.algorithm.types import cuda_name, size_of

_ATOMICS = {
    "+": "atomicAdd",
    "max": "atomicMax",
    "min": "atomicMin",
    "&": "atomicAnd",
    "|": "atomicOr",
    "^": "atomicXor",
}


@dataclass(frozen=True)
class PackKey:
    """Neighbouring elements that one wide access moves."""

    buffer: str
    kind: str
    step: int
    """Elements from one point to the next."""
    base: Expression
    """Index of the first element at point zero of the vector."""


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
    """Return neighbouring stores without loops under one condition together, every other store alone."""
    groups: list[list[Store]] = []
    for store in stores:
        last = groups[-1] if groups else []
        if last and not store.loops and not last[0].loops and store.guard == last[0].guard:
            last.append(store)
        else:
            groups.append([store])
    return groups


def _lower_group(context: Context, stores: Sequence[Store]) -> None:
    guard = [] if stores[0].loops else list(stores[0].guard)
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
    lower_reductions(context, needed)
    for vector in reversed(context.register_axes):
        wide = vector.plan.vector > 1 and not any(store.loops for store in stores)
        packs = _packs_of(context, stores, vector) if wide else None
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
        write_point(context, stores)


def write_point(context: Context, stores: Sequence[Store]) -> None:
    """Write the stores of one point whose coordinates are declared and in range."""
    for store in stores:
        if store.loops:
            _write_looped(context, store)
    plain = [store for store in stores if not store.loops]
    if len(plain) == 1 or not _reads_written(context):
        for store in plain:
            _write_one(context, store)
        return
    values = print_values(context, [store.value for store in plain])
    context.out.lines(values.declarations)
    names = []
    for store, text in zip(plain, values.texts, strict=True):
        names.append(context.names.fresh(f"new_{store.buffer}"))
        context.out.line(f"const {cuda_name(store.kind)} {names[-1]} = {text};")
    for store, name in zip(plain, names, strict=True):
        _put(context, store, name)


def _reads_written(context: Context) -> bool:
    written = {store.buffer for store in context.algorithm.stores}
    loads = {n.buffer for e in context.algorithm.expressions for n in walk(e) if isinstance(n, Load)}
    return bool(written & loads) or len(written) < len(context.algorithm.stores)


def _write_looped(context: Context, store: Store) -> None:
    with ExitStack() as stack:
        for number, loop in enumerate(store.loops):
            shared = context.shares_loops and number == len(store.loops) - 1
            stack.enter_context(context.out.block(loop_head(context, loop, shared=shared)))
        before = dict(context.values)
        context.depth += 1
        lower_reductions(context, [store.index, store.value, *store.guard])
        _write_one(context, store)
        context.depth -= 1
        context.values = before


def _write_one(context: Context, store: Store) -> None:
    with ExitStack() as stack:
        if store.guard:
            tests = print_values(context, list(store.guard))
            context.out.lines(tests.declarations)
            stack.enter_context(context.out.block(f"if ({' && '.join(_joined(tests.texts))})"))
        values = print_values(context, [store.value])
        context.out.lines(values.declarations)
        _put(context, replace(store, guard=()), values.texts[0])


def _joined(texts: Sequence[str]) -> list[str]:
    return (
        [f"({text})" if "||" in text or "?" in text else text for text in texts]
        if len(texts) > 1
        else list(texts)
    )


def _put(context: Context, store: Store, text: str) -> None:
    element = f"{store.buffer}[{context.show(store.index)}]"
    if store.mode != "=":
        line = f"{_ATOMICS[store.mode]}(&{element}, {text});"
    else:
        line = f"{element} = {text};"
    if store.guard:
        tests = _joined([context.show(guard) for guard in store.guard])
        line = f"if ({' && '.join(tests)}) {line}"
    context.out.line(line)


def _packs_of(
    context: Context, stores: Sequence[Store], vector: AxisText
) -> tuple[dict[Store, tuple[PackKey, int]], dict[Load, tuple[PackKey, int]]] | None:
    """Return which wide access serves each store and load, with the offset in it; None if no store can be wide."""
    name = vector.axis.name
    if any(store.mode != "=" or any(g.depends_on(name) for g in store.guard) for store in stores):
        return None
    written: dict[Store, tuple[PackKey, int]] = {}
    for store in stores:
        place = _pack_place(context, store.buffer, store.kind, store.index, vector)
        if place is None:
            return None
        written[store] = place
    for key in {key for key, _ in written.values()}:
        if {offset for other, offset in written.values() if other == key} != set(range(key.step)):
            return None
    read: dict[Load, tuple[PackKey, int]] = {}
    values = [e for store in stores for e in (store.value,)]
    for load in {load for value in values for load in certain_loads(value)}:
        if context.leaf(load) is None and not _in_reduction(values, load):
            place = _pack_place(context, load.buffer, load.kind, load.index, vector)
            if place is not None:
                read[load] = place
    return written, read


def _in_reduction(values: Sequence[Expression], load: Load) -> bool:
    bound = {loop.name for value in values for node in walk(value) for loop in getattr(node, "loops", ())}
    return load.depends_on(*bound)


def _pack_place(
    context: Context, buffer: str, kind: str, index: Expression, vector: AxisText
) -> tuple[PackKey, int] | None:
    """Return the wide access that holds an element and its offset there; notes what alignment it needs."""
    factor = coefficient(index, vector.axis.name)
    step = value_of(factor) if factor is not None else None
    if step is None or step < 1 or step > 8 or size_of(kind) * step * vector.plan.vector > 64:
        return None
    rest = subtract(index, multiply(constant(step), Sym(vector.axis.name)))
    if any(not isinstance(node, Sym) for monomial, _ in terms_of(rest).items() for node in monomial):
        return None
    known = terms_of(rest).get((), 0)
    offset = known % step
    base = add(rest, constant(-offset))
    width = step * vector.plan.vector
    elements = pack_alignment(width * size_of(kind)) // size_of(kind)
    if (known - offset) % max(elements, 1) or value_of(vector.axis.lower) is None:
        return None
    if (value_of(vector.axis.lower) or 0) * step % max(elements, 1) or base.depends_on(
        *inner_loops(context.algorithm)
    ):
        return None
    if not _can_divide(context, base, elements):
        return None
    return PackKey(buffer, kind, step, base), offset


def _can_divide(context: Context, base: Expression, elements: int) -> bool:
    """Whether a test of sizes can tell that a base is aligned: no term consists of axes alone."""
    for monomial, factor in terms_of(base).items():
        axes_only = monomial and all(isinstance(a, Sym) and a.name in context.axes for a in monomial)
        if axes_only and factor % elements:
            return False
    return True


class _VectorStores:
    """Writes stores in groups of neighbouring points, with a path for the ragged end."""

    def __init__(
        self,
        context: Context,
        stores: Sequence[Store],
        vector: AxisText,
        packs: tuple[dict[Store, tuple[PackKey, int]], dict[Load, tuple[PackKey, int]]],
    ) -> None:
        self._context, self._stores, self._vector = context, stores, vector
        self._written, self._read = packs
        self._names: dict[tuple[PackKey, str], str] = {}

    def write(self) -> None:
        context, vector, width = self._context, self._vector, self._vector.plan.vector
        for key in dict.fromkeys(key for key, _ in (*self._written.values(), *self._read.values())):
            self._note_alignment(key)
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

    def _note_alignment(self, key: PackKey) -> None:
        context, size = self._context, size_of(key.kind)
        alignment = pack_alignment(key.step * self._vector.plan.vector * size)
        context.aligned[key.buffer] = max(context.aligned.get(key.buffer, 0), alignment)
        for monomial, factor in terms_of(key.base).items():
            if monomial:
                note_divisible(context, product([constant(factor), *monomial]), alignment // size)

    def _group(self, group: str) -> None:
        context, vector, width = self._context, self._vector, self._vector.plan.vector
        first = context.names.fresh(f"{vector.axis.name}_first")
        place = f"({group} * {vector.threads} + {vector.thread})" if group != "0" else vector.thread
        context.out.line(f"const {context.index_type} {first} = {vector.start} + {place} * {width};")
        end = context.show(vector.axis.upper, 8)
        with context.out.block(f"if ({context.aligned_flag} && {first} + {width} <= {end})"):
            self._wide(group, first)
        name = vector.axis.name
        j = context.local("j")
        head = f"for (int {j} = 0; {j} < {width}; ++{j})"
        with context.out.block("else"), context.out.unrolled(head):
            context.out.line(f"const {context.index_type} {name} = {first} + {j};")
            with self._point(group), context.out.block(f"if ({name} < {end})"):
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
        context, width = self._context, self._vector.plan.vector
        names: dict[PackKey, str] = {}
        for key in dict.fromkeys(key for key, _ in self._read.values()):
            names[key] = name = context.names.fresh(f"{key.buffer}_in")
            pack = self._pack_type(key)
            context.out.line(
                f"const {pack} {name} = *reinterpret_cast<const {pack}*>(&{self._at(key, first)});"
            )
        results: dict[PackKey, str] = {}
        for key in dict.fromkeys(key for key, _ in self._written.values()):
            results[key] = name = context.names.fresh(f"{key.buffer}_out")
            context.out.line(f"{self._pack_type(key)} {name};")
        j = context.local("j")
        with context.out.unrolled(f"for (int {j} = 0; {j} < {width}; ++{j})"), self._point(group):
            for load, (key, offset) in self._read.items():
                context.values[load] = f"{names[key]}.at[{_element(j, key.step, offset)}]"
            values = [store.value for store in self._stores]
            if self._vector.axis.name in context.printed_symbols(values):
                context.out.line(f"const {context.index_type} {self._vector.axis.name} = {first} + {j};")
            printed = print_values(context, values)
            context.out.lines(printed.declarations)
            for store, text in zip(self._stores, printed.texts, strict=True):
                key, offset = self._written[store]
                context.out.line(f"{results[key]}.at[{_element(j, key.step, offset)}] = {text};")
        for key, name in results.items():
            pack = self._pack_type(key)
            context.out.line(f"*reinterpret_cast<{pack}*>(&{self._at(key, first)}) = {name};")

    def _pack_type(self, key: PackKey) -> str:
        return f"{self._context.pack}<{cuda_name(key.kind)}, {key.step * self._vector.plan.vector}>"

    def _at(self, key: PackKey, first: str) -> str:
        index = add(key.base, multiply(constant(key.step), Sym(first)))
        return f"{key.buffer}[{self._context.show(index)}]"


def _element(j: str, step: int, offset: int) -> str:
    scaled = f"{step} * {j}" if step > 1 else j
    return f"{scaled} + {offset}" if offset else scaled
