"""CaseRun: one candidate on one case, from the ordinary call to the unusual ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.bits import bits_count, output_bits
from kernelskill.evaluation.calls import Arrangement
from kernelskill.evaluation.comparison import Finding, first_difference
from kernelskill.evaluation.damage import damaged, later_calls
from kernelskill.evaluation.protocol import CheckProtocol
from kernelskill.evaluation.trials import Trial
from kernelskill.schema.evaluation import CheckOutcome, Depth, Status
from kernelskill.schema.task import Case, Role, Task

POISONS = (0xFF, 0x7B)
"""Bytes that stand for what was never written: NaN in every float type, and an ordinary value."""
RACE_PREFIX = "race:"
"""How a device that watches shared memory begins its finding in the notes of a run."""
OutcomeLayout = Literal["plain", "offset", "aliased", "moved", "repeat"]
_WORDS = {
    "plain": "",
    "offset": " with every pointer one element past an aligned address",
    "moved": " at other addresses",
}


@dataclass
class CheckReport:
    """Everything the protocol found out about one candidate."""

    outcomes: list[CheckOutcome] = field(default_factory=list)
    status: Status = Status.PASSED
    detail: str = ""
    unverified: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    run_seconds: dict[int, float] = field(default_factory=dict)
    races: list[str] = field(default_factory=list)
    errors: dict[int, dict[str, float]] = field(default_factory=dict)
    """Case index to the largest absolute error of each output, on the values of the first seed."""

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)

    def fail(self, status: Status, detail: str) -> None:
        """End a candidate that nothing else has ended yet."""
        if self.status is Status.PASSED:
            self.status, self.detail = status, detail

    def take_notes(self, texts: Sequence[str]) -> None:
        """Sort a run's notes into races and the rest."""
        for text in texts:
            if not text.startswith(RACE_PREFIX):
                self.note(text)
            elif text not in self.races:
                self.races.append(text)

    def took(self, case: int, seconds: float) -> None:
        """Remember the longest run of a case."""
        self.run_seconds[case] = max(seconds, self.run_seconds.get(case, 0.0))

    def erred(self, case: int, errors: Mapping[str, float]) -> None:
        """Remember the largest error of each output of a case."""
        known = self.errors.setdefault(case, {})
        known.update({name: max(error, known.get(name, 0.0)) for name, error in errors.items()})


