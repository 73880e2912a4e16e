"""What both sides of a comparison are timed on: other values from time to time, and answers looked at unawares."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.case_run import POISONS
from kernelskill.evaluation.comparison import first_difference
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.trials import Trial
from kernelskill.schema.device import ClockState
from kernelskill.schema.evaluation import Status
from kernelskill.schema.task import Case

CLOCK_CHANGE = 0.1
"""A clock that changes by more is said; pairs taken in turns feel it alike on both sides."""


class Chance(Protocol):
    """Where secret choices come from: `secrets.SystemRandom` in production, `random.Random` in tests."""

    def sample(self, population: range, k: int) -> list[int]:
        """Return `k` different members."""


class TimedValues:
    """The values of one case while it is timed, and the answers that were looked at.

    Both sides of a pair always hold the same values. Which answers are kept is chosen in secret, so that
    nothing is gained by working in the last run alone.

    Args:
        protocol: The task and its values.
        case: The timed case.
        sides: Incumbent, where there is one, and candidate; both hold the values of the first seed.
        rotations: How many seeds take part at most.
        looks: How many timed answers are compared, beside the last one.
        clocks: Tells how fast the device runs.
        chance: Chooses the answers.
    """

    def __init__(
        self,
        protocol: CheckProtocol,
        case: Case,
        sides: tuple[Bench, ...],
        *,
        rotations: int,
        looks: int = 3,
        clocks: Callable[[], ClockState] = ClockState,
        chance: Chance | None = None,
    ) -> None:
        self._protocol = protocol
        self._case = case
        self._sides = sides
        self._chance: Chance = chance or secrets.SystemRandom()
        self._trials = protocol.timed_trials(case, rotations)
        self._looks = looks
        self._clocks = clocks
        self._before = ClockState()
        self._current = 0
        self._block = 1
        self._planned = 0
        self._watched: set[int] = set()
        self._kept: list[tuple[Trial, dict[str, Path]]] = []

    def plan(self, pairs: int) -> None:
        """Choose among so many pairs; called again when more are taken, for the further ones."""
        if not self._planned:
            self._before = self._clocks()
        fresh = range(min(self._planned, pairs), pairs)
        self._planned = pairs
        self._watched |= set(self._chance.sample(fresh, min(self._looks, len(fresh))))
        self._block = max(1, -(-pairs // len(self._trials)))

    def before_pair(self, pair: int) -> None:
        """Give both sides the values of this pair's turn."""
        wanted = pair // self._block % len(self._trials)
        if wanted != self._current:
            self._current = wanted
            for side in self._sides:
                side.worker.fill(self._trials[wanted].bundle.contents(), poison=POISONS[1])

    def after_candidate(self, pair: int) -> None:
        """Keep what the candidate's timed turn left, if this is one of the chosen pairs."""
        if pair in self._watched:
            self._keep(f"timed-{pair}")

    def what_is_wrong(self) -> str:
        """Compare the kept answers and the one that lies there now; empty where all are right."""
        self._keep("timed")
        right: dict[int, dict[str, Path]] = {}
        for trial, outputs in self._kept:
            known = right.setdefault(trial.number, outputs)
            if known is not outputs and _same_bytes(known, outputs):
                continue
            finding = self._protocol.compare(trial, outputs)
            if finding.status is not Status.PASSED:
                return f"case {self._case.label}, right before and wrong while timed: {finding.detail}"
        return ""

    def clock_notes(self) -> tuple[str, ...]:
        """Say where the device ran at another speed at the end of the pairs than at their start."""
        return clock_notes(self._case.label, self._before, self._clocks())

    def _keep(self, slot: str) -> None:
        trial = self._trials[self._current]
        arrangement = calls.plain(trial.extents, trial.bundle.scalars)
        bench = self._sides[-1]
        outputs = {name: bench.read(arrangement, name, slot).path for name in self._protocol.task.outputs}
        self._kept.append((trial, outputs))


def _same_bytes(one: dict[str, Path], other: dict[str, Path]) -> bool:
    """Whether outputs are those that were found right before, which takes less time to tell."""
    return all(first_difference(path, other[name]) is None for name, path in one.items())


def clock_notes(label: str, before: ClockState, after: ClockState) -> tuple[str, ...]:
    """Return what to know of clocks that were read before and after the pairs of a case."""
    notes = []
    if before.sm_mhz and after.sm_mhz and abs(after.sm_mhz - before.sm_mhz) > CLOCK_CHANGE * before.sm_mhz:
        notes.append(
            f"case {label}: the SM clock went from {before.sm_mhz:.0f} to {after.sm_mhz:.0f} MHz while it was timed"
        )
    slowed = dict.fromkeys((*before.slowed_by, *after.slowed_by))
    if slowed:
        notes.append(f"case {label}: the GPU was slowed down by {' and '.join(slowed)}")
    return tuple(notes)
