"""Search a chosen family's parameters with the tools and records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np

from kernelskill.agents.families import Values, place_of, points, size_of, steps_at, values_of
from kernelskill.errors import RunInterrupted
from kernelskill.evaluation.judge import judge
from kernelskill.graph import outcomes
from kernelskill.graph.context import SEARCHES, SLATES, RoundContext
from kernelskill.graph.forecasting import forecast_gains, wants_forecasts
from kernelskill.graph.points import made_point
from kernelskill.policy.features import FEATURE_NAMES, SCHEMA_VERSION
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.candidate import Step
from kernelskill.schema.evaluation import Evaluation, Request, VerdictKind
from kernelskill.schema.event import Evaluated, Searched
from kernelskill.schema.proposal import Effect, Proposal, Refusal, Slate
from kernelskill.schema.search import ParameterSearch
from kernelskill.search.climbing import climbed
from kernelskill.search.parameters import PointSearch
from kernelskill.search.screening import after_building, before_building

MOST_POINTS = 48
"""Points of a family that the policy puts in order, beside those with forecasts; the slate keeps a row of each."""

LEAST_BUILT = 2
"""Points below which there is nothing to choose from."""
MOST_BUILT = 6
"""Points of one family that are built in a round."""
MOST_BUILT_OF_FORECAST = 5
"""The same where forecasts put the points in order."""
MOST_BUILT_ALONE = 8
"""The same of the best family of a round, where others leave it some."""
WAVES = 3
"""Times as many points of a family are forecast as proposals of a slate: a wave around each point that leads."""

_BUDGET_SHARE = 0.4
"""Of the device time that is left when a round begins, for its searches."""

_CHEAP_SHARE = 0.4
"""Of the cost of a full evaluation, what the cheap stage takes."""

_PLACE_COST = 0.02
"""ln(speedup) that a value is taken to lose a place down its list; so much the skill's author knew."""
_POINT_DEVIATION = 0.03
"""Points of one family share the doubt about their skill; this is what sets them apart."""


def allowance(context: RoundContext, number: int) -> int:
    """Return how many points a round may build.

    Of a limited device time a part is left to the full stage. Only what was known when the round began
    counts, so that a round that was killed and taken up again comes to the same number.
    """
    budget = context.budget_for_now().device_seconds
    if budget is None:
        return context.config.points
    earlier = [e.seconds for e in context.log.events if isinstance(e, Evaluated) and e.round < number]
    original = context.member(context.task.original).evaluation
    # The original alone runs under the sanitizer in any case, which says nothing about a candidate's cost.
    like = sum(stage.seconds for stage in original.seconds if stage.stage in ("check", "time"))
    mean = (like + sum(earlier)) / (1 + len(earlier))
    left = max(0.0, budget - sum(earlier))
    fitting = int(_BUDGET_SHARE * left / (_CHEAP_SHARE * mean)) if mean > 0 else context.config.points
    return min(context.config.points, fitting)


def shared_out(context: RoundContext, left: int, families: Sequence[Proposal]) -> list[tuple[Proposal, int]]:
    """Return the families that are searched, each with the points that it may build.

    Where forecasts lead, what the others do not need is the first one's: more neighbours of its best point are timed.
    """
    forecasts = wants_forecasts(context)
    found: list[tuple[Proposal, int]] = []
    for family in families:
        limit = min(left, MOST_BUILT_OF_FORECAST if forecasts else MOST_BUILT, size_of(family.choices))
        if limit >= LEAST_BUILT:
            found.append((family, limit))
            left -= limit
    if found and forecasts:
        first, limit = found[0]
        found[0] = first, min(limit + left, MOST_BUILT_ALONE, size_of(first.choices))
    return found


