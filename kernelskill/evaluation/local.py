"""LocalEvaluator: answers requests with a backend of this machine."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernelskill.backends.base import Backend, Unrecordable
from kernelskill.errors import HarnessError, WorkerDied
from kernelskill.evaluation.answers import (
    begun,
    plan_facts,
    shapes_of,
    spoilt,
    uncompiled,
    unpermitted,
    with_times,
)
from kernelskill.evaluation.base import Closing
from kernelskill.evaluation.capabilities import SanitizingBackend, exclusive
from kernelskill.evaluation.check import check_candidate
from kernelskill.evaluation.demands import NOTHING_KNOWN, Demands
from kernelskill.evaluation.forecasts import Forecast, Forecaster, Wanted, always
from kernelskill.evaluation.permissions import refusal_of
from kernelskill.evaluation.probing import find_demands
from kernelskill.evaluation.profile_stage import ProfileStage
from kernelskill.evaluation.protocol import CheckProtocol, CheckRules
from kernelskill.evaluation.right_answers import RightAnswers
from kernelskill.evaluation.sanitizing import SanitizedTimes, sanitize
from kernelskill.evaluation.second_look import review, would_be_accepted
from kernelskill.evaluation.seeds import SeedFile, SeedPool
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.suspicion import suspicions
from kernelskill.evaluation.time_stage import TimeStage
from kernelskill.evaluation.timing import TimingRules
from kernelskill.evaluation.trials import TrialSource, ValueSource
from kernelskill.evaluation.twins import TimedPrograms, are_twins, evaluation_of_twin
from kernelskill.evaluation.user_baseline import ready_user_baseline, time_user_baseline
from kernelskill.evaluation.workshop import Workshop
from kernelskill.events import Clock
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.build import Build, BuildFailure
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Conditions, Evidence, Gpu
from kernelskill.schema.evaluation import (
    DEVICE_STAGES,
    Depth,
    Evaluation,
    Request,
    StageSeconds,
    Status,
    Timing,
)
from kernelskill.schema.profile import Profile, ProfileDepth
from kernelskill.schema.task import Task


class LocalEvaluator:
    """Builds, checks, times and profiles candidates of one task on one backend.

    Args:
        backend: The device.
        task: What to speed up.
        original: The user's own kernel.
        values: The process that holds test.py.
        seeds: The run's secret seeds.
        store: Where finished answers are kept.
        data: Folder for inputs and expected values; emptied on close.
        clock: Measures the stages.
        check_rules: How much is checked.
        timing_rules: How many pairs are timed.
        closes: What ends together with this evaluator.
    """

    def __init__(
        self,
        backend: Backend,
        task: Task,
        original: Candidate,
        values: ValueSource,
        *,
        seeds: SeedFile,
        store: EvaluationStore,
        data: Path,
        clock: Clock,
        check_rules: CheckRules | None = None,
        timing_rules: TimingRules | None = None,
        closes: Sequence[Closing] = (),
    ) -> None:
        self.task = task
        self.original = original
        self.device = backend.name
        self.gpu: Gpu = backend.gpu
        self.evidence: Evidence = backend.evidence
        self.store = store
        self.seeds = seeds
        self._backend = backend
        self._clock = clock
        self._data = data
        self._check_rules = check_rules or CheckRules()
        self._timing_rules = timing_rules or TimingRules()
        self._workshop = Workshop(backend, task, data / "workers")
        self._trials = TrialSource(task, values, data / "values")
        self._values = values
        self._closes = closes
        self._stages: dict[tuple[str, bool], TimeStage] = {}
        self._profiles = ProfileStage(
            task, backend, self._workshop, self._trials, store, hold=lambda: self._hold("profile", [])
        )
        self._timed = TimedPrograms()
        self._sanitized = SanitizedTimes()
        self._right = RightAnswers()
        self._forecaster = Forecaster(task, backend.gpu, self._trials, store, data / "forecasts")
        self._device = threading.Lock()

    def conditions(self) -> Conditions:
        """Return what the figures depend on."""
        return self._backend.conditions()

    @property
    def identity(self) -> str:
        """What request keys carry: times of another GPU never answer for this one."""
        return f"{self._backend.name} {self._backend.gpu.name}"

    def prefetch(self, requests: Sequence[Request]) -> None:
        """Start building candidates in the background; returns at once."""
        self._workshop.prefetch([request.candidate for request in requests])

    def evaluate(self, request: Request) -> Evaluation:
        """Answer a request; a finished answer of the same key is returned without work.

        Raises:
            HarnessError: The request belongs to other seeds or another task.
        """
        found = self.store.get(request.key)
        if found is not None:
            self._timed.add(request, found)
            return found
        pool = self.seeds.find(request.seed_pool)
        try:
            evaluation = self._answer(request, pool, ())
        except WorkerDied as first:
            # A dead worker is our trouble until it happens twice with the same candidate.
            trouble = (f"a worker died and the evaluation was repeated: {first.message}",)
            try:
                evaluation = self._answer(request, pool, trouble)
            except WorkerDied as second:
                evaluation = spoilt(request, second, trouble, self.conditions())
        self.store.put(evaluation)
        self._timed.add(request, evaluation)
        return evaluation

    def demands(self, pool: SeedPool) -> Demands:
        """Return which layouts the original survives, found out once a pool.

        Raises:
            HarnessError: A worker died.
        """
        key = sha256_text(canonical_json(["demands", self.task.content_digest(), self.device, pool.digest]))
        found = self.store.read("demands", key, Demands)
        if found is None:
            build = self._workshop.build(self.original)
            if isinstance(build, BuildFailure):
                return NOTHING_KNOWN
            protocol = self._protocol_of(pool, NOTHING_KNOWN)
            # Putting the cases in order makes the values of each first seed, before the device is held.
            protocol.cases("full")
            with self._hold("check", []):
                found = find_demands(protocol, self._workshop, build)
            self.store.write("demands", key, found)
        return found

    def profile(
        self, candidate: Candidate, pool: SeedPool | None = None, *, depth: ProfileDepth = "quick"
    ) -> Profile:
        """Collect the figures of a candidate on its first timed case.

        Args:
            candidate: A right one.
            pool: The seeds of the values; the run's main pool by default.
            depth: How much is collected, where the device has hardware counters.

        Raises:
            HarnessError: The candidate does not build or gives no plan; only right ones are profiled.
        """
        return self._profiles.profile(candidate, pool or self.seeds.pool(), depth)

    def forecasts(self, candidates: Sequence[Candidate], wanted: Wanted = always) -> dict[str, Forecast]:
        """Return what the emulated form of this device gives candidates, by their digests; the device is not held.

        Raises:
            TaskError: test.py could not make the values.
        """
        return self._forecaster.forecasts(candidates, self.seeds.pool(), wanted)

    def close(self) -> None:
        """Release processes and files; inputs and expected values can be made again."""
        self._workshop.close()
        self._forecaster.close()
        for other in self._closes:
            other.close()
        shutil.rmtree(self._data, ignore_errors=True)

    def _answer(self, request: Request, pool: SeedPool, trouble: tuple[str, ...]) -> Evaluation:
        if request.stage == "check":
            return self._check(request, pool, trouble)
        twin = self._twin(request, pool)
        if twin is not None:
            return twin
        check = self.evaluate(request.model_copy(update={"stage": "check", "incumbent": None}))
        if not check.passed:
            return check.model_copy(update={"key": request.key, "stage": "time"})
        return self._time(request, pool, check, trouble)

    def _twin(self, request: Request, pool: SeedPool) -> Evaluation | None:
        """Return the answer for a candidate that is a program already timed beside the same incumbent."""
        incumbent = request.incumbent
        if request.depth == "full" or incumbent is None or incumbent == request.candidate:
            return None
        build = self._workshop.build(request.candidate)
        if isinstance(build, BuildFailure) or refusal_of(
            self.task, build, self._workshop.build(self.original)
        ):
            return None
        calls = self._protocol_of(pool, self.demands(pool)).plain_calls()
        for known in self._timed.like(build, incumbent):
            other = self._workshop.build(known.candidate)
            if isinstance(other, Build) and are_twins(self._workshop, build, other, calls):
                return evaluation_of_twin(known, request, build)
        return None

    def _check(self, request: Request, pool: SeedPool, trouble: tuple[str, ...]) -> Evaluation:
        seconds: list[StageSeconds] = []
        with self._watch("build", seconds):
            build = self._workshop.build(request.candidate)
        evaluation = begun(request, self.conditions(), trouble)
        if isinstance(build, BuildFailure):
            return uncompiled(evaluation, build, tuple(seconds))
        if refusal := refusal_of(self.task, build, self._workshop.build(self.original)):
            return unpermitted(evaluation, build, refusal, tuple(seconds))
        with self._watch("data", seconds):
            demands = self.demands(pool)
            is_original = request.candidate.digest == self.task.original
            if is_original:
                # Its races excuse those of no candidate: an original that races is refused itself.
                demands = demands.model_copy(update={"races": False})
            protocol = self._protocol_of(pool, demands)
            protocol.make_values(request.depth)
        with self._watch("record", seconds):
            refused = self._workshop.must_run_directly(build, protocol.plain_calls())
        reuse = protocol.keeps_workers and not request.fresh
        with (
            self._hold("check", seconds),
            self._workshop.bench(build, directly=bool(refused), reuse=reuse) as bench,
        ):
            report = check_candidate(protocol, bench, request.depth)
            bench.wants_to_be_kept = report.status is Status.PASSED
        plan = self._workshop.plans(build).plan(protocol.plain_call(self.task.timed_cases[0]))
        if isinstance(plan, Unrecordable) and not refused:
            report.fail(plan.status, f"case {self.task.timed_cases[0].label}: {plan.reason}")
        sanitized = request.fresh or (is_original and isinstance(self._backend, SanitizingBackend))
        if sanitized and report.status is Status.PASSED:
            with self._hold("sanitize", seconds):
                sanitize(self._workshop, protocol, build, self._workshop.build(self.original), report)
        notes = [f"the launcher ran itself, since it cannot be recorded: {refused.reason}"] if refused else []
        facts = plan_facts(plan, directly=bool(refused)) | {
            "kernels": build.kernels,
            "machine_code": build.machine_code,
            "commands": build.commands,
            "status": report.status,
            "detail": report.detail,
            "checks": tuple(report.outcomes),
            "shapes": shapes_of(protocol),
            "unverified": (*report.unverified, *demands.notes),
            "notes": (*trouble, *notes, *report.notes, *report.races),
            "seconds": tuple(seconds),
        }
        return evaluation.model_copy(update=facts)

    def _time(
        self, request: Request, pool: SeedPool, check: Evaluation, trouble: tuple[str, ...]
    ) -> Evaluation:
        seconds = list(check.seconds)
        sides = [self._workshop.build(request.candidate)]
        if request.incumbent is not None:
            sides.append(self._workshop.build(request.incumbent))
        for side in sides:
            if isinstance(side, BuildFailure):
                raise HarnessError("a candidate that was built before does not build any more")
        builds = [side for side in sides if isinstance(side, Build)]
        stage = self._time_stage(pool, request.depth)
        with self._watch("data", seconds):
            stage.make_values()
        with self._hold("time", seconds):
            incumbent = builds[1] if len(builds) > 1 else None
            report = stage.time(builds[0], incumbent, reuse=not request.fresh)
        baseline: tuple[Timing, ...] = ()
        reasons: tuple[str, ...] = ()
        if request.candidate == self.original and report.status is Status.PASSED:
            with self._watch("data", seconds):
                ready_user_baseline(self.task, self._values, pool, self.evidence)
            with self._hold("library", seconds):
                baseline, reasons = time_user_baseline(self.task, self._values, pool, self.evidence)
        evaluation = with_times(check, report).model_copy(
            update={
                "key": request.key,
                "stage": "time",
                "notes": (*check.notes, *trouble, *report.notes, *reasons),
                "baseline_timings": baseline,
                "conditions": self.conditions(),
            }
        )
        if evaluation.passed and request.depth != "cheap" and request.candidate != self.original:
            evaluation = self._reviewed(request, pool, evaluation, builds[0], seconds)
        return evaluation.model_copy(update={"seconds": tuple(seconds)})

    def _reviewed(
        self,
        request: Request,
        pool: SeedPool,
        evaluation: Evaluation,
        build: Build,
        seconds: list[StageSeconds],
    ) -> Evaluation:
        """Sanitize what would be accepted, and look again at what is too good to be taken on trust."""
        reasons = suspicions(self.task, evaluation, self.gpu)
        sanitizing = isinstance(self._backend, SanitizingBackend) and not request.fresh
        if not reasons and not (sanitizing and would_be_accepted(self.task, evaluation)):
            return evaluation
        if not reasons and self._sanitized.has_faster(self.task, pool, evaluation):
            unverified = (*evaluation.unverified, "no sanitizer ran: a faster candidate was known already")
            return evaluation.model_copy(update={"unverified": unverified})
        demands = self.demands(pool)
        protocol = again = self._protocol_of(pool, demands)
        if reasons:
            again = self._protocol_of(self.seeds.pool("second look", len(pool.seeds)), demands)
            with self._watch("data", seconds):
                again.make_values("search")
        with self._hold("review", seconds):
            reviewed = review(
                evaluation,
                reasons,
                protocol,
                again,
                self._workshop,
                build,
                self._workshop.build(self.original),
                sanitized=bool(request.fresh),
            )
        self._sanitized.add(self.task, pool, reviewed)
        return reviewed

    def _protocol_of(self, pool: SeedPool, demands: Demands) -> CheckProtocol:
        return CheckProtocol(
            self.task,
            self._trials,
            pool,
            evidence=self.evidence,
            demands=demands,
            rules=self._check_rules,
            clock=self._clock,
            right=self._right,
        )

    def _time_stage(self, pool: SeedPool, depth: Depth) -> TimeStage:
        # An estimate is what it is however briefly it is asked for; the cheap stage's are kept for the full one.
        short = depth == "cheap" and self.evidence == "measured"
        if (pool.digest, short) not in self._stages:
            self._stages[pool.digest, short] = TimeStage(
                self._protocol_of(pool, self.demands(pool)),
                self._workshop,
                evidence=self.evidence,
                rules=self._timing_rules.shortened() if short else self._timing_rules,
            )
        return self._stages[pool.digest, short]

    @contextmanager
    def _hold(self, stage: str, seconds: list[StageSeconds]) -> Iterator[None]:
        """Have the device alone, and account for the time."""
        with self._device, exclusive(self._backend), self._watch(stage, seconds):
            yield

    @contextmanager
    def _watch(self, stage: str, seconds: list[StageSeconds]) -> Iterator[None]:
        started = self._clock.seconds()
        try:
            yield
        finally:
            took = self._clock.seconds() - started
            seconds.append(StageSeconds(stage=stage, seconds=took))
            if stage in DEVICE_STAGES:
                self.store.count_device(took)
