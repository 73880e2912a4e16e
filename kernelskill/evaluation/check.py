"""The correctness protocol: what a candidate must survive before anyone looks at its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kernelskill.backends.base import Unrecordable
from kernelskill.evaluation import calls
from kernelskill.evaluation.bench import Bench
from kernelskill.evaluation.calls import Arrangement
from kernelskill.evaluation.comparison import Finding, compare_outputs, first_difference
from kernelskill.evaluation.demands import Demands
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.trials import Trial, TrialSource
from kernelskill.events import Clock
from kernelskill.schema.base import Record
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import CheckOutcome, Status
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


class CheckRules(Record):
    """How much is checked, and for how long."""

    large_bytes: int = 64 << 20
    """Cases with larger buffers get `large_trials` trials."""
    large_trials: int = 2
    estimated_bytes: int = 4 << 20
    """Timed cases with larger buffers are not run in full where a device only estimates."""
    guard_bytes: int = 65536
    least_timeout_s: float = 10.0
    timeout_factor: float = 30.0
    """A run may take so many times what the original took."""
    longest_timeout_s: float = 600.0


@dataclass
class CheckReport:
    """Everything the protocol found out about one candidate."""

    outcomes: list[CheckOutcome] = field(default_factory=list)
    status: Status = Status.PASSED
    detail: str = ""
    unverified: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unrecordable: Unrecordable | None = None
    run_seconds: dict[int, float] = field(default_factory=dict)
    races: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)

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


class CheckProtocol:
    """Puts candidates of one task through the correctness protocol.

    Args:
        task: The task.
        trials: Where values come from.
        pool: The secret seeds.
        evidence: What the device's figures are; a device that only estimates runs no large case.
        demands: What the original itself supports.
        rules: How much is checked.
        clock: Measures how long runs take.
    """

    def __init__(
        self,
        task: Task,
        trials: TrialSource,
        pool: SeedPool,
        *,
        evidence: Evidence,
        demands: Demands,
        rules: CheckRules,
        clock: Clock,
    ) -> None:
        self.task = task
        self.clock = clock
        self._trials = trials
        self._pool = pool
        self._evidence = evidence
        self._demands = demands
        self._rules = rules

    def check(self, bench: Bench, depth: Literal["cheap", "full"]) -> CheckReport:
        """Check one candidate; stops at the first failure."""
        report = CheckReport()
        for case in self.cases(depth):
            if not self.runs_in_full(case):
                report.unverified.append(
                    f"case {case.label}: too large to run in full on the emulated device"
                )
                continue
            run = CaseRun(self, bench, case, report)
            for outcome in run.steps(depth):
                report.outcomes.append(outcome)
                if outcome.status is not Status.PASSED:
                    report.status, report.detail = outcome.status, outcome.detail
                    return report
            if report.races and not self._demands.races:
                report.status, report.detail = Status.SANITIZER_ERROR, f"case {case.label}: {report.races[0]}"
                return report
        return report

    def cases(self, depth: Literal["cheap", "full"]) -> list[Case]:
        """Return the cases to check, smallest first; `cheap` takes the smallest and an awkward one."""
        ordered = sorted(self.task.cases, key=lambda case: (self.trial(case, 0).total_bytes, case.index))
        if depth == "full":
            return ordered
        others = [case for case in ordered[1:] if not case.timed] or ordered[1:2]
        awkward = [case for case in others if _is_awkward(case)] or others
        return ordered[:1] + awkward[-1:]

    def trial(self, case: Case, number: int) -> Trial:
        """Return the values of a case at the pool's seed `number`."""
        return self._trials.trial(case, number, self._pool)

    def trial_count(self, case: Case, depth: Literal["cheap", "full"]) -> int:
        """Return how many seeds a case is checked with."""
        if depth == "cheap":
            return 1
        large = self.trial(case, 0).total_bytes > self._rules.large_bytes
        return min(len(self._pool.seeds), self._rules.large_trials if large else len(self._pool.seeds))

    def timeout_s(self, case: Case) -> float:
        """Return the deadline of one run, by what the original took."""
        known = self._demands.run_seconds.get(case.index)
        if known is None:
            return self._rules.longest_timeout_s
        wanted = max(self._rules.least_timeout_s, self._rules.timeout_factor * known)
        return min(wanted, self._rules.longest_timeout_s)

    def layouts(self, case: Case, trial: Trial) -> list[Arrangement]:
        """Return the layouts beyond the plain one that a case must survive."""
        if not self.tries_layouts(case):
            return []
        found: list[Arrangement | None] = []
        if self._demands.offset:
            found.append(calls.offset(self.task, trial.extents, trial.bundle.scalars))
        for alias in self._demands.aliases:
            found.append(calls.aliased(trial.extents, trial.bundle.scalars, alias))
        return [arrangement for arrangement in found if arrangement is not None]

    def compare(self, trial: Trial, outputs: Mapping[str, Path], *, poison: int | None = None) -> Finding:
        """Compare outputs with the reference, by the user's own `check` where the tests have one."""
        if not self.task.custom_check:
            return compare_outputs(self.task, trial, outputs, poison=poison)
        said = self._trials.custom_check(trial, outputs)
        return (
            Finding(Status.INCORRECT, f"check() of the tests says: {said}")
            if said
            else Finding(Status.PASSED)
        )

    @property
    def rules(self) -> CheckRules:
        """How much is checked."""
        return self._rules

    def tries_layouts(self, case: Case) -> bool:
        """Whether other layouts are tried on a case: the small ones, where there are any."""
        return not case.timed or all(other.timed for other in self.task.cases)

    def runs_in_full(self, case: Case) -> bool:
        """Whether a case is run at all; large timed ones are not where the device only estimates."""
        large = self.trial(case, 0).total_bytes > self._rules.estimated_bytes
        return not (large and case.timed and self._evidence == "estimated")


