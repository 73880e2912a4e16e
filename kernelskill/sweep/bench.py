"""Bench: run every task of a suite in turn and keep one row a task; a bench that was stopped goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log
from pathlib import Path

from pydantic import Field, ValidationError

from kernelskill.config import RunConfig
from kernelskill.errors import (
    AnswersWaiting,
    ArtifactCorrupt,
    JobsWaiting,
    KernelSkillError,
    RunInterrupted,
    ToolchainError,
    UsageError,
)
from kernelskill.events import Sink
from kernelskill.registry import unknown_name
from kernelskill.report.view import RunView
from kernelskill.runs import RunFolder, write_atomically
from kernelskill.schema.base import Record
from kernelskill.schema.device import Conditions, Evidence
from kernelskill.session import Session, StopFlag
from kernelskill.tasks.suite import Suite, SuiteEntry

RESULTS_FILE = "results.json"


class BenchCase(Record):
    """One timed case of a task, before and after."""

    case: str
    original_ms: float
    result_ms: float
    roof_fraction: float | None = None
    library: str = ""
    """The call that the test's `baseline()` names, where it was timed."""
    library_ms: float | None = None

    @property
    def quotient(self) -> float | None:
        """The library's time by ours; the roof stands in where there is no library."""
        return self.library_ms / self.result_ms if self.library_ms is not None else self.roof_fraction


class BenchRow(Record):
    """What became of one task."""

    task: str
    outcome: str
    """`improved`, `no gain` or `failed`."""
    speedup: float
    """Confirmed where it was confirmed; 1.0 where the original was kept."""
    low: float | None = None
    high: float | None = None
    evidence: Evidence = "none"
    accepted: tuple[str, ...] = ()
    """Labels of the accepted changes in order."""
    tried: int = 0
    best_try: str = ""
    """The nearest miss, where nothing was accepted."""
    reason: str = ""
    """Why the run stopped or failed."""
    cases: tuple[BenchCase, ...] = ()
    device_seconds: float = 0.0
    seconds: float = 0.0
    tokens: int = 0
    """Asked of and answered by a model."""
    cost_usd: float | None = 0.0
    """None where no price is known."""

    @property
    def quotient(self) -> float | None:
        """Geometric mean of the cases' quotients; None where one has none."""
        found = [case.quotient for case in self.cases]
        known = [value for value in found if value]
        return exp(sum(map(log, known)) / len(known)) if known and len(known) == len(found) else None


class BenchResults(Record):
    """All rows with the conditions they belong to."""

    suite: str
    conditions: Conditions | None = None
    config: RunConfig
    rows: tuple[BenchRow, ...] = ()

    @property
    def geometric_mean(self) -> float:
        """Over all tasks; one that failed or gained nothing counts as 1.0."""
        return exp(sum(log(row.speedup) for row in self.rows) / len(self.rows)) if self.rows else 1.0


def mean_quotient(rows: Sequence[BenchRow], cap: float | None = None) -> float | None:
    """Geometric mean of the tasks' quotients, each at most `cap`; None where no task has one."""
    known = [row.quotient for row in rows if row.quotient is not None]
    capped = known if cap is None else [min(value, cap) for value in known]
    return exp(sum(map(log, capped)) / len(capped)) if capped else None


class BenchOptions(Record):
    """How a bench is run."""

    config: RunConfig
    only: tuple[str, ...] = Field(default=())
    """Names of tasks; empty for all."""


RowSink = Callable[[BenchRow], None]
SinkMaker = Callable[[str], Sequence[Sink]]


