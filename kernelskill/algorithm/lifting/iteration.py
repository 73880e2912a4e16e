"""One symbolic iteration of a loop: find what it carries, then close it over the loop's range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Loop, Reduce, Sym
from kernelskill.algorithm.lifting import loop_memory
from kernelskill.algorithm.lifting.arithmetic import binary, is_plain_index, recurrent_symbols
from kernelskill.algorithm.lifting.loop_headers import Header
from kernelskill.algorithm.lifting.loop_memory import Cell
from kernelskill.algorithm.lifting.machine import Machine, Snapshot, select
from kernelskill.algorithm.lifting.memory import stored_value
from kernelskill.algorithm.lifting.partials import marked
from kernelskill.algorithm.lifting.recurrences import Carried, Closer
from kernelskill.algorithm.lifting.sharing import is_shared
from kernelskill.algorithm.lifting.values import (
    Pointer,
    Poison,
    Slot,
    Value,
    at_position,
    position_of,
    scalars_of,
)
from kernelskill.algorithm.model import CannotLift, Store
from kernelskill.algorithm.rewriting import substitute
from kernelskill.algorithm.types import is_integer

ACCUMULATED = "is accumulated in a register and stored once"
"""End of the note about an element that the source updates in memory in every iteration."""


@dataclass
class Iteration:
    """An iteration being executed again until everything that it carries is known."""

    machine: Machine
    node: Node
    start: Snapshot
    header: Header
    states: dict[Slot, Sym] = field(default_factory=dict)
    """Variables it carries, as symbols."""
    closed: dict[Slot, Expression] = field(default_factory=dict)
    """Variables that move by a fixed amount, with that amount."""
    unset: set[Slot] = field(default_factory=set)
    """Variables without a value before the loop."""
    cells: list[Cell] = field(default_factory=list)
    """Elements of buffers it carries."""
    totals: dict[str, Store] = field(default_factory=dict)
    """Atomic sums of integers that are added up over the loop first."""
    clobbered: set[str] = field(default_factory=set)
    """Shared memory that it stores to: what was there before is gone."""
    written: dict[str, list[Store]] = field(default_factory=dict)
    """The stores of an iteration to each cell."""
    first_read: int = -1
    first_store: int = 0
    first_shared_read: int = 0
    began: dict[int, Value | None] = field(default_factory=dict)

    @property
    def upper(self) -> Expression:
        """The loop's end; marked where each thread has some of the iterations only."""
        return (
            marked(self.header.loop.upper, self.header.shared)
            if self.header.shared
            else self.header.loop.upper
        )

    def begin(self) -> None:
        """Set the machine to the start of an iteration."""
        machine, loop = self.machine, self.header.loop
        if self.first_read < 0:
            self.first_read = len(machine.reads)
        machine.restore(self.start)
        del machine.reads[self.first_read :]
        machine.loops = (*self.start.loops, loop)
        variable = self.header.variable
        machine.slots[variable] = at_position(machine.slots[variable], self.header.value)
        for slot, state in self.states.items():
            value = machine.scalar_at(slot)
            machine.set_scalar(slot, replace(value, offset=state) if isinstance(value, Pointer) else state)
        done = integers.subtract(loop.symbol, loop.lower)
        for slot, amount in self.closed.items():
            machine.set_scalar(slot, _moved(machine.scalar_at(slot), integers.multiply(amount, done)))
        machine.stores = [store for store in machine.stores if store.buffer not in self.clobbered]
        machine.stores += [cell.assumed(machine.loops) for cell in self.cells]
        self.first_store, self.first_shared_read = len(machine.stores), len(machine.shared_reads)
        self.began = dict(machine.slots)

    @property
    def stores(self) -> list[Store]:
        """The stores of this iteration."""
        return self.machine.stores[self.first_store :]

    def learn(self) -> bool:
        """Find more that the loop carries after an iteration; returns whether to execute it again."""
        shared = {store.buffer for store in self.stores if is_shared(store.buffer)} - self.clobbered
        if self.header.shared:
            shared = set()
        self.clobbered |= shared
        return bool(shared) or self._learn_variables() or self._learn_closed() or self._learn_cells()

    def _learn_variables(self) -> bool:
        found = False
        for slot in self._changed():
            if slot in self.states or slot in self.closed or slot in self.unset:
                continue
            before = _part(self.began[slot[0]], slot[1])
            if before is None:
                self.unset.add(slot)
            else:
                name = self.machine.fresh(f"%{self.machine.variables[slot[0]].name}")
                kind = "long long" if isinstance(before, Pointer) else self.machine.kind_of(slot)
                self.states[slot] = Sym(name, kind)
                found = True
        return found

    def _changed(self) -> list[Slot]:
        changed: list[Slot] = []
        for number in self.start.slots:
            before, after = self.began[number], self.machine.slots[number]
            if before == after or number == self.header.variable:
                continue
            parts = scalars_of(after)
            if parts is None:
                changed.append((number, None))
                continue
            held = scalars_of(before) or (None,) * len(parts)
            changed += [(number, k) for k, part in enumerate(parts) if part != held[k]]
        return changed

    def _learn_closed(self) -> bool:
        if self.header.shared:
            return False
        own = {state.name for state in self.states.values()} | {self.header.loop.name}
        found = False
        for slot, state in list(self.states.items()):
            end = self.machine.scalar_at(slot)
            end = end.offset if isinstance(end, Pointer) else end
            if not isinstance(end, Expression) or not is_integer(end.type):
                continue
            amount = integers.subtract(end, state)
            if not amount.depends_on(*own) and is_plain_index(amount) and not recurrent_symbols(amount):
                del self.states[slot]
                self.closed[slot] = amount
                found = True
        return found

    def _learn_cells(self) -> bool:
        stores = [store for store in self.stores if not is_shared(store.buffer)]
        fresh = loop_memory.new_cells(self.machine, stores, self.cells, self.start, self.header.loop)
        self.cells += fresh
        return bool(fresh)

    # -- closing

    def finish(self) -> None:
        """Leave the machine as after the whole loop.

        Raises:
            CannotLift: What the loop carries or stores has no form.
        """
        machine, header = self.machine, self.header
        self._check_variable()
        self._check_spread()
        loop_memory.check_dependences(machine, machine.reads[self.first_read :], self.stores, header.loop)
        if not header.shared:
            loop_memory.check_order(machine, self.stores, header.loop)
        self.written = {cell.state.name: [s for s in self.stores if cell.is_target(s)] for cell in self.cells}
        closer = Closer(header.loop, self._carried(), machine.fresh_names)
        own = closer.carried.keys()
        if header.loop.lower.depends_on(*own) or header.loop.upper.depends_on(*own):
            raise machine.refuse(self.node, "the loop's end changes inside it")
        kept = [store for store in self.start.stores if store.buffer not in self.clobbered]
        stores = [*kept, *self._closed_stores(closer), *self._totals(closer)]
        ends = {slot: self._after(slot, closer) for slot in (*self.states, *self.unset)}
        named = [entry for entry in machine.named if not recurrent_symbols(entry.expression)]
        machine.restore(self.start)
        machine.stores, machine.named = stores, named
        machine.slots[header.variable] = at_position(machine.slots[header.variable], header.final)
        for slot, value in ends.items():
            machine.set_scalar(slot, value)
            if slot[1] is None:
                machine.name_value(machine.variables[slot[0]], value)
        self._move_closed()
        for cell in self.cells:
            self._store_cell(cell, closer)

    def _check_spread(self) -> None:
        """Refuse iterations spread over threads that ask for the thread in another way, too."""
        used = self.header.shared
        ends = [_end(self.machine.scalar_at(slot)) for slot in self.states]
        parts = [part for store in self.stores for part in (store.index, store.value, *store.guard)]
        if used and any(part.depends_on(*used) for part in (*parts, *ends)):
            reason = "an iteration of a loop that threads share depends on the thread in another way, too"
            raise self.machine.refuse(self.node, reason)

    def _check_variable(self) -> None:
        end = position_of(self.machine.slots[self.header.variable])
        if end != integers.add(self.header.value, self.header.step):
            raise self.machine.refuse(self.node, "the loop's variable is changed in another way, too")

    def _carried(self) -> dict[str, Carried]:
        machine = self.machine
        found: dict[str, Carried] = {}
        for slot, state in self.states.items():
            initial, end = _part(self.start.slots[slot[0]], slot[1]), self.machine.scalar_at(slot)
            if isinstance(initial, Pointer) and isinstance(end, Pointer) and initial.buffer == end.buffer:
                initial, end = initial.offset, end.offset
            if isinstance(initial, Expression) and isinstance(end, Expression):
                found[state.name] = Carried(state, initial, end)
            else:
                reason = f"{self.machine.variables[slot[0]].name} changes in a loop in a way that is not understood"
                raise self.machine.refuse(self.node, reason)
        for cell in self.cells:
            with_guard = self.machine.path
            self.machine.path = (*self.start.path, *cell.guard)
            end = stored_value(self.machine, cell.buffer, cell.index, cell.kind, len(self.machine.stores))
            self.machine.path = with_guard
            found[cell.state.name] = Carried(cell.state, cell.initial, end)
        for entry in self.stores:
            if self._is_total(entry, found.keys()):
                state = Sym(machine.fresh("%total"), entry.kind)
                found[state.name] = self._total(entry, state)
                self.totals[state.name] = entry
        return found

    def _is_total(self, entry: Store, states: Iterable[str]) -> bool:
        """Whether an atomic sum of integers can be added up first: it is under a state that the loop carries."""
        loop = self.header.loop
        whole = entry.mode == "+" and is_integer(entry.kind) and entry.loops == (*self.start.loops, loop)
        carried = any(part.depends_on(*states) for part in (entry.value, *entry.guard))
        return whole and carried and not entry.index.depends_on(loop.name, *states)

    def _total(self, entry: Store, state: Sym) -> Carried:
        zero = integers.constant(0, entry.kind)
        tests = [test for test in entry.guard if test not in self.start.path]
        added = select(integers.conjunction(tests), entry.value, zero) if tests else entry.value
        return Carried(state, zero, binary("+", state, added, self.machine.ranges))

    def _totals(self, closer: Closer) -> list[Store]:
        """Return one atomic for each sum of a whole loop."""
        found: list[Store] = []
        for name, entry in self.totals.items():
            value = closer.at(name, self.header.loop.upper)
            if value is None:
                raise self.machine.refuse(
                    self.node, f"what is added to {entry.buffer} in the loop has no start"
                )
            found.append(replace(entry, value=value, guard=self.start.path, loops=self.start.loops))
        return found

    def _closed_stores(self, closer: Closer) -> list[Store]:
        found: list[Store] = []
        for entry in self.stores:
            if any(cell.is_target(entry) for cell in self.cells) or entry in self.totals.values():
                continue
            if is_shared(entry.buffer) and self.header.shared:
                found.append(entry)
                continue
            if is_shared(entry.buffer) and not self._only_stores(entry.buffer):
                continue
            if entry.index.depends_on(*closer.carried):
                reason = f"{entry.buffer} is stored to at a place that the loop computes step by step"
                raise self.machine.refuse(self.node, reason)
            if self.header.shared and any(p.depends_on(*closer.carried) for p in (entry.value, *entry.guard)):
                reason = f"cooperative: what is stored to {entry.buffer} depends on one thread's iterations"
                raise self.machine.refuse(self.node, reason)
            parts = [closer.replaced(part) for part in (entry.value, *entry.guard)]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                raise self.machine.refuse(
                    self.node, f"what is stored to {entry.buffer} in the loop has no start"
                )
            found.append(replace(entry, value=known[0], guard=tuple(known[1:])))
        return found

    def _only_stores(self, buffer: str) -> bool:
        """Whether iterations fill shared memory and none of them reads it."""
        return all(read.buffer != buffer for read in self.machine.shared_reads[self.first_shared_read :])

    def _after(self, slot: Slot, closer: Closer) -> Value:
        name = self.machine.variables[slot[0]].name
        state = self.states.get(slot)
        if state is None:
            return self._last(slot, closer)
        value = closer.at(state.name, self.upper)
        if value is None or self._is_last_of_shared(closer, state.name):
            return Poison(f"{name} has no known value after the loop")
        before = _part(self.start.slots[slot[0]], slot[1])
        return replace(before, offset=value) if isinstance(before, Pointer) else value

    def _is_last_of_shared(self, closer: Closer, name: str) -> bool:
        return bool(self.header.shared) and not closer.carried[name].end.symbols & closer.carried.keys()

    def _last(self, slot: Slot, closer: Closer) -> Value:
        """Return what the last iteration left in a variable without a value before."""
        name, end = self.machine.variables[slot[0]].name, self.machine.scalar_at(slot)
        if not isinstance(end, Expression) or self.header.shared or end.symbols & closer.carried.keys():
            return Poison(f"{name} keeps what the last iteration of a loop gave")
        upper = self.header.loop.upper
        return substitute(end, {self.header.loop.name: integers.add(upper, integers.constant(1), -1)})

    def _move_closed(self) -> None:
        loop = self.header.loop
        extent = integers.subtract(loop.upper, loop.lower)
        total: Expression = extent
        known = integers.value_of(extent)
        if known is not None:
            total = integers.constant(max(known, 0))
        elif not integers.is_non_negative(extent, self.machine.ranges):
            test = integers.compared("<", loop.lower, loop.upper)
            total = integers.selected(test, extent, integers.constant(0))
        for slot, amount in self.closed.items():
            moved = _moved(self.machine.scalar_at(slot), integers.multiply(amount, total))
            self.machine.set_scalar(slot, moved)

    def _any_iteration(self, cell: Cell) -> tuple[Expression, ...]:
        """Return the condition that some iteration stores to a cell, where it may be that none does."""
        if cell.certain:
            return ()
        loop = self.header.loop
        known = {*self.start.path, *cell.guard}
        tests = [
            integers.conjunction(test for test in store.guard if test not in known)
            for store in self.written[cell.state.name]
        ]
        either = tests[0]
        for test in tests[1:]:
            either = binary("||", either, test, self.machine.ranges)
        if recurrent_symbols(either):
            raise self.machine.refuse(
                self.node, f"{cell.buffer} is stored to under a condition that the loop carries"
            )
        name = self.machine.fresh(loop.name.split("@")[0])
        renamed = Loop(name, loop.lower, loop.upper, loop.kind)
        body = substitute(either, {loop.name: renamed.symbol})
        return (Reduce("||", (renamed,), body, integers.constant(0, "bool"), "bool"),)

    def _store_cell(self, cell: Cell, closer: Closer) -> None:
        value = closer.at(cell.state.name, self.upper)
        if value is None:
            raise CannotLift(f"{cell.buffer} is accumulated in memory in a way that is not understood")
        guard = (*self.start.path, *cell.guard, *self._any_iteration(cell))
        entry = Store(cell.buffer, cell.index, value, self.start.loops, guard, "=", cell.kind)
        self.machine.stores.append(entry)
        note = f"{cell.buffer} {ACCUMULATED}"
        if note not in self.machine.notes:
            self.machine.notes.append(note)


def _part(value: Value | None, part: int | None) -> Value | None:
    if part is None:
        return value
    parts = scalars_of(value)
    return parts[part] if parts is not None else None


def _end(value: Value | None) -> Expression:
    found = position_of(value)
    return found if found is not None else integers.constant(0)


def _moved(value: Value | None, distance: Expression) -> Value:
    if isinstance(value, Pointer):
        return replace(value, offset=integers.typed(integers.add(value.offset, distance), "long long"))
    if isinstance(value, Expression):
        return integers.typed(integers.add(value, distance), value.type)
    raise CannotLift("a variable moves in a loop in a way that is not understood")
