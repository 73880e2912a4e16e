"""How warps pass through the basic blocks of a function, and where they wait for slow loads of other blocks.

The tile that is computed on while the next one is fetched lies between the loads and the block that stores them:
the wait is that block's, and what is done between shortens it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf

from kernelskill.backends.emulated.translate.mix import BasicBlock
from kernelskill.backends.emulated.translate.schedule import Schedule, names_of

_PREDICATED = 10
"""Instructions that the assembler predicates rather than branch over."""
_LEAVES = ("bra", "brx", "bar", "barrier", "call", "ret", "exit")

Range = tuple[int, int]
"""Blocks from the first number to before the second."""


@dataclass(frozen=True, slots=True)
class Late:
    """Slow loads of one block that another one is the first to wait for."""

    block: int
    lead: float
    """Cycles from load to use, those of the blocks between left out."""
    between: tuple[Range, ...]


@dataclass(slots=True)
class BlockFlow:
    """One block, passed by one warp alone."""

    cycles: float = 0.0
    """Without waiting for slow loads."""
    waits: list[float] = field(default_factory=list)
    """For each of its slow loads in a row that are waited for near by, the cycles from load to use."""
    awaits: list[Late] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "cycles": round(self.cycles, 2),
            "waits": [round(lead, 2) for lead in self.waits],
            "awaits": [[late.block, round(late.lead, 2), late.between] for late in self.awaits],
        }


def flows(blocks: Sequence[BasicBlock]) -> list[BlockFlow]:
    """Return how warps pass through the blocks of a module, which stand in the order of its text."""
    found: list[BlockFlow] = []
    for _, own in groupby(blocks, key=lambda block: block.kernel):
        found.extend(_function_flows(list(own), len(found)))
    return found


def _function_flows(blocks: list[BasicBlock], start: int) -> list[BlockFlow]:
    """Return the flows of a function whose first block has the number `start` in its module."""
    found = [BlockFlow() for _ in blocks]
    runs = _runs(blocks)
    passed = [_passed(blocks, run, found) for run in runs]
    names, loops = _Names(passed), _loops(blocks)
    for run, schedule in zip(runs, passed, strict=True):
        late: dict[tuple[int, int], Late] = {}
        for name, flight in schedule.pending():
            use = _first_use(run, names.readers(name), loops)
            if use is None:
                continue
            reader, between = use
            lead = schedule.issued - flight.issued + names.read_at(reader, name)
            known = late.get((reader, flight.block))
            if known is None or lead < known.lead:
                ranges = tuple((start + first, start + end) for first, end in between)
                late[reader, flight.block] = Late(start + flight.block, lead, ranges)
        for (reader, _), entry in late.items():
            found[reader].awaits.append(entry)
    return found


def _runs(blocks: Sequence[BasicBlock]) -> list[Range]:
    """Return blocks that the assembler makes one: what a branch passes over is short, and is predicated instead."""
    targets = Counter(_target(block) for block in blocks)
    runs: list[Range] = []
    first = number = 0
    while number < len(blocks):
        label = blocks[number + 2].label if number + 2 < len(blocks) else ""
        skips = bool(label) and _target(blocks[number]) == label and targets[label] == 1
        if skips and _is_short(blocks[number + 1], targets):
            number += 2
            continue
        runs.append((first, number + 1))
        first = number = number + 1
    return runs


def _is_short(block: BasicBlock, targets: Mapping[str, int]) -> bool:
    entered = bool(block.label) and targets[block.label] > 0
    return not entered and len(block.ops) <= _PREDICATED and not any(op.root in _LEAVES for op in block.ops)


def _passed(blocks: Sequence[BasicBlock], run: Range, found: Sequence[BlockFlow]) -> Schedule:
    """Schedule a run, of a loop that it is its second turn, and note what each of its blocks takes."""
    schedule = Schedule()
    head = blocks[run[0]].label
    loops = bool(head) and _target(blocks[run[1] - 1]) == head
    for turn in range(1 + loops):
        if turn:
            schedule.again()
        place = 0
        for number in range(*run):
            before, schedule.block = schedule.issued, number
            for op in blocks[number].ops:
                schedule.step(place, op)
                place += 1
            found[number].cycles = schedule.issued - before
    for _, (number, lead) in sorted(schedule.leads.items()):
        found[number].waits.append(lead)
    return schedule


class _Names:
    """Which blocks read what others wrote, under any name that a plain move gives it."""

    def __init__(self, passed: Sequence[Schedule]) -> None:
        self._moves: dict[str, set[str]] = {}
        self._reads: dict[str, dict[int, float]] = {}
        for schedule in passed:
            for target, source in schedule.moves:
                self._moves.setdefault(source, set()).add(target)
            for name, (block, cycle) in schedule.first_reads.items():
                self._reads.setdefault(name, {})[block] = cycle

    def _aliases(self, name: str) -> set[str]:
        found, todo = {name}, [name]
        while todo:
            more = self._moves.get(todo.pop(), set()) - found
            found |= more
            todo.extend(more)
        return found

    def readers(self, name: str) -> list[int]:
        """Return the blocks that read a value, in the order of the text."""
        return sorted({block for alias in self._aliases(name) for block in self._reads.get(alias, ())})

    def read_at(self, block: int, name: str) -> float:
        """Return the cycle of its run in which a block first reads a value."""
        return min(self._reads.get(alias, {}).get(block, inf) for alias in self._aliases(name))


def _loops(blocks: Sequence[BasicBlock]) -> list[Range]:
    """Return the loops of a function, the smallest first."""
    labels = {block.label: number for number, block in enumerate(blocks) if block.label}
    heads = [(labels.get(_target(block), len(blocks)), number + 1) for number, block in enumerate(blocks)]
    return sorted((loop for loop in heads if loop[0] < loop[1]), key=lambda loop: loop[1] - loop[0])


def _target(block: BasicBlock) -> str:
    """Return the label that a block's last instruction may go to, or nothing."""
    last = block.ops[-1] if block.ops else None
    if last is None or last.root != "bra" or not last.operands:
        return ""
    return "".join(names_of(last.operands[0]))


def _first_use(
    run: Range, readers: Sequence[int], loops: Sequence[Range]
) -> tuple[int, tuple[Range, ...]] | None:
    """Return the block that is the first to wait for a load of an earlier run, and the blocks between."""
    first, end = run
    around = [loop for loop in loops if loop[0] < end <= loop[1]]
    later = next((reader for reader in readers if reader >= end), None)
    if later is not None and (not around or later < around[0][1]):
        return later, ((end, later),)
    for head, last in around:
        again = next((reader for reader in readers if head <= reader < end), None)
        if again is not None:
            return again, ((end, last), (head, min(again, first)))
    return None if later is None else (later, ((end, later),))
