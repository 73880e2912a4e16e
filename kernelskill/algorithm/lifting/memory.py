"""Loads and stores of one thread: its own earlier stores are forwarded exactly, everything else is entry memory."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from math import gcd

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Load, Loop, Reduce, Sym
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.lifting.bounds import at_least, least, most, rescaled
from kernelskill.algorithm.lifting.machine import Machine, Read, select
from kernelskill.algorithm.lifting.recurrences import joined_with, neutral_of
from kernelskill.algorithm.lifting.sharing import every_of, is_first, is_published, is_shared
from kernelskill.algorithm.model import CannotLift, Store, StoreMode
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.rewriting import substitute


class Overlap(Enum):
    """How the cells of two accesses relate."""

    NEVER = "never"
    UNKNOWN = "unknown"


def load(machine: Machine, buffer: str, index: Expression, kind: str) -> Expression:
    """Return what a load reads: what this thread stored there before, or memory at entry."""
    if is_shared(buffer):
        machine.shared_reads.append(Read(buffer, index, kind))
        multiple = _of_multiples(machine, buffer, index, kind)
        if multiple is not None:
            return multiple
    else:
        machine.reads.append(Read(buffer, index, kind))
    return stored_value(machine, buffer, index, kind, len(machine.stores))


def _of_multiples(machine: Machine, buffer: str, index: Expression, kind: str) -> Expression | None:
    """Return what a shared element holds where only every so many threads come here; None elsewhere."""
    for test in machine.path:
        for name in sorted(index.symbols):
            count = integers.value_of(machine.ranges[name][1]) if name.startswith("threadIdx.") else None
            every = count if is_first(test, name) else every_of(test, name)
            if every is None or every < 2 or count is None or count % every:
                continue
            few = Sym(machine.fresh("few"), "int")
            machine.ranges[few.name] = (integers.constant(0), integers.constant(count // every))
            moved = substitute(index, {name: integers.multiply(few, integers.constant(every))})
            found = stored_value(machine, buffer, moved, kind, len(machine.stores))
            return rescaled(found, few.name, every, Sym(name, "unsigned"))
    return None


def stored_value(machine: Machine, buffer: str, index: Expression, kind: str, count: int) -> Expression:
    """Return what a cell holds after the first `count` stores."""
    for position in range(count - 1, -1, -1):
        earlier = machine.stores[position]
        if earlier.buffer != buffer:
            continue
        found = same_cell(earlier, index, machine)
        if found is Overlap.NEVER:
            _check_phase(machine, earlier, index)
            continue
        total = _atomic_total(machine, earlier, index, position)
        if total is not None:
            return total
        if isinstance(found, Overlap) or earlier.mode != "=":
            if is_shared(buffer):
                raise CannotLift("cooperative: shared memory is read in a way that is not understood")
            what = "an atomic on it" if earlier.mode != "=" else f"a store to {_cell(earlier)}"
            raise CannotLift(f"{buffer}[{show(index)}] is read after {what}")
        value = substitute(earlier.value, found)
        conditions = [substitute(test, found) for test in earlier.guard]
        open_conditions = [test for test in conditions if machine.holds(test) is not True]
        if not open_conditions:
            return value
        before = stored_value(machine, buffer, index, kind, position)
        return select(integers.conjunction(open_conditions), value, before)
    return Load(buffer, index, kind)


def _check_phase(machine: Machine, earlier: Store, index: Expression) -> None:
    """Refuse to read what another thread may be storing since the last barrier."""
    if not is_shared(earlier.buffer) or is_published(earlier):
        return
    names = {f"threadIdx.{dimension}" for dimension in "xyz"}
    if earlier.index.symbols & names and not never_meet(earlier.index, index, tuple(_threads(machine))):
        raise CannotLift("cooperative: a thread reads what others store without a barrier between")


def _threads(machine: Machine) -> list[Loop]:
    return [Loop(name, *bounds) for name, bounds in machine.ranges.items() if name.startswith("threadIdx.")]


def _atomic_total(machine: Machine, earlier: Store, index: Expression, position: int) -> Expression | None:
    """Return what threads have added to one shared element; None where that is not what a store is."""
    if not is_shared(earlier.buffer) or earlier.mode == "=" or not is_published(earlier):
        return None
    own = tuple(loop for loop in earlier.loops if loop not in machine.loops)
    names = [loop.name for loop in own]
    if earlier.index != index or earlier.index.depends_on(*names):
        return None
    before = stored_value(machine, earlier.buffer, index, earlier.kind, position)
    if not own:
        return None
    lanes = {loop.name: Sym(machine.fresh(f"lane:{loop.name}"), "int") for loop in own}
    loops = tuple(Loop(lanes[loop.name].name, loop.lower, loop.upper) for loop in own)
    neutral = neutral_of(earlier.mode, earlier.kind)
    if neutral is None:
        return None
    tests = [substitute(test, lanes) for test in earlier.guard if machine.holds(test) is not True]
    value = substitute(earlier.value, lanes)
    body = select(integers.conjunction(tests), value, neutral) if tests else value
    joined = Reduce(earlier.mode, loops, body, neutral, earlier.kind)
    return joined_with(earlier.mode, before, joined)


def store(machine: Machine, buffer: str, index: Expression, value: Expression, kind: str) -> None:
    """Record a plain store under the conditions on the way."""
    add_store(machine, buffer, index, value, kind, "=")


def add_store(
    machine: Machine, buffer: str, index: Expression, value: Expression, kind: str, mode: StoreMode
) -> None:
    """Record a store or an atomic under the conditions on the way."""
    machine.stores.append(Store(buffer, index, value, machine.loops, machine.path, mode, kind))


def _cell(entry: Store) -> str:
    return f"{entry.buffer}[{show(entry.index)}]"


def same_cell(earlier: Store, index: Expression, machine: Machine) -> dict[str, Expression] | Overlap:
    """Relate a cell to those that a store writes.

    Returns:
        Values of the store's own finished loops at which it writes exactly this cell.
    """
    own = tuple(loop for loop in earlier.loops if loop not in machine.loops)
    strided = {} if is_shared(earlier.buffer) and is_published(earlier) else machine.strided
    solved = solve(earlier.index, index, own, machine.here(), strided)
    if solved is not None and (len(own) < 2 or is_injective(earlier.index, own)):
        return solved
    if never_meet(earlier.index, index, own):
        return Overlap.NEVER
    return Overlap.UNKNOWN


def solve(
    pattern: Expression,
    index: Expression,
    own: tuple[Loop, ...],
    ranges: Ranges,
    strided: Mapping[str, tuple[str, ...]],
    *,
    at_ends: bool = False,
) -> dict[str, Expression] | None:
    """Find values of loops within their ranges that make one index another; None where that isn't proven.

    Iterations of a loop that threads share count only where the same thread has them. With `at_ends`, the
    first and last iteration count even where the loop may have none.
    """
    values: dict[str, Expression] = {}
    rest = index
    factors = [(loop, integers.coefficient(pattern, loop.name)) for loop in own]
    if any(factor is None for _, factor in factors):
        return None
    names = [loop.name for loop in own]
    rest = integers.subtract(index, integers.without(pattern, *names))
    ordered = sorted(factors, key=lambda entry: _weight(entry[1]), reverse=True)
    for loop, factor in ordered:
        if factor is None or integers.value_of(factor) == 0:
            return None
        quotient, rest = integers.exact_division(rest, factor)
        if not _is_inside(quotient, loop, ranges, at_ends=at_ends) or not _is_own(quotient, loop, strided):
            return None
        values[loop.name] = quotient
    return values if integers.value_of(rest) == 0 else None


def _weight(factor: Expression | None) -> tuple[int, int]:
    if factor is None:
        return (0, 0)
    terms = integers.terms_of(factor)
    degree = max((len(monomial) for monomial in terms), default=0)
    return (degree, max((abs(count) for count in terms.values()), default=0))


def _is_inside(value: Expression, loop: Loop, ranges: Ranges, *, at_ends: bool) -> bool:
    """Whether a value provably lies in a loop's range.

    Args:
        value: An index.
        loop: The loop.
        ranges: Ranges of other loops and axes.
        at_ends: Whether the first and last values count, which an empty range does not have.
    """
    if value == loop.symbol:
        return True
    last = integers.add(loop.upper, integers.constant(1), -1)
    if at_ends and (value in (loop.lower, last)):
        return True
    return at_least(least(value, ranges), loop.lower) and at_least(last, most(value, ranges))


def _is_own(value: Expression, loop: Loop, strided: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether an iteration of a loop that threads share belongs to the thread that asks."""
    if loop.name not in strided:
        return True
    return isinstance(value, Sym) and strided.get(value.name) == strided[loop.name]


