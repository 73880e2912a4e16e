"""Memory inside loops: elements kept from one iteration to the next, and whether iterations interfere."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Loop, Sym
from kernelskill.algorithm.lifting.bounds import at_least
from kernelskill.algorithm.lifting.machine import Machine, Read, Snapshot
from kernelskill.algorithm.lifting.memory import is_injective, solve, stored_value
from kernelskill.algorithm.lifting.sharing import is_shared
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


def check_order(machine: Machine, stores: list[Store], loop: Loop) -> None:
    """Check that doing each store of a loop for all iterations, one store after the other, changes nothing.

    Raises:
        CannotLift: One iteration may store where another one does, and which is last would be lost.
    """
    for entry in stores:
        inner = tuple(each for each in entry.loops if each not in machine.loops)
        own = (loop, *(each for each in inner if each != loop))
        moves = entry.mode == "=" and entry.index.depends_on(loop.name) and not is_shared(entry.buffer)
        if moves and not is_injective(entry.index, own):
            raise CannotLift(f"iterations of a loop may store to one element of {entry.buffer}")
    for position, second in enumerate(stores):
        for first in stores[:position]:
            atomic = first.mode == second.mode != "="
            if (
                first.buffer == second.buffer
                and not atomic
                and not _keeps_order(machine, first, second, loop)
            ):
                where = f"{first.buffer}[{show(first.index)}] and {second.buffer}[{show(second.index)}]"
                raise CannotLift(f"iterations of a loop may store to one element as {where}")


def _keeps_order(machine: Machine, first: Store, second: Store, loop: Loop) -> bool:
    """Whether no iteration makes the first store to a cell after another made the second store to it."""
    own = tuple(dict.fromkeys(e for s in (first, second) for e in s.loops if e not in machine.loops))
    inner = tuple(each for each in own if each != loop)
    if apart(first.index, second.index, (loop, *inner)):
        return True
    if first.index == second.index:
        # A cell that every iteration stores to is a state of the loop, and in order.
        return not first.index.depends_on(loop.name) or is_injective(first.index, (loop, *inner))
    if inner:
        return False
    factor = integers.coefficient(first.index, loop.name)
    distance = integers.subtract(second.index, first.index)
    if factor is None or distance.depends_on(loop.name) or integers.value_of(factor) == 0:
        return False
    # They meet where the first is this many iterations behind the second.
    behind, rest = integers.exact_division(distance, factor)
    if integers.value_of(rest) != 0:
        return False
    extent = integers.subtract(loop.upper, loop.lower)
    earlier = integers.multiply(behind, integers.constant(-1))
    return integers.is_non_negative(earlier, machine.ranges) or at_least(behind, extent)


def apart(first: Expression, second: Expression, loops: tuple[Loop, ...]) -> bool:
    """Whether two indices differ whatever values the loops have in either: a distance that no step bridges."""
    return integers.never_equal(first, second, (loop.name for loop in loops))
