"""One warp alone in a run of instructions: how long it takes, and where it waits for loads.

A warp goes on after a load and waits where the value is first used. What lies between hides that much of the wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from kernelskill.backends.emulated.ptx.syntax import Name, Negated, Operand, Pair, Place, Vector
from kernelskill.backends.emulated.translate.mix import cost
from kernelskill.backends.emulated.translate.opcode import Op

_NO_TARGET = (
    "st", "red", "bra", "bar", "barrier", "ret", "exit", "call", "membar", "fence", "prefetch", "cp",
)  # fmt: skip
_LATENCY = {"fp32": 4, "int": 5, "fp64": 8, "sfu": 20, "lsu": 28, "tensor": 32, "control": 4}
"""Cycles until a result can be used: dependent-issue latencies of Volta and later."""
_AHEAD = 32.0
"""Cycles by which the assembler moves a load from shared memory ahead of its use: enough to hide its latency."""


@dataclass(slots=True, eq=False)
class Flight:
    """A slow load: its value may come from beyond the first-level cache."""

    place: int
    """Of the instruction in its run."""
    block: int
    issued: float
    """Cycle of its run."""
    level: int
    """Slow loads in a row, this one included."""
    used: bool = False


class Schedule:
    """Instructions in the order of the text, each when its operands are there; slow loads take no time.

    The assembler moves loads up to the last barrier, or store to the same kind of memory, before them. So slow
    loads between two of those overlap unless one needs the other's value, and loads from shared memory are on
    their way in time.
    """

    def __init__(self) -> None:
        self.block = 0
        """The block whose instructions come next."""
        self.issued = 0.0
        """Cycles so far."""
        self.leads: dict[int, tuple[int, float]] = {}
        """Level of slow loads that are waited for, to the first one's block and the least cycles from load to use."""
        self.first_reads: dict[str, tuple[int, float]] = {}
        """Name that is read before it is written, to the block and the cycle."""
        self.moves: list[tuple[str, str]] = []
        """Plain moves: names written and read."""
        self._depth: dict[str, int] = {}
        self._ready: dict[str, float] = {}
        self._floor = 0
        self._shared_floor = 0.0
        self._flights: dict[str, Flight] = {}
        self._carried: set[int] = set()
        self._written: set[str] = set()
        self._origins: dict[str, str] = {}

    def again(self) -> None:
        """Begin the next turn of a loop; leads are counted anew."""
        self.leads = {}
        self._shared_floor = self.issued

    def pending(self) -> Iterator[tuple[str, Flight]]:
        """Yield the loads that no instruction has waited for, by the names of their values."""
        for name, flight in self._flights.items():
            if not flight.used and flight.place not in self._carried:
                yield name, flight

    def step(self, place: int, op: Op) -> None:
        """Issue the instruction at a place of the run."""
        written, read = _split(op)
        pipes = cost(op)
        length = sum(count for _, count in pipes)
        operands = max((self._ready.get(name, 0.0) for name in read), default=0.0)
        start = max(self.issued, operands)
        latency = max((_LATENCY[pipe] for pipe, _ in pipes), default=0) + 4 * max(0.0, length - 1)
        ready, depth = (
            start + latency,
            max((self._depth.get(n, self._floor) for n in read), default=self._floor),
        )
        flight, origin = None, ""
        if _is_plain_move(op):
            flight, origin = self._flights.get(read[0]), self._origins.get(read[0], read[0])
            self.moves.append((written[0], read[0]))
        else:
            self._use(read, start, place)
        if _is_slow_load(op):
            depth, ready = depth + 1, start
            flight = Flight(place, self.block, start, depth)
        elif op.root == "ld" and op.has("shared", "shared::cta"):
            ready = max(start, max(operands, self._shared_floor, start - _AHEAD) + latency)
        else:
            self._fence(op, depth, start)
        for name in written:
            self._write(name, depth, ready, flight, origin)
        self.issued = start + length

    def _use(self, read: Sequence[str], start: float, place: int) -> None:
        for name in read:
            flight = self._flights.get(name)
            if flight is not None:
                block, lead = self.leads.get(flight.level, (flight.block, inf))
                self.leads[flight.level] = (block, min(lead, start - flight.issued))
                flight.used = True
                if place <= flight.place:  # the load of the turn before
                    self._carried.add(flight.place)
            origin = self._origins.get(name, name)
            if origin not in self._written:
                self.first_reads.setdefault(origin, (self.block, start))

    def _write(self, name: str, depth: int, ready: float, flight: Flight | None, origin: str) -> None:
        self._depth[name], self._ready[name] = depth, ready
        self._written.add(name)
        self._flights.pop(name, None)
        if flight is not None:
            self._flights[name] = flight
        self._origins.pop(name, None)
        if origin:
            self._origins[name] = origin

    def _fence(self, op: Op, depth: int, start: float) -> None:
        """Take note of what later loads are not moved over."""
        if op.root in ("bar", "barrier", "membar", "fence"):
            self._floor = max([self._floor, *self.leads])
            self._shared_floor = start
        elif op.root == "st" and op.has("shared", "shared::cta"):
            self._shared_floor = start
        elif op.root == "bra" or (op.root == "st" and not op.has("local")):
            self._floor = max(self._floor, depth)


def names_of(operand: Operand) -> list[str]:
    """Return the names in an operand."""
    match operand:
        case Name(text):
            return [text]
        case Negated(Name(text)):
            return [text]
        case Pair(first, second):
            return [first.text, second.text]
        case Place(base, _):
            return [base.text] if base is not None else []
        case Vector(elements):
            return [name for element in elements for name in names_of(element)]
        case _:
            return []


def _split(op: Op) -> tuple[list[str], list[str]]:
    """Return the names that an instruction writes and those that it reads."""
    operands = list(op.operands)
    written = [] if op.root in _NO_TARGET or not operands else names_of(operands.pop(0))
    read = [name for operand in operands for name in names_of(operand)]
    if op.instruction.guard is not None:
        read.append(op.instruction.guard.text)
    return written, read


def _is_slow_load(op: Op) -> bool:
    """Whether its result may come from beyond the first-level cache."""
    if op.root == "atom":
        return not op.has("shared")
    return op.root in ("ld", "ldu") and not op.has("param", "shared", "shared::cta", "const", "local")


def _is_plain_move(op: Op) -> bool:
    plain = op.root == "mov" and len(op.operands) == 2 and op.instruction.guard is None
    return plain and all(isinstance(operand, Name) for operand in op.operands)