def never_meet(first: Expression, second: Expression, own: tuple[Loop, ...]) -> bool:
    """Whether two indices differ whatever values the loops have: a constant distance that no step bridges."""
    names = [loop.name for loop in own]
    moving = integers.subtract(first, integers.without(first, *names)) if names else integers.constant(0)
    distance = integers.value_of(integers.subtract(second, integers.subtract(first, moving)))
    if distance is None:
        return False
    step = 0
    for factor in integers.terms_of(moving).values():
        step = gcd(step, factor)
    return distance % step != 0 if step else distance != 0


def is_injective(index: Expression, loops: tuple[Loop, ...]) -> bool:
    """Whether different values of loops give different indices: digits of a mixed radix."""
    factors: list[tuple[Expression, Loop]] = []
    for loop in loops:
        factor = integers.coefficient(index, loop.name)
        if factor is None or integers.value_of(factor) == 0:
            return False
        factors.append((factor, loop))
    ordered = sorted(factors, key=lambda entry: _size(entry[0]))
    for (low, loop), (high, _) in pairwise(ordered):
        reach = integers.multiply(low, integers.subtract(loop.upper, loop.lower))
        quotient, rest = integers.exact_division(high, reach) if _is_term(reach) else (high, high)
        known = integers.value_of(integers.subtract(high, reach))
        fits = integers.value_of(rest) == 0 and integers.value_of(quotient) != 0
        if not fits and not (known is not None and known >= 0):
            return False
    return True


def _is_term(expression: Expression) -> bool:
    return len(integers.terms_of(expression)) == 1


def _size(factor: Expression) -> tuple[int, int]:
    terms = integers.terms_of(factor)
    return (max(map(len, terms), default=0), max(map(abs, terms.values()), default=0))
