"""Search over the open parameters of one proposal, at the cheap stage.

The policy gives the order of the first points, Optuna proposes the rest from what those brought (where forecasts
made the order, they are neighbours of the best one),
the hardware's limits prune before building and before timing, and the best go on to the full stage.
Nothing of a study is kept: its seed is injected and evaluations are kept by content, so that a
search that was cut short is rebuilt by running it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Literal, Protocol

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from kernelskill.agents.families import Values, neighbours, steps_at, values_of
from kernelskill.schema.candidate import Step
from kernelskill.schema.evaluation import Evaluation, Status, VerdictKind
from kernelskill.schema.proposal import Choice, Proposal, Refusal
from kernelskill.schema.search import PointOutcome, PointTrial
from kernelskill.search.screening import spilled_bytes

REDUCTION = 4
"""One of so many points goes on from the cheap stage to the full one."""
CASE_LEAD = 0.1
"""ln(speedup) in one timed case that makes a point worth a full evaluation beside the best one."""
FEW = 5
"""Points below which the sampler has nothing to learn from."""
MOST_UNBUILT = 2
"""Points that do not compile, or not in time, after which a family is left: others rarely do better."""
BATCH = 2
"""Points that the sampler proposes before it hears how they did; the second is built meanwhile."""
_ASKS = 16
"""How often the sampler may name a point that is gone before the policy's order decides."""


class Workbench(Protocol):
    """What a search may do with a point. The graph gives one that works on the run's records."""

    def make(self, steps: tuple[Step, ...]) -> Proposal | Refusal:
        """Apply the steps of a point to the base."""

    def is_known(self, digest: str) -> bool:
        """Whether the run evaluated that candidate before this search."""

    def before_building(self, proposal: Proposal) -> str:
        """Return why the text alone rules a point out, or nothing."""

    def before_timing(self, proposal: Proposal, check: Evaluation) -> str:
        """Return why the compiled kernels rule a point out, or nothing."""

    def prefetch(self, proposals: Sequence[Proposal], stage: Literal["check", "time"]) -> None:
        """Start on points that will be asked for at a stage."""

    def check(self, proposal: Proposal) -> Evaluation | None:
        """Build and check a point briefly; None where the budget is spent."""

    def drop(self, proposal: Proposal, check: Evaluation, reason: str) -> None:
        """Take note of a point that was checked and is not timed."""

    def time(self, proposal: Proposal) -> tuple[Evaluation, VerdictKind, float | None] | None:
        """Time a point briefly: evaluation, verdict and ln(speedup); None where the budget is spent."""


