"""Values that cross threads: sums over shared memory and over the lanes of a warp."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Call, Expression, Sym
from kernelskill.algorithm.lifting.arithmetic import binary
from kernelskill.algorithm.lifting.bounds import rescaled, slack_of
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.partials import (
    FIRST_LANE,
    LANE,
    Group,
    joined_pair,
    operation,
    over_threads,
)
from kernelskill.algorithm.lifting.sharing import is_shared, thread_symbols
from kernelskill.algorithm.lifting.values import CrossLane
from kernelskill.algorithm.rewriting import substitute

_WARP = 32
_LANES = "%lanes"
_SHUFFLES = {
    "__shfl_xor_sync": "xor",
    "__shfl_xor": "xor",
    "__shfl_down_sync": "down",
    "__shfl_down": "down",
}


def joined_in_shared(machine: Machine, buffer: str, index: Expression, value: Expression) -> Expression:
    """Return what is stored to shared memory; a sum with another thread's element as a reduction."""
    if not is_shared(buffer):
        return value
    reads = [read.index for read in machine.shared_reads[-4:] if read.buffer == buffer]
    distances = [
        known
        for first in reads
        for second in reads
        if (known := integers.value_of(integers.subtract(second, first))) is not None and known > 0
    ]
    for thread in thread_symbols(machine):
        found = _joined_along(machine, thread, index, value, distances)
        if found is not None:
            return found
    return value


def _joined_along(
    machine: Machine, thread: Sym, index: Expression, value: Expression, distances: list[int]
) -> Expression | None:
    """Join over threads; where threads are so many elements apart, over elements."""
    factor = integers.coefficient(index, thread.name)
    step = integers.value_of(factor) if factor is not None else None
    lane = machine.fresh(LANE)
    if step is None or step < 2:
        return joined_pair(value, thread, distances, machine.groups, lane)
    cell = Sym(f"cell.{thread.name}", "int")
    moved = rescaled(value, thread.name, step, cell)
    found = joined_pair(moved, cell, distances, machine.groups, lane) if moved is not None else None
    if found is None:
        return None
    return substitute(found, {cell.name: integers.multiply(thread, integers.constant(step))})


def shuffle(machine: Machine, node: Node, name: str, arguments: list[Node]) -> CrossLane | None:
    """Return the value of a shuffle by a known distance; None for other calls.

    Raises:
        CannotLift: The shuffle is of a kind that is not understood.
    """
    if name not in _SHUFFLES:
        return None
    values = [machine.number(argument) for argument in arguments]
    operands = values[1:] if name.endswith("_sync") else values
    distance = integers.value_of(operands[1]) if len(operands) > 1 else None
    width = integers.value_of(operands[2]) if len(operands) > 2 else _WARP
    if distance is None or width != _WARP or _lane_symbol(machine) is None:
        raise machine.refuse(
            node, f"cooperative: threads exchange values by {name!r} in a way that is not understood"
        )
    return CrossLane(operands[0], _SHUFFLES[name], distance)


def _lane_symbol(machine: Machine) -> Sym | None:
    """Return the thread index whose consecutive values are the lanes of warps."""
    threads = integers.value_of(machine.builtins.get("blockDim.x", integers.constant(0)))
    return (
        Sym("threadIdx.x", "unsigned") if threads is not None and threads and threads % _WARP == 0 else None
    )


def join_lanes(machine: Machine, node: Node, op: str, own: Expression, other: CrossLane) -> Expression:
    """Return `v op shuffle(v)`: after all five distances, the reduction over a warp.

    Raises:
        CannotLift: The shuffle is of another value, or a distance is missing or out of order.
    """
    thread = _lane_symbol(machine)
    part, seen, how = own, 0, other.how
    if isinstance(own, Call) and own.function == f"{_LANES}:{op}:{how}":
        part, seen = own.arguments[0], integers.value_of(own.arguments[1]) or 0
    fits = other.distance in (1, 2, 4, 8, 16) and not seen & other.distance
    in_order = how == "xor" or seen == (_WARP - 2 * other.distance)
    if other.source != own or thread is None or not fits or not in_order or not _is_whole_warp(machine):
        raise machine.refuse(node, "cooperative: lanes exchange values in a way that is not understood")
    seen |= other.distance
    if seen != _WARP - 1:
        return Call(f"{_LANES}:{op}:{how}", (part, integers.constant(seen)), part.type)
    lane = machine.fresh(LANE)
    first: Expression = thread
    whole = over_threads(op, Group(part, 1, _WARP), thread, lane)
    if whole is None:
        raise machine.refuse(node, "cooperative: this reduction over a warp is not understood")
    if how == "down":
        return Call(FIRST_LANE, (whole, first), part.type)
    threads = integers.value_of(machine.builtins["blockDim.x"])
    start: Expression = integers.constant(0)
    if threads != _WARP:
        quotient = binary("/", thread, integers.constant(_WARP), machine.ranges)
        start = integers.multiply(quotient, integers.constant(_WARP))
    return substitute(whole, {thread.name: start})


def _is_whole_warp(machine: Machine) -> bool:
    """Whether the conditions on the way keep the lanes of a warp together."""
    for test in machine.path:
        if not test.depends_on("threadIdx.x"):
            continue
        slack = slack_of(test)
        end = integers.value_of(integers.add(slack, Sym("threadIdx.x"))) if slack is not None else None
        if end is None or (end + 1) % _WARP:
            return False
    return True


def lane_operation(op: str) -> str | None:
    """Return the reduction that an operator or function is a step of."""
    probe = operation(Call(op, (Sym("a"), Sym("b")), "int"))
    return probe[0] if probe is not None else op if op in ("+", "*", "&", "|", "^") else None
