"""Send the zoo's kernels through the ordinary evaluator and count what it got wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.baseline import establish_baseline
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.evaluation.seeds import SeedFile, SeedSource
from kernelskill.events import Clock
from kernelskill.schema.base import Record
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Evaluation, Request, Status
from kernelskill.session.gating import gate
from kernelskill.sweep.rates import Rate, rate
from kernelskill.sweep.zoo import Zoo, ZooKernel
from kernelskill.tasks.load import LoadedTask, load_task


class ZooOutcome(Record):
    """What became of one kernel."""

    kernel: ZooKernel
    status: Status
    detail: str
    expected: tuple[Status, ...]
    execution: str = "none"
    """`replayed` or `direct`, as in an evaluation."""
    speedup: float | None = None
    """Of the first timed case, where it was timed."""
    notes: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def as_it_must(self) -> bool:
        """Whether it got one of the statuses that it must get."""
        return self.status in self.expected


class ZooRecord(Record):
    """One visit to the zoo: outcomes, rates and what they depend on."""

    conditions: Conditions
    trials: int
    """Secret seeds a task."""
    stage: str
    """Deepest stage that every kernel was sent to."""
    outcomes: tuple[ZooOutcome, ...]
    left_out: dict[str, str]
    """File to the reason why this device can show nothing about it."""
    false_accept: Rate
    """Bad kernels that passed, of all bad ones that ran."""
    false_reject: Rate
    """Honest kernels that did not pass, of all honest ones that ran."""

    @property
    def unexpected(self) -> tuple[ZooOutcome, ...]:
        """What got another status than it must; a known hole is not among them while it is open."""
        return tuple(o for o in self.outcomes if not o.as_it_must and not _open_hole(o))


class ZooKeeper:
    """Evaluates kernels of the zoo, each against its task's own; one evaluator a task, opened when needed.

    Args:
        zoo: The kernels.
        device: As the user names it.
        folder: Where finished evaluations are kept, so that a stopped visit goes on.
        clock: Measures the stages.
        trials: Secret seeds a task.
        rules: How much is checked; the product's own by default.
        seed_source: Where the seeds come from; the system by default.
    """

    def __init__(
        self,
        zoo: Zoo,
        device: str,
        folder: Path,
        *,
        clock: Clock,
        trials: int,
        rules: CheckRules | None = None,
        seed_source: SeedSource | None = None,
    ) -> None:
        self._zoo = zoo
        self._device = device
        self._folder = folder
        self._clock = clock
        self._trials = trials
        self._rules = rules
        self._seed_source = seed_source
        self._open: dict[str, tuple[LoadedTask, Evaluator, str]] = {}

    def __enter__(self) -> ZooKeeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def conditions(self, kernel: ZooKernel) -> Conditions:
        """Return what the figures of a kernel's task depend on."""
        return self._task(kernel.task)[1].conditions()

    def prefetch(self, kernels: Iterable[ZooKernel]) -> None:
        """Start building kernels in the background."""
        for kernel in kernels:
            self._task(kernel.task)[1].prefetch([self._request(kernel)])

    def visit(self, kernel: ZooKernel) -> ZooOutcome:
        """Evaluate one kernel as a candidate that would be accepted is: in full, and confirmed.

        Raises:
            TaskError: Its task's own kernel or test cannot be used.
            HarnessError: Our own machinery failed.
        """
        started = self._clock.seconds()
        _, evaluator, _ = self._task(kernel.task)
        found = evaluator.evaluate(self._request(kernel))
        return ZooOutcome(
            kernel=kernel,
            status=found.status,
            detail=found.detail,
            expected=kernel.expected(evaluator.evidence),
            execution=found.execution,
            speedup=_speedup(found),
            notes=found.notes,
            unverified=found.unverified,
            seconds=round(self._clock.seconds() - started, 3),
        )

    def close(self) -> None:
        """Release processes and files."""
        for _, evaluator, _ in self._open.values():
            evaluator.close()
        self._open.clear()

    def _request(self, kernel: ZooKernel) -> Request:
        loaded, evaluator, pool = self._task(kernel.task)
        timed = evaluator.evidence == "measured"
        return Request(
            task=loaded.task.content_digest(),
            candidate=loaded.original.with_text(loaded.original.main, self._zoo.source(kernel)),
            # An estimate accuses nobody: where nothing is measured, the check is all there is.
            stage="time" if timed else "check",
            incumbent=loaded.original if timed else None,
            device=evaluator.identity,
            seed_pool=pool,
            fresh=1,
        )

    def _task(self, name: str) -> tuple[LoadedTask, Evaluator, str]:
        if name not in self._open:
            loaded = load_task(*self._zoo.task_files(name))
            gate(loaded, accept_weak=False)
            folder = self._folder / name
            seeds = SeedFile(folder / "seeds.json", self._seed_source)
            pool = seeds.pool("main", self._trials).digest
            evaluator = open_evaluator(
                self._device,
                loaded,
                run_folder=folder,
                seeds=seeds,
                clock=self._clock,
                check_rules=self._rules,
            )
            self._open[name] = (loaded, evaluator, pool)
            if evaluator.evidence == "measured":
                establish_baseline(evaluator, loaded.task, loaded.original, seed_pool=pool)
        return self._open[name]


def visit_zoo(
    keeper: ZooKeeper, kernels: Sequence[ZooKernel], *, trials: int, done: Callable[[ZooOutcome], None]
) -> ZooRecord:
    """Evaluate kernels in turn and return the record; those that this device cannot show are left out.

    Args:
        keeper: Opened on the device.
        kernels: At least one.
        trials: As the keeper's, for the record.
        done: Told of every outcome.
    """
    conditions = keeper.conditions(kernels[0])
    runs = [kernel for kernel in kernels if kernel.runs_on(conditions.evidence)]
    outcomes = []
    for position, kernel in enumerate(runs):
        keeper.prefetch(runs[position + 1 : position + 3])
        outcomes.append(keeper.visit(kernel))
        done(outcomes[-1])
    left_out = {kernel.file: kernel.reason for kernel in kernels if kernel not in runs}
    return record_of(conditions, outcomes, trials=trials, left_out=left_out)


def record_of(
    conditions: Conditions, outcomes: Sequence[ZooOutcome], *, trials: int, left_out: dict[str, str]
) -> ZooRecord:
    """Return outcomes with their rates."""
    passed = [o.status is Status.PASSED for o in outcomes if o.kernel.is_bad]
    refused = [o.status is not Status.PASSED for o in outcomes if not o.kernel.is_bad]
    return ZooRecord(
        conditions=conditions,
        trials=trials,
        stage="time" if conditions.evidence == "measured" else "check",
        outcomes=tuple(outcomes),
        left_out=left_out,
        false_accept=rate(sum(passed), len(passed)),
        false_reject=rate(sum(refused), len(refused)),
    )


def _open_hole(outcome: ZooOutcome) -> bool:
    return bool(outcome.kernel.hole) and outcome.status is Status.PASSED


def _speedup(found: Evaluation) -> float | None:
    return found.paired[0].median if found.paired else None
