"""CheckProtocol: which cases, seeds, layouts and deadlines a candidate of one task has to survive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernelskill.backends.base import Call
from kernelskill.evaluation import calls
from kernelskill.evaluation.calls import Arrangement
from kernelskill.evaluation.comparison import Finding, compare_outputs
from kernelskill.evaluation.demands import Demands
from kernelskill.evaluation.precision import Errors, PrecisionLoss, precision_loss
from kernelskill.evaluation.right_answers import RightAnswers
from kernelskill.evaluation.seeds import SeedPool
from kernelskill.evaluation.trials import Trial, TrialSource
from kernelskill.events import Clock
from kernelskill.schema.base import Explained
from kernelskill.schema.device import Evidence
from kernelskill.schema.evaluation import Depth, Status
from kernelskill.schema.task import Case, Task


class CheckRules(Explained):
    """How much is checked, and for how long."""

    large_bytes: int = 16 << 20
    """Cases with larger buffers get `large_trials` trials, and only one while searching."""
    large_trials: int = 2
    estimated_bytes: int = 4 << 20
    """Timed cases with larger buffers are not run in full where a device only estimates."""
    guard_bytes: int = 65536
    kept_bytes: int = 1 << 30
    """Workers of a task whose cases are larger are not kept open: their memory may be wanted."""
    least_timeout_s: float = 10.0
    timeout_factor: float = 30.0
    """A run may take so many times what the original took."""
    longest_timeout_s: float = 600.0


class CheckProtocol:
    """Answers what one task demands of its candidates.

    Args:
        task: The task.
        trials: Where values come from.
        pool: The secret seeds.
        evidence: What the device's figures are; a device that only estimates runs no large case.
        demands: What the original itself supports.
        rules: How much is checked.
        clock: Measures how long runs take.
        right: What was found right before, of this candidate and of others.
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
        right: RightAnswers | None = None,
    ) -> None:
        self.task = task
        self.clock = clock
        self._trials = trials
        self._pool = pool
        self._evidence = evidence
        self._right = right or RightAnswers()
        self.demands = demands
        self.rules = rules

    def cases(self, depth: Depth) -> list[Case]:
        """Return the cases to check, smallest first; `cheap` takes the smallest and an awkward one."""
        ordered = sorted(self.task.cases, key=lambda case: (self.trial(case, 0).total_bytes, case.index))
        if depth != "cheap":
            return ordered
        others = [case for case in ordered[1:] if not case.timed] or ordered[1:2]
        awkward = [case for case in others if _is_awkward(case)] or others
        return ordered[:1] + awkward[-1:]

    def trial(self, case: Case, number: int) -> Trial:
        """Return the values of a case at the pool's seed `number`."""
        return self._trials.trial(case, number, self._pool)

    def make_values(self, depth: Depth) -> None:
        """Make all values that a check of this depth needs: that is work of the host alone."""
        for case in self.cases(depth):
            if self.runs_in_full(case):
                for number in range(self.trial_count(case, depth)):
                    self.trial(case, number)

    def timed_trials(self, case: Case, most: int) -> list[Trial]:
        """Return the values that take turns while a case is timed: sizes and scalars are part of the plan.

        Args:
            case: A timed one.
            most: How many seeds take part at most.
        """
        count = min(max(1, most), self.trial_count(case, "full"))
        first, *others = (self.trial(case, number) for number in range(count))
        return [
            first,
            *(
                trial
                for trial in others
                if trial.extents == first.extents and trial.bundle.scalars == first.bundle.scalars
            ),
        ]

    def plain_call(self, case: Case) -> Call:
        """Return the ordinary call of a case."""
        trial = self.trial(case, 0)
        return calls.plain(trial.extents, trial.bundle.scalars).call

    def plain_calls(self) -> list[Call]:
        """Return the ordinary call of every case."""
        return [self.plain_call(case) for case in self.task.cases]

    def trial_count(self, case: Case, depth: Depth) -> int:
        """Return how many seeds a case is checked with."""
        if depth == "cheap" or self.is_brief(case, depth):
            return 1
        large = self.trial(case, 0).total_bytes > self.rules.large_bytes
        return min(len(self._pool.seeds), self.rules.large_trials if large else len(self._pool.seeds))

    def is_brief(self, case: Case, depth: Depth) -> bool:
        """Whether a case gets one seed and one repeat: large ones, while searching."""
        return depth == "search" and self.trial(case, 0).total_bytes > self.rules.large_bytes

    def timeout_s(self, case: Case) -> float:
        """Return the deadline of one run, by what the original took."""
        known = self.demands.run_seconds.get(case.index)
        if known is None:
            return self.rules.longest_timeout_s
        wanted = max(self.rules.least_timeout_s, self.rules.timeout_factor * known)
        return min(wanted, self.rules.longest_timeout_s)

    def layouts(self, case: Case, trial: Trial) -> list[Arrangement]:
        """Return the layouts beyond the plain one that a case must survive."""
        if not self.tries_layouts(case):
            return []
        found: list[Arrangement | None] = []
        if self.demands.offset:
            found.append(calls.offset(self.task, trial.extents, trial.bundle.scalars))
        for alias in self.demands.aliases:
            found.append(calls.aliased(trial.extents, trial.bundle.scalars, alias))
        return [arrangement for arrangement in found if arrangement is not None]

    def compare(self, trial: Trial, outputs: Mapping[str, Path], *, poison: int | None = None) -> Finding:
        """Compare outputs with the reference, by the user's own `check` where the tests have one."""
        if not self.task.custom_check:
            return self._right.finding(
                trial, outputs, lambda files: compare_outputs(self.task, trial, files, poison=poison)
            )
        said = self._trials.custom_check(trial, outputs)
        return (
            Finding(Status.INCORRECT, f"check() of the tests says: {said}")
            if said
            else Finding(Status.PASSED)
        )

    def precision_loss(self, errors: Errors) -> PrecisionLoss | None:
        """Return the output whose error grew most beside the original's own, if one grew much."""
        known = {case.index: case for case in self.task.cases}
        return precision_loss(errors, self.demands.errors, lambda index: self.trial(known[index], 0))

    def tries_layouts(self, case: Case) -> bool:
        """Whether other layouts are tried on a case: the small ones, where there are any."""
        return not case.timed or all(other.timed for other in self.task.cases)

    @property
    def keeps_workers(self) -> bool:
        """Whether workers may stay open between a check and a timing."""
        largest = max(self.trial(case, 0).total_bytes for case in self.task.cases)
        return self._evidence == "measured" and largest <= self.rules.kept_bytes

    def runs_in_full(self, case: Case) -> bool:
        """Whether a case is run at all; large timed ones are not where the device only estimates."""
        large = self.trial(case, 0).total_bytes > self.rules.estimated_bytes
        return not (large and case.timed and self._evidence == "estimated")


def _is_awkward(case: Case) -> bool:
    """Whether any size of a case is no multiple of a warp."""
    return any(
        isinstance(value, int) and not isinstance(value, bool) and value % 32
        for value in case.arguments.values()
    )