class FamilySearch:
    """The search of one chosen family in one round.

    Args:
        context: The run.
        number: The round.
        family: The chosen proposal.
        limit: Points that may be built.
    """

    def __init__(self, context: RoundContext, number: int, family: Proposal, limit: int) -> None:
        self._context, self._number, self._family = context, number, family
        bench = _Bench(context, number, family)
        own = values_of(family.choices, family.steps)
        forecast = _forecast_points(context, bench, own)
        self._slate = _point_slate(context, number, family, limit, forecast)
        order = [values_of(family.choices, row.steps) for row in self._slate.ranked]
        self._search = PointSearch(
            family=family,
            order=list(dict.fromkeys([own, *forecast, *order])),
            limit=limit,
            seed=int(sha256_text(canonical_json([context.config.seed, number, family.id]))[:8], 16),
            bench=bench,
            climbs=wants_forecasts(context),
        )

    @property
    def is_done(self) -> bool:
        """Whether an earlier attempt finished it."""
        return self._context.run.has(SEARCHES, self._slate.id)

    def prefetch(self) -> None:
        """Start building the first points."""
        if not self.is_done:
            self._search.prefetch()

    def run(self) -> ParameterSearch:
        """Search the points at the cheap stage and record what they brought."""
        run, slate = self._context.run, self._slate
        if self.is_done:
            found = run.get(SEARCHES, slate.id, ParameterSearch)
        else:
            size = size_of(self._family.choices)
            trials = self._search.run()
            found = ParameterSearch(slate=slate.id, family=self._family.id, points=size, trials=trials)
            run.put(SEARCHES, slate.id, found)
        _record(self._context, self._number, self._family, slate, found)
        return found


def _record(
    context: RoundContext, number: int, family: Proposal, slate: Slate, found: ParameterSearch
) -> None:
    tried = {trial.steps for trial in found.trials if trial.evaluation}
    marked = tuple(row.model_copy(update={"chosen": row.steps in tried}) for row in slate.ranked)
    if context.pool is not None:
        context.pool.record_slate(slate.model_copy(update={"ranked": marked}))
    context.log.emit(
        Searched(
            round=number,
            slate=slate.id,
            family=family.id,
            label=family.label,
            points=found.points,
            timed=found.count("timed", "kept"),
            pruned=found.count("pruned"),
            failed=found.count("failed"),
            kept=found.kept,
            labels=tuple(context.proposal(kept).label for kept in found.kept),
        )
    )


def _point_slate(
    context: RoundContext, number: int, family: Proposal, limit: int, forecast: Sequence[Values]
) -> Slate:
    """Put the points of a family in order; the same round of the same run always gives the same order."""
    identity = sha256_text(canonical_json([context.run_id, number, "points", family.id]))[:16]
    if context.run.has(SLATES, identity):
        return context.run.get(SLATES, identity, Slate)
    diagnosis = context.diagnosis(family.base)
    features = outcomes.features_of(context, family.base)
    thought_of = dict.fromkeys([*points(family.choices, MOST_POINTS), *forecast])
    offered = [_as_point(family, values) for values in thought_of]
    ranked = context.policy.rank(
        offered,
        {family.base: diagnosis.bottlenecks},
        {family.base: features},
        take=limit,
        rng=np.random.default_rng([context.config.seed, number, int(family.id[:8], 16)]),
    )
    rows = [row.model_copy(update={"proposal": point_id(family.base, row.steps)}) for row in ranked]
    slate = Slate(
        id=identity,
        run=context.run_id,
        round=number,
        context=tuple(sorted(features.items())),
        feature_names=FEATURE_NAMES,
        schema_version=SCHEMA_VERSION,
        policy=context.policy.name,
        ranked=tuple(rows),
        family=family.id,
    )
    context.run.put(SLATES, identity, slate)
    return slate


def point_id(base: str, steps: Sequence[Step]) -> str:
    """Return the name of a point in its slate, whether or not its steps can be applied."""
    return sha256_text(canonical_json([base, [step.model_dump(mode="json") for step in steps]]))[:16]