class CaseRun:
    """One candidate on one case."""

    def __init__(self, protocol: CheckProtocol, bench: Bench, case: Case, report: CheckReport) -> None:
        self._protocol = protocol
        self._task = protocol.task
        self._bench = bench
        self._case = case
        self._report = report
        self._outputs: dict[str, Path] = {}

    def steps(self, depth: Literal["cheap", "full"]) -> Iterator[CheckOutcome]:
        """Yield one outcome a step, in the order of the protocol."""
        trials = [
            self._protocol.trial(self._case, number)
            for number in range(self._protocol.trial_count(self._case, depth))
        ]
        for position, trial in enumerate(trials):
            stale = self._outputs if position >= len(POISONS) else {}
            yield self._fresh(_plain(trial), trial, "plain", position, stale=dict(stale))
        if depth == "cheap":
            return
        yield from self._repeat(trials)
        yield self._fresh(_plain(trials[0]), trials[0], "moved", 0, salt=1)
        for arrangement in self._protocol.layouts(self._case, trials[0]):
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
            self._report.unrecordable = self._report.unrecordable or refused
            return self._outcome(trial, layout, Finding(refused.status, refused.reason), arrangement)
        finding = self._run(arrangement, trial, poison=None if stale else poison)
        words = " with an earlier answer left in the outputs" if stale else ""
        return self._outcome(trial, layout, finding, arrangement, words=words)

    def _run(self, arrangement: Arrangement, trial: Trial, *, poison: int | None) -> Finding:
        """Run the loaded plan and examine all memory."""
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
        first_outputs = {name: path.read_bytes() for name, path in self._outputs.items()}
        other = trials[-2] if len(trials) > 1 and _plain(trials[-2]) == arrangement else None
        if other is not None:
            yield self._again(arrangement, other, "second call, other inputs, nothing reset")
        outcome = self._again(arrangement, last, "the same call again, nothing reset")
        same = {name: path.read_bytes() for name, path in self._outputs.items()} == first_outputs
        if outcome.status in (Status.INCORRECT, Status.INCORRECT_NAN):
            outcome = outcome.model_copy(update={"status": Status.NONDETERMINISTIC})
        elif outcome.status is Status.PASSED and not same:
            self._report.note("repeats differ in their last bits, within the tolerance")
        yield outcome.model_copy(update={"bit_identical": same})

    def _again(self, arrangement: Arrangement, trial: Trial, words: str) -> CheckOutcome:
        self._bench.worker.put(trial.bundle.contents())
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
        )


def _plain(trial: Trial) -> Arrangement:
    return calls.plain(trial.extents, trial.bundle.scalars)


def _fitting(task: Task, stale: Mapping[str, Path], trial: Trial) -> dict[str, Path]:
    """Return the earlier answers that fit this trial's outputs; in-out arrays have contents already."""
    return {
        name: path
        for name, path in stale.items()
        if task.roles[name] is Role.OUTPUT and path.stat().st_size == trial.extents[name].size_bytes
    }


def _is_awkward(case: Case) -> bool:
    """Whether any size of a case is no multiple of a warp."""
    return any(
        isinstance(value, int) and not isinstance(value, bool) and value % 32
        for value in case.arguments.values()
    )