@dataclass
class PointSearch:
    """One search.

    Args:
        family: The chosen proposal; its own steps are the first point.
        order: Points by the policy, the most promising first.
        limit: Points that may be built.
        seed: Of the sampler; equal seeds and answers, equal search.
        bench: Applies, checks and times.
        climbs: Whether neighbours of the best point go on, in the given order, in place of the sampler: where the
            order says much, a guess from few points is worse.
    """

    family: Proposal
    order: Sequence[Values]
    limit: int
    seed: int
    bench: Workbench
    climbs: bool = False
    _trials: list[PointTrial] = field(default_factory=list)
    _spills: list[int] = field(default_factory=list)
    _built: int = 0
    _unbuilt: int = 0
    _is_over: bool = False

    def prefetch(self) -> None:
        """Start on the first points; they are the same whatever anything brings."""
        made = [self._make(values, set()) for values in list(dict.fromkeys(self.order))[: self._first]]
        self.bench.prefetch([point for point in made if isinstance(point, Proposal)], "check")

    def run(self) -> tuple[PointTrial, ...]:
        """Return every point that was looked at, in order; the best are marked as kept."""
        names = _names(self.family.choices)
        study = _study(self.seed, startup=self.limit)
        left = dict.fromkeys(self.order)
        while left and self._built < self.limit and not self._is_over:
            count = min(BATCH, self.limit - self._built)
            if self._built < self._first:
                asked = [_ask_for(study, names, v) for v in list(left)[: self._first - self._built]]
            elif self.climbs:
                near = self._near_best(left) or list(left)
                asked = [_ask_for(study, names, values) for values in near[:count]]
            else:
                asked = _ask(study, names, left, count)
            for values, _ in asked:
                left.pop(values)
            self._try(study, asked)
        return mark_kept(self._trials, max(1, self._built // REDUCTION))

    @property
    def _first(self) -> int:
        """Points whose choice is the policy's alone: of very few, all."""
        return self.limit if self.limit < FEW else -(-self.limit // 2)

    def _near_best(self, left: Iterable[Values]) -> list[Values]:
        """Return the points that differ in one value from the best that was timed, in the policy's order."""
        timed = [trial for trial in self._trials if trial.log_speedup is not None]
        if not timed:
            return []
        best = max(timed, key=lambda trial: trial.log_speedup or 0.0)
        choices = self.family.choices
        near = set(neighbours(choices, values_of(choices, best.steps)))
        return [values for values in left if values in near]

    def _try(self, study: optuna.Study, asked: Sequence[tuple[Values, optuna.trial.Trial]]) -> None:
        """Look at a batch of points: all are checked before the first is timed."""
        ready: list[Proposal] = []
        outcomes: list[PointTrial | Proposal] = []
        for values, _ in asked:
            made = self._make(values, {proposal.candidate.digest for proposal in ready})
            outcomes.append(made)
            if isinstance(made, Proposal):
                ready.append(made)
        found = self._evaluate(ready)
        for made, (_, trial) in zip(outcomes, asked, strict=True):
            outcome = found.get(made.id) if isinstance(made, Proposal) else made
            if outcome is None:
                self._is_over = True
                study.tell(trial, state=TrialState.FAIL)
                continue
            self._trials.append(outcome)
            if outcome.log_speedup is None:
                study.tell(trial, state=TrialState.PRUNED)
            else:
                study.tell(trial, outcome.log_speedup)

    def _make(self, values: Values, siblings: set[str]) -> Proposal | PointTrial:
        steps = steps_at(self.family.steps, self.family.choices, values)
        made = self.bench.make(steps)
        if isinstance(made, Refusal):
            return PointTrial(steps=steps, outcome="refused", detail=made.reason)
        same = any(trial.proposal == made.id for trial in self._trials)
        if same or made.candidate.digest in siblings:
            return PointTrial(steps=steps, outcome="known", detail="the same source as another point")
        if self.bench.is_known(made.candidate.digest):
            return _untimed(made, "known", "tried before")
        reason = self.bench.before_building(made)
        if reason:
            return _untimed(made, "pruned", reason)
        return made

    def _evaluate(self, proposals: Sequence[Proposal]) -> dict[str, PointTrial]:
        """Check and time proposals; those missing were left for want of budget."""
        self.bench.prefetch(proposals, "check")
        found: dict[str, PointTrial] = {}
        right: list[tuple[Proposal, Evaluation]] = []
        for proposal in proposals:
            check = self.bench.check(proposal)
            if check is None:
                return found
            self._built += 1
            if check.passed:
                right.append((proposal, check))
                self._spills.append(spilled_bytes(check.kernels))
            else:
                found[proposal.id] = _trial(
                    proposal, "failed", check, VerdictKind.REFUSED, detail=check.detail
                )
                self._unbuilt += check.status is Status.COMPILE_ERROR
            if self._unbuilt >= MOST_UNBUILT:
                self._is_over = True
                break
        worth_it = []
        for proposal, check in right:
            reason = self._why_pruned(proposal, check)
            if reason:
                self.bench.drop(proposal, check, reason)
                found[proposal.id] = _trial(proposal, "pruned", check, None, detail=reason)
            else:
                worth_it.append(proposal)
        self.bench.prefetch(worth_it, "time")
        for proposal in worth_it:
            timed = self.bench.time(proposal)
            if timed is None:
                return found
            evaluation, verdict, gain = timed
            outcome: PointOutcome = "failed" if gain is None else "timed"
            found[proposal.id] = _trial(proposal, outcome, evaluation, verdict, gain=gain)
        return found

    def _why_pruned(self, proposal: Proposal, check: Evaluation) -> str:
        spilled = spilled_bytes(check.kernels)
        if spilled and 0 in self._spills:
            return f"{spilled} bytes spill, and none do at another point"
        return self.bench.before_timing(proposal, check)


def mark_kept(trials: Sequence[PointTrial], count: int) -> tuple[PointTrial, ...]:
    """Return the trials with those that go on marked as kept; of equals the earlier one is better.

    The best ones go on, and one more that is clearly better than the best in some timed case: the
    launcher may choose between them by its sizes.
    """
    timed = sorted(
        (trial for trial in trials if trial.outcome == "timed"),
        key=lambda trial: -(trial.log_speedup or 0.0),
    )
    kept = {trial.proposal for trial in timed[:count]}
    if timed:
        leads = [(_lead(trial, timed[0]), trial) for trial in timed[count:]]
        champions = [(lead, trial) for lead, trial in leads if lead > CASE_LEAD]
        kept |= {max(champions, key=lambda pair: pair[0])[1].proposal} if champions else set()
    return tuple(
        trial.model_copy(update={"outcome": "kept"}) if trial in timed and trial.proposal in kept else trial
        for trial in trials
    )


def _lead(trial: PointTrial, best: PointTrial) -> float:
    """Return how much faster a point is than the best one in the case that suits it most."""
    if len(trial.case_gains) < 2 or len(trial.case_gains) != len(best.case_gains):
        return 0.0
    return max(own - other for own, other in zip(trial.case_gains, best.case_gains, strict=True))


def _untimed(proposal: Proposal, outcome: PointOutcome, detail: str) -> PointTrial:
    return PointTrial(
        steps=proposal.steps,
        proposal=proposal.id,
        candidate=proposal.candidate.digest,
        outcome=outcome,
        detail=detail,
    )


def _trial(
    proposal: Proposal,
    outcome: PointOutcome,
    evaluation: Evaluation,
    verdict: VerdictKind | None,
    *,
    gain: float | None = None,
    detail: str = "",
) -> PointTrial:
    return PointTrial(
        steps=proposal.steps,
        proposal=proposal.id,
        candidate=proposal.candidate.digest,
        outcome=outcome,
        detail=detail or evaluation.detail,
        evaluation=evaluation.key,
        status=evaluation.status,
        verdict=verdict,
        log_speedup=gain,
        case_gains=tuple(log(paired.median) for paired in evaluation.paired),
        evidence=evaluation.timings[0].evidence if evaluation.timings else "none",
    )


def _study(seed: int, startup: int) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    # The first half of the points is the policy's; what the sampler learns from is never nothing.
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(1, startup // 2))
    return optuna.create_study(direction="maximize", sampler=sampler)


def _names(choices: Sequence[Choice]) -> dict[str, CategoricalDistribution]:
    return {f"{choice.steps[0]}.{choice.name}": CategoricalDistribution(choice.values) for choice in choices}


def _ask_for(
    study: optuna.Study, names: dict[str, CategoricalDistribution], values: Values
) -> tuple[Values, optuna.trial.Trial]:
    """Make a trial of a given point."""
    study.enqueue_trial(dict(zip(names, values, strict=True)))
    return values, study.ask(dict(names))


def _ask(
    study: optuna.Study, names: dict[str, CategoricalDistribution], left: dict[Values, None], count: int
) -> list[tuple[Values, optuna.trial.Trial]]:
    """Let the sampler name points that are left; where it repeats itself, the policy's next ones do."""
    found: list[tuple[Values, optuna.trial.Trial]] = []
    free = dict(left)
    for _ in range(_ASKS):
        if len(found) == count or not free:
            return found
        trial = study.ask(dict(names))
        values = tuple(str(trial.params[name]) for name in names)
        if values in free:
            del free[values]
            found.append((values, trial))
        else:
            study.tell(trial, state=TrialState.FAIL)
    return [*found, *(_ask_for(study, names, values) for values in list(free)[: count - len(found)])]
