"""Shared memory: what threads of a block store before a barrier, any of them reads after it."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Loop, Sym
from kernelskill.algorithm.lifting.draft import changed_store, resolved
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.values import Layout, MemoryPlace, Pointer, Variable
from kernelskill.algorithm.model import Store
from kernelskill.algorithm.rewriting import substitute

SHARED = "#"
"""First character of buffers in shared memory."""
THREAD = "thread:"
"""First characters of loops over the threads that stored before a barrier."""


def is_shared(buffer: str) -> bool:
    """Whether a buffer lies in shared memory."""
    return buffer.startswith(SHARED)


def declare_shared(machine: Machine, node: Node, name: str, layout: Layout, shape: tuple[int, ...]) -> None:
    """Declare a variable or array that the threads of a block share."""
    buffer = f"{SHARED}{name}@{node.start_byte}"
    zero = integers.constant(0, "long long")
    if not shape:
        machine.declare(Variable(name, layout), MemoryPlace(buffer, zero, layout))
    else:
        machine.declare(Variable(name, layout, is_pointer=True), Pointer(buffer, zero, layout, shape[1:]))


def barrier(machine: Machine, node: Node) -> None:
    """Let every thread see what the others stored to shared memory so far.

    Raises:
        CannotLift: Not every thread of the block may reach the barrier.
    """
    if any(_is_of_thread(name) for test in machine.path for name in test.symbols):
        raise machine.refuse(node, "cooperative: only some threads of a block reach a barrier")
    for loop in machine.loops:
        if any(name.startswith("threadIdx") for name in machine.strided.get(loop.name, ())):
            raise machine.refuse(node, "cooperative: a barrier stands in a loop that threads share")
    machine.stores = [
        _published(machine, store) if is_shared(store.buffer) and not is_published(store) else store
        for store in machine.stores
    ]


def _is_of_thread(name: str) -> bool:
    return name.startswith("threadIdx.")


def is_published(store: Store) -> bool:
    """Whether a barrier came after a store, or no thread is told apart in it."""
    parts = (store.index, store.value, *store.guard)
    return not any(_is_of_thread(name) for part in parts for name in part.symbols)


def _published(machine: Machine, store: Store) -> Store:
    """Return a store of one thread as a store of all: its thread indices become loops."""
    for dimension in "xyz":
        name = f"threadIdx.{dimension}"
        if name not in machine.ranges:
            continue
        if not any(part.depends_on(name) for part in (store.index, store.value, *store.guard)):
            continue
        loop = Loop(machine.fresh(f"{THREAD}{dimension}"), *machine.ranges[name], "int")
        machine.ranges[loop.name] = machine.ranges[name]
        store = _with(machine, store, {name: loop.symbol})
        store = _chosen(machine, replace(store, loops=(*store.loops, loop)), loop)
    return _joined(machine, store)


def _joined(machine: Machine, store: Store) -> Store:
    """Make one loop of two that count through rows together: `for (r = 0; r < 32; r += 8)` over 8 threads."""
    own = [loop for loop in store.loops if loop not in machine.loops]
    for outer in own:
        for inner in own:
            joined = _pair(machine, store, outer, inner) if outer != inner else None
            if joined is not None:
                return _joined(machine, joined)
    return store


def _pair(machine: Machine, store: Store, outer: Loop, inner: Loop) -> Store | None:
    """Put `inner = whole - length * outer` everywhere; right where `outer` then drops out."""
    length, count = integers.value_of(inner.upper), integers.value_of(outer.upper)
    starts = integers.value_of(inner.lower), integers.value_of(outer.lower)
    if length is None or count is None or starts != (0, 0) or length < 1 or count < 1:
        return None
    whole = Loop(
        machine.fresh(inner.name.split("@")[0]), inner.lower, integers.constant(count * length), inner.kind
    )
    scaled = integers.multiply(outer.symbol, integers.constant(length))
    moved = _with(machine, store, {inner.name: integers.subtract(whole.symbol, scaled)})
    loops = tuple(whole if loop == inner else loop for loop in moved.loops if loop != outer)
    parts = (
        moved.index,
        moved.value,
        *moved.guard,
        *(bound for loop in loops for bound in (loop.lower, loop.upper)),
    )
    if any(part.depends_on(outer.name, inner.name) for part in parts):
        return None
    machine.ranges[whole.name] = (whole.lower, whole.upper)
    return replace(moved, loops=loops)


def _with(machine: Machine, store: Store, values: dict[str, Expression]) -> Store:
    ranges = machine.ranges
    return changed_store(store, lambda part: resolved(substitute(part, values), ranges))


def _chosen(machine: Machine, store: Store, loop: Loop) -> Store:
    """Use a guard that picks one thread, or one of every few."""
    for test in store.guard:
        if not isinstance(test, Binary) or test.op != "==":
            continue
        value, side = integers.value_of(test.right), test.left
        if value is None:
            value, side = integers.value_of(test.left), test.right
        rest = tuple(part for part in store.guard if part != test)
        if side == loop.symbol and value is not None:
            loops = tuple(entry for entry in store.loops if entry != loop)
            return _with(
                machine, replace(store, guard=rest, loops=loops), {loop.name: integers.constant(value)}
            )
        every = _stride(side, loop)
        count = integers.value_of(loop.upper)
        if value == 0 and every is not None and count is not None and count % every == 0:
            few = Loop(
                machine.fresh(loop.name.split("@")[0]), loop.lower, integers.constant(count // every), "int"
            )
            machine.ranges[few.name] = (few.lower, few.upper)
            loops = tuple(few if entry == loop else entry for entry in store.loops)
            moved = integers.multiply(few.symbol, integers.constant(every))
            return _with(machine, replace(store, guard=rest, loops=loops), {loop.name: moved})
    return store


def _stride(side: Expression, loop: Loop) -> int | None:
    """Return c of `thread % c`."""
    if isinstance(side, Binary) and side.op == "%" and side.left == loop.symbol:
        return integers.value_of(side.right)
    return None


def every_of(test: Expression, name: str) -> int | None:
    """Return c where a condition says that a symbol is a multiple of c."""
    if isinstance(test, Binary) and test.op == "==" and integers.value_of(test.right) == 0:
        return _stride(test.left, Loop(name, test.right, test.right))
    return None


def is_first(test: Expression, name: str) -> bool:
    """Whether a condition picks the first thread."""
    is_equal = isinstance(test, Binary) and test.op == "==" and integers.value_of(test.right) == 0
    return is_equal and isinstance(test, Binary) and isinstance(test.left, Sym) and test.left.name == name


def thread_symbols(machine: Machine) -> list[Sym]:
    """Return the thread indices that tell threads apart."""
    return [Sym(f"threadIdx.{d}", "unsigned") for d in "xyz" if f"threadIdx.{d}" in machine.ranges]