def _as_point(family: Proposal, values: Values) -> Proposal:
    """Return what the policy sees of a point: the family with other values, later ones a little worse."""
    predicted = Effect(
        log_speedup=family.predicted.log_speedup - _PLACE_COST * place_of(family.choices, values),
        deviation=_POINT_DEVIATION,
    )
    steps = steps_at(family.steps, family.choices, values)
    return family.model_copy(update={"steps": steps, "predicted": predicted})


def _forecast_points(context: RoundContext, bench: _Bench, own: Values) -> list[Values]:
    """Return the points to which forecasts lead from the family's own, the best first; none where there are none."""
    if not wants_forecasts(context):
        return []

    def tell(asked: Sequence[Values]) -> dict[Values, float]:
        made: dict[Values, Proposal] = {}
        for values in asked:
            point = bench.make(steps_at(bench.family.steps, bench.family.choices, values))
            if isinstance(point, Proposal) and not bench.before_building(point):
                made[values] = point
        gains = forecast_gains(context, list(made.values()), spills=False)
        return {values: gains[point.id] for values, point in made.items() if point.id in gains}

    return climbed(bench.family.choices, own, WAVES * context.config.forecasts, tell)


def _check_of(request: Request) -> Request:
    """Return the check that comes before a timing."""
    return request.model_copy(update={"stage": "check", "incumbent": None})


@dataclass(frozen=True)
class _Bench:
    """Implements `search.parameters.Workbench` on the records of a run."""

    context: RoundContext
    number: int
    family: Proposal

    def make(self, steps: tuple[Step, ...]) -> Proposal | Refusal:
        return made_point(self.context, self.family, steps)

    def is_known(self, digest: str) -> bool:
        # A search that is run again after a kill finds its own evaluations in the log.
        return any(
            isinstance(event, Evaluated) and event.candidate == digest and event.round < self.number
            for event in self.context.log.events
        )

    def before_building(self, proposal: Proposal) -> str:
        base = self.context.member(self.family.base).candidate
        task, gpu = self.context.task, self.context.evaluator.gpu
        return before_building(proposal.candidate, base, gpu, task.flags)

    def before_timing(self, proposal: Proposal, check: Evaluation) -> str:
        base = self.context.member(self.family.base).evaluation
        task, gpu = self.context.task, self.context.evaluator.gpu
        return after_building(check.kernels, proposal.candidate, base.kernels, gpu, task.flags)

    def prefetch(self, proposals: Sequence[Proposal], stage: Literal["check", "time"]) -> None:
        requests = [self.context.request(proposal, depth="cheap") for proposal in proposals]
        self.context.evaluator.prefetch(
            requests if stage == "time" else [_check_of(request) for request in requests]
        )

    def check(self, proposal: Proposal) -> Evaluation | None:
        if self.context.stop.is_set:
            raise RunInterrupted("stopped between two evaluations")
        if self.context.is_spent_for_now():
            return None
        request = self.context.request(proposal, depth="cheap")
        check = self.context.evaluator.evaluate(_check_of(request))
        if not check.passed:
            self._log(proposal, check, check.detail)
        return check

    def drop(self, proposal: Proposal, check: Evaluation, reason: str) -> None:
        self._log(proposal, check, reason)

    def time(self, proposal: Proposal) -> tuple[Evaluation, VerdictKind, float | None] | None:
        if self.context.stop.is_set:
            raise RunInterrupted("stopped between two evaluations")
        if self.context.is_spent_for_now():
            return None
        evaluation = self.context.evaluator.evaluate(self.context.request(proposal, depth="cheap"))
        self._log(proposal, evaluation, evaluation.detail)
        verdict = judge(self.context.task, evaluation, incumbent_label="its base", noise=self.context.noise)
        return evaluation, verdict.kind, None if verdict.speedup is None else log(verdict.speedup)

    def _log(self, proposal: Proposal, evaluation: Evaluation, detail: str) -> None:
        self.context.log.emit(
            outcomes.evaluated(self.number, proposal, evaluation).model_copy(
                update={"detail": detail, "depth": "cheap"}
            )
        )
