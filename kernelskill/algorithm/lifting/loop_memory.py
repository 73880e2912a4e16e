"""Memory inside loops: elements kept from one iteration to the next, and whether iterations interfere."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Loop, Sym
from kernelskill.algorithm.lifting.machine import Machine, Read, Snapshot
from kernelskill.algorithm.lifting.memory import is_injective, solve, stored_value
from kernelskill.algorithm.model import CannotLift, Store
from kernelskill.algorithm.printing import show


@dataclass(frozen=True)
class Cell:
    """An element that every iteration of a loop stores to."""

    buffer: str
    index: Expression
    kind: str
    state: Sym
    initial: Expression
    guard: tuple[Expression, ...]
    """Conditions of all its stores that hold for a whole loop or not at all."""

    certain: bool = True
    """Whether it is stored to whenever the loop is reached, or at least whenever an iteration runs."""

    def assumed(self, loops: tuple[Loop, ...]) -> Store:
        """Return the store that gives the cell its value at the start of an iteration."""
        return Store(self.buffer, self.index, self.state, loops, (), "=", self.kind)

    def is_target(self, entry: Store) -> bool:
        """Whether a store goes to this cell."""
        return (entry.buffer, entry.index, entry.mode) == (self.buffer, self.index, "=")


def new_cells(
    machine: Machine, stores: list[Store], known: list[Cell], start: Snapshot, loop: Loop
) -> list[Cell]:
    """Return elements that an iteration stores to whatever its number, other than those known.

    Raises:
        CannotLift: A whole array is such a place.
    """
    found: list[Cell] = []
    for entry in stores:
        if entry.mode != "=" or entry.index.depends_on(loop.name):
            continue
        if any(cell.is_target(entry) for cell in (*known, *found)):
            continue
        if len(entry.loops) > len(start.loops) + 1:
            raise CannotLift(f"{entry.buffer} is accumulated element by element in an outer loop")
        twins = [s for s in stores if (s.buffer, s.index, s.mode) == (entry.buffer, entry.index, "=")]
        guard = _steady_guard(twins, start, loop)
        path, machine.path = machine.path, (*start.path, *guard)
        initial = stored_value(machine, entry.buffer, entry.index, entry.kind, len(start.stores))
        machine.path = path
        state = Sym(machine.fresh(f"%{entry.buffer}"), entry.kind)
        certain = any(_holds_with(s, start, guard) for s in (*twins, *_earlier(start, entry)))
        found.append(Cell(entry.buffer, entry.index, entry.kind, state, initial, guard, certain))
    return found


def _earlier(start: Snapshot, entry: Store) -> list[Store]:
    return [s for s in start.stores if (s.buffer, s.index, s.mode) == (entry.buffer, entry.index, "=")]


def _holds_with(entry: Store, start: Snapshot, guard: tuple[Expression, ...]) -> bool:
    return set(entry.guard) <= {*start.path, *guard}


def _steady_guard(twins: list[Store], start: Snapshot, loop: Loop) -> tuple[Expression, ...]:
    """Return conditions shared by stores that no iteration changes."""
    return tuple(
        test
        for test in twins[0].guard
        if test not in start.path
        and not test.depends_on(loop.name)
        and not any(name.startswith("%") for name in test.symbols)
        and all(test in other.guard for other in twins)
    )


def check_dependences(machine: Machine, reads: list[Read], stores: list[Store], loop: Loop) -> None:
    """Check that no iteration of a loop reads what another one stores, other than cells.

    Raises:
        CannotLift: It may be so.
    """
    for entry in stores:
        if entry.mode != "=" or not entry.index.depends_on(loop.name):
            continue
        own = tuple(inner for inner in entry.loops if inner not in machine.loops)
        for read in reads:
            if read.buffer != entry.buffer:
                continue
            same = solve(entry.index, read.index, own, machine.ranges, machine.strided)
            if same is not None and (not own or is_injective(entry.index, (loop, *own))):
                continue
            if not apart(entry.index, read.index, tuple(n for n in (loop, *own))):
                where = f"{entry.buffer}[{show(read.index)}] and {entry.buffer}[{show(entry.index)}]"
                raise CannotLift(f"iterations of a loop depend on one another through {where}")


def apart(first: Expression, second: Expression, loops: tuple[Loop, ...]) -> bool:
    """Whether two indices differ whatever values the loops have in either: a distance that no step bridges."""
    names = [loop.name for loop in loops]
    fixed = integers.without(first, *names), integers.without(second, *names)
    distance = integers.value_of(integers.subtract(*fixed))
    if distance is None:
        return False
    step = 0
    for expression, rest in zip((first, second), fixed, strict=True):
        for factor in integers.terms_of(integers.subtract(expression, rest)).values():
            step = gcd(step, factor)
    return distance % step != 0 if step else distance != 0