def run_bench(
    suite: Suite, options: BenchOptions, out: Path, *, row_done: RowSink, sinks: SinkMaker, stop: StopFlag
) -> BenchResults:
    """Run the tasks of a suite; finished ones found in `out` are taken as they are.

    Args:
        suite: The tasks.
        options: Settings for every run.
        out: Folder for the run folders and `results.json`.
        row_done: Told after each task.
        sinks: Makes the event sinks of a task's run.
        stop: Set from outside to end after the task under way.

    Raises:
        RunInterrupted: The user stopped; the rows so far are kept.
        UsageError: `out` holds another bench, or no task has a name that was asked for.
        AnswersWaiting: A model has answers to give before some tasks can go on; the others are done.
        ToolchainError: A compiler or device is missing, for every task alike.
        ArtifactCorrupt: An earlier `results.json` cannot be read.
    """
    _require_known(suite, options.only)
    results = _read(out, suite, options)
    done = {row.task: row for row in results.rows}
    waiting: list[AnswersWaiting] = []
    for entry in suite.entries:
        if options.only and entry.name not in options.only:
            continue
        if entry.name not in done:
            try:
                row, view = _run_task(entry, options.config, out / entry.name, sinks(entry.name), stop)
            except AnswersWaiting as missing:
                waiting.append(missing)  # the others can still be asked for theirs
                continue
            except RunInterrupted:
                raise RunInterrupted(
                    "interrupted", remedy=f"the same command with --out {out} goes on from here"
                ) from None
            conditions = view.conditions if view else results.conditions
            results = results.model_copy(update={"rows": (*results.rows, row), "conditions": conditions})
            write_atomically(out / RESULTS_FILE, results.model_dump_json(indent=1).encode())
            done[entry.name] = row
        row_done(done[entry.name])
    if waiting:
        tasks = f"{len(waiting)} task{'s wait' if len(waiting) > 1 else ' waits'} for a model's answers"
        raise AnswersWaiting(
            f"{tasks}; of the first, {waiting[0].message}",
            remedy=f"write them; the same command with --out {out} goes on from here",
        )
    return results


def row_of(task: str, view: RunView) -> BenchRow:
    """Return the row of a finished run."""
    confirmed = view.state.confirmed if view.improved else None
    misses = [t for t in view.tried if t.verdict.speedup is not None]
    nearest = max(misses, key=lambda t: t.verdict.speedup or 0.0, default=None)
    return BenchRow(
        task=task,
        outcome="improved" if view.improved else "no gain",
        speedup=view.headline_speedup if view.improved else 1.0,
        low=confirmed.verdict.low if confirmed else None,
        high=confirmed.verdict.high if confirmed else None,
        evidence=view.evidence,
        accepted=tuple(change.label for change in view.changes) if view.improved else (),
        tried=len(view.tried),
        best_try=f"{nearest.label}: {nearest.verdict.reason}" if nearest and not view.improved else "",
        reason=view.state.finished.reason if view.state.finished else "interrupted",
        cases=tuple(
            BenchCase(
                case=row.case.label,
                original_ms=row.original.median_ms,
                result_ms=row.best.median_ms,
                roof_fraction=row.roof_best.fraction if row.roof_best else None,
                library=row.library.call if row.library else "",
                library_ms=row.library.median_ms if row.library else None,
            )
            for row in view.cases
        ),
        device_seconds=view.state.spend.device_seconds,
        seconds=view.state.spend.seconds,
        tokens=view.usage[-1].input_tokens + view.usage[-1].output_tokens if view.usage else 0,
        cost_usd=view.usage[-1].cost_usd if view.usage else 0.0,
    )


def _run_task(
    entry: SuiteEntry, config: RunConfig, out: Path, sinks: Sequence[Sink], stop: StopFlag
) -> tuple[BenchRow, RunView | None]:
    try:
        session = _open(entry, config, out, sinks, stop)
        with session:
            view = session.run()
    except (RunInterrupted, ToolchainError, JobsWaiting, AnswersWaiting):
        raise
    except KernelSkillError as error:
        # One task that cannot be used must not end the whole sweep; its row says why.
        return BenchRow(task=entry.name, outcome="failed", speedup=1.0, reason=error.message), None
    return row_of(entry.name, view), view


def _open(entry: SuiteEntry, config: RunConfig, out: Path, sinks: Sequence[Sink], stop: StopFlag) -> Session:
    if RunFolder(out).events.exists():
        return Session.resume(out, sinks=tuple(sinks), stop=stop)
    return Session.start(Path(entry.kernel), Path(entry.tests), config, out, sinks=tuple(sinks), stop=stop)


def _read(out: Path, suite: Suite, options: BenchOptions) -> BenchResults:
    path = out / RESULTS_FILE
    if not path.exists():
        return BenchResults(suite=suite.name, config=options.config)
    try:
        results = BenchResults.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ArtifactCorrupt(f"{path} cannot be read back", remedy="move it away to start over") from error
    if (results.suite, results.config) != (suite.name, options.config):
        what = "other settings" if results.suite == suite.name else f"the suite {results.suite!r}"
        raise UsageError(
            f"{str(out)!r} holds a bench with {what}",
            remedy="give the settings it was begun with, or choose another --out",
        )
    return results


def _require_known(suite: Suite, only: Sequence[str]) -> None:
    known = [entry.name for entry in suite.entries]
    for name in only:
        if name not in known:
            raise unknown_name("task", name, known)


__all__ = ["BenchOptions", "BenchResults", "BenchRow", "mean_quotient", "row_of", "run_bench"]