class CaseRun:
    """One candidate on one case."""

    def __init__(self, protocol: CheckProtocol, bench: Bench, case: Case, report: CheckReport) -> None:
        self._protocol = protocol
        self._task = protocol.task
        self._bench = bench
        self._case = case
        self._report = report
        self._outputs: dict[str, Path] = {}
        self._bits = ""
        """Of the last run, where bits count."""

    def steps(self, depth: Depth) -> Iterator[CheckOutcome]:
        """Yield one outcome a step, in the order of the protocol."""
        trials = [
            self._protocol.trial(self._case, number)
            for number in range(self._protocol.trial_count(self._case, depth))
        ]
        for position, trial in enumerate(trials):
            stale = dict(self._outputs if position >= len(POISONS) else {})
            outcome = self._fresh(_plain(trial), trial, "plain", position, stale=stale)
            if outcome.status in (Status.INCORRECT, Status.INCORRECT_NAN):
                again = self._fresh(_plain(trial), trial, "plain", position, stale=stale)
                outcome = _with_order(outcome, again)
            yield outcome
        if depth == "cheap":
            return
        yield from self._repeat(trials)
        if self._protocol.is_brief(self._case, depth):
            return
        yield self._over_damage(_plain(trials[-1]), trials[-1])
        if self._bench.remembers and self._case == self._protocol.cases(depth)[0]:
            yield self._later(_plain(trials[-1]), trials)
        yield self._fresh(_plain(trials[0]), trials[0], "moved", 0, salt=1)
        if self._bench.remembers and len(trials) > 1 and _plain(trials[1]) == _plain(trials[0]):
            yield self._again(_plain(trials[1]), trials[1], "other inputs at other addresses, nothing reset")
            yield _of_state(
                self._again(_plain(trials[0]), trials[0], "the first inputs again at other addresses")
            )
        for arrangement in self._protocol.layouts(self._case, trials[0]):
            yield self._fresh(arrangement, trials[0], arrangement.layout, 1)
            if arrangement.alias is not None:  # as the original: with its blocks in either order
                yield self._fresh(arrangement, trials[0], arrangement.layout, 1)

    def probe(self, arrangement: Arrangement, trial: Trial) -> CheckOutcome:
        """Run one layout once."""
        return self._fresh(arrangement, trial, arrangement.layout, 0)

    def _fresh(
        self,
        arrangement: Arrangement,
        trial: Trial,
        layout: OutcomeLayout,
        position: int,
        *,
        salt: int = 0,
        stale: Mapping[str, Path] | None = None,
    ) -> CheckOutcome:
        """Fill all memory anew and run once.

        Args:
            arrangement: How the arrays lie in memory.
            trial: Their values.
            layout: Under which name the outcome is kept.
            position: Picks the poison.
            salt: Picks the addresses.
            stale: Right answers of an earlier trial, to lie in the outputs before the call.
        """
        poison = POISONS[position % len(POISONS)]
        files = {**trial.bundle.contents(), **_fitting(self._task, stale or {}, trial)}
        if arrangement.alias is not None:
            files.pop(arrangement.alias[1], None)
        steps = {name: extent.element_bytes for name, extent in trial.extents.items()}
        padded = trial.folder / "padded"
        refused = self._bench.start(
            arrangement,
            calls.contents(arrangement, files, steps, padded),
            poison=poison,
            salt=salt,
            guard_bytes=self._protocol.rules.guard_bytes,
        )
        if refused is not None:
            return self._outcome(trial, layout, Finding(refused.status, refused.reason), arrangement)
        finding = self._run(arrangement, trial, poison=None if stale else poison)
        words = " with an earlier answer left in the outputs" if stale else ""
        return self._outcome(trial, layout, finding, arrangement, words=words)

    def _run(self, arrangement: Arrangement, trial: Trial, *, poison: int | None) -> Finding:
        """Run the loaded plan and examine all memory."""
        self._bits = ""
        started = self._protocol.clock.seconds()
        outcome = self._bench.run(self._protocol.timeout_s(self._case))
        self._report.took(self._case.index, self._protocol.clock.seconds() - started)
        self._report.take_notes(outcome.notes)
        if outcome.status is not Status.PASSED:
            return Finding(outcome.status, outcome.detail or str(outcome.status))
        damaged = self._bench.worker.damaged_guards()
        if damaged:
            return Finding(Status.OUT_OF_BOUNDS, f"wrote outside {', '.join(damaged)}")
        return self._examine(arrangement, trial, poison)

    def _examine(self, arrangement: Arrangement, trial: Trial, poison: int | None) -> Finding:
        target = arrangement.alias
        for pointer in self._task.signature.pointers:
            name = pointer.name
            if self._task.roles[name] is not Role.INPUT or (target is not None and name == target[0]):
                continue
            if name in trial.bundle.inputs:
                changed = self._changed_input(arrangement, trial, name)
                if changed is not None:
                    return changed
        outputs: dict[str, Path] = {}
        for name in self._task.outputs:
            back = self._bench.read(arrangement, name, "now")
            if not back.pad_intact:
                return Finding(Status.OUT_OF_BOUNDS, f"wrote before the first element of {name}")
            outputs[name] = back.path
        finding = self._protocol.compare(trial, outputs, poison=poison)
        if trial.number == 0 and arrangement.layout == "plain":
            self._report.erred(self._case.index, finding.errors)
        if bits_count(self._task) and finding.status is Status.PASSED:
            self._bits = output_bits(self._task, trial, outputs)
        self._outputs = self._keep(outputs)
        return finding

    def _changed_input(self, arrangement: Arrangement, trial: Trial, name: str) -> Finding | None:
        back = self._bench.read(arrangement, name, "now")
        if not back.pad_intact:
            return Finding(Status.OUT_OF_BOUNDS, f"wrote before the first element of {name}")
        position = first_difference(back.path, trial.bundle.contents()[name])
        if position is None:
            return None
        element = position // trial.extents[name].element_bytes
        return Finding(Status.INPUT_MODIFIED, f"the input {name} was changed at element {element}")

    def _keep(self, outputs: Mapping[str, Path]) -> dict[str, Path]:
        """Set outputs aside before the next run replaces them."""
        return {name: path.replace(path.with_suffix(".before")) for name, path in outputs.items()}

    def _repeat(self, trials: Sequence[Trial]) -> Iterator[CheckOutcome]:
        """Call again on the memory of the last run: other inputs, then the same inputs again."""
        last = trials[-1]
        arrangement = _plain(last)
        first = {name: path.replace(path.with_suffix(".first")) for name, path in self._outputs.items()}
        other = trials[-2] if len(trials) > 1 and _plain(trials[-2]) == arrangement else None
        if other is not None:
            yield self._again(arrangement, other, "second call, other inputs, nothing reset")
        outcome = self._again(arrangement, last, "the same call again, nothing reset")
        same = all(first_difference(path, first[name]) is None for name, path in self._outputs.items())
        outcome = _of_state(outcome)
        if outcome.status is Status.PASSED and not same:
            self._report.note("repeats differ in their last bits, within the tolerance")
        yield outcome.model_copy(update={"bit_identical": same})

    def _over_damage(self, arrangement: Arrangement, trial: Trial, before: str = "") -> CheckOutcome:
        """Call again where the right answer lies in the outputs, but for a part that is overwritten."""
        files = {
            name: damaged(path, trial.extents[name].element_bytes, path.parent)
            for name, path in self._outputs.items()
            if self._task.roles[name] is Role.OUTPUT and path.stat().st_size
        }
        words = f"{before}the same call again, a part of its answer overwritten"
        return _of_state(self._again(arrangement, trial, words, files))

    def _later(self, arrangement: Arrangement, trials: Sequence[Trial]) -> CheckOutcome:
        """Call many times more: a program with a memory of its own may be right for the first few only."""
        count = later_calls(next(iter(self._outputs.values())))
        fitting = [trial for trial in trials if _plain(trial) == arrangement]
        for number in range(count):
            self._bench.worker.put(fitting[number % len(fitting)].bundle.contents())
            outcome = self._bench.run(self._protocol.timeout_s(self._case))
            if outcome.status is not Status.PASSED:
                finding = Finding(outcome.status, outcome.detail or str(outcome.status))
                return self._outcome(
                    fitting[0], "repeat", finding, arrangement, words=f" (call {number + 5})"
                )
        return self._over_damage(arrangement, fitting[0], f"{count} further calls, ")

    def _again(
        self, arrangement: Arrangement, trial: Trial, words: str, outputs: Mapping[str, Path] | None = None
    ) -> CheckOutcome:
        self._bench.worker.put({**trial.bundle.contents(), **(outputs or {})})
        finding = self._run(arrangement, trial, poison=None)
        return self._outcome(trial, "repeat", finding, arrangement, words=f" ({words})")

    def _outcome(
        self,
        trial: Trial,
        layout: OutcomeLayout,
        finding: Finding,
        arrangement: Arrangement,
        *,
        words: str = "",
    ) -> CheckOutcome:
        if arrangement.alias is not None:
            words = f" with {arrangement.alias[0]} and {arrangement.alias[1]} in one buffer"
        words = words or _WORDS.get(layout, "")
        passed = finding.status is Status.PASSED
        return CheckOutcome(
            case=self._case.index,
            trial=trial.number,
            layout=layout,
            status=finding.status,
            detail="" if passed else f"case {self._case.label}{words}: {finding.detail}",
            mismatch=finding.mismatch,
            max_absolute_error=finding.max_absolute_error,
            max_relative_error=finding.max_relative_error,
            bits=self._bits if passed else "",
        )


def _of_state(outcome: CheckOutcome) -> CheckOutcome:
    """Right before and wrong now: what the candidate does depends on what was before."""
    if outcome.status in (Status.INCORRECT, Status.INCORRECT_NAN):
        return outcome.model_copy(update={"status": Status.NONDETERMINISTIC})
    return outcome


def _with_order(outcome: CheckOutcome, again: CheckOutcome) -> CheckOutcome:
    """Say so where a wrong call is right when it is run again: devices that choose it turn the order of blocks."""
    if again.status is not Status.PASSED:
        return outcome
    words = "run again it is right: its result depends on the order of its blocks or threads"
    return outcome.model_copy(update={"detail": f"{outcome.detail}; {words}"})


def _plain(trial: Trial) -> Arrangement:
    return calls.plain(trial.extents, trial.bundle.scalars)


def _fitting(task: Task, stale: Mapping[str, Path], trial: Trial) -> dict[str, Path]:
    """Return the earlier answers that fit this trial's outputs; in-out arrays have contents already."""
    return {
        name: path
        for name, path in stale.items()
        if task.roles[name] is Role.OUTPUT and path.stat().st_size == trial.extents[name].size_bytes
    }
