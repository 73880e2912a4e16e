"""Session: one optimisation from task to report; every front end drives this.

with Session.start(kernel, tests, config, out) as session:
    view = session.run()
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelskill.config import RunConfig
from kernelskill.errors import AnswersWaiting, HarnessError, JobsWaiting, KernelSkillError, RunInterrupted
from kernelskill.evaluation.seeds import SeedSource
from kernelskill.events import Clock, Sink
from kernelskill.graph.context import RoundContext
from kernelskill.report.outputs import write_outputs
from kernelskill.report.reproducer import reproducer
from kernelskill.report.view import RunView, build_view
from kernelskill.runs import RunState, StopFlag, SystemClock, fold
from kernelskill.schema.event import Failed, Interrupted, Note, RunFinished
from kernelskill.schema.run import StopReason
from kernelskill.session import rounds
from kernelskill.session.assemble import Assembly, Surroundings, assemble_new, assemble_resumed


class Session:
    """A run in progress. Close it, or use it as a context manager."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    @staticmethod
    def start(
        kernel: Path,
        tests: Path,
        config: RunConfig,
        out: Path,
        *,
        sinks: Sequence[Sink] = (),
        stop: StopFlag | None = None,
        clock: Clock | None = None,
        waiting: Callable[[str], None] | None = None,
        seed_source: SeedSource | None = None,
    ) -> Session:
        """Load and gate a task and make its run folder.

        Args:
            kernel: The `.cu` file.
            tests: Its `test.py`.
            config: All settings.
            out: The run folder; must not hold a run.
            sinks: Told of every event.
            stop: Set from outside to stop at the next safe point.
            clock: Where times come from.
            waiting: Told in one line what is waited for.
            seed_source: Where the secret seeds come from; the system by default.

        Raises:
            TaskError: The kernel or its test cannot be used.
            UsageError: The folder cannot be used.
            ToolchainError: A compiler or device is missing.
        """
        around = Surroundings(stop or StopFlag(), clock or SystemClock(), tuple(sinks), waiting, seed_source)
        return Session(assemble_new(kernel, tests, config, out, around))

    @staticmethod
    def resume(
        folder: Path,
        *,
        device: str = "",
        sinks: Sequence[Sink] = (),
        stop: StopFlag | None = None,
        clock: Clock | None = None,
        waiting: Callable[[str], None] | None = None,
        more_rounds: int = 0,
        wait: bool = True,
        changes: Mapping[str, Any] | None = None,
    ) -> Session:
        """Take up a run that ended or was killed, on this machine or one it was copied to.

        Args:
            folder: The run folder.
            device: Another device than before; empty for the same.
            sinks: Told of every event from now on.
            stop: Set from outside to stop at the next safe point.
            clock: Where times come from.
            waiting: Told in one line what is waited for.
            more_rounds: Rounds beyond those the run was started with.
            wait: Whether to wait for the workers of a spool folder.
            changes: Further settings that differ from now on, by name.

        Raises:
            UsageError: The folder holds no run.
            ToolchainError: A compiler or device is missing.
        """
        around = Surroundings(stop or StopFlag(), clock or SystemClock(), tuple(sinks), waiting)
        settings = {**(changes or {}), "wait": wait, **({"device": device} if device else {})}
        return Session(assemble_resumed(folder, settings, around, more_rounds=more_rounds))

    @property
    def context(self) -> RoundContext:
        """The tools and records of the run."""
        return self._assembly.context

    @property
    def state(self) -> RunState:
        """What the events so far lead to."""
        return fold(self.context.log.events)

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.context.run.root

    def run(self) -> RunView:
        """Measure the baseline, run the rounds, confirm the winner and write the results.

        Returns:
            The run as a report shows it.

        Raises:
            TaskError: The original fails its own test.
            RunInterrupted: The user stopped; the best so far was written.
            AnswersWaiting: A model has not answered yet; the best so far was written.
            HarnessError: Our own machinery failed; the run can be resumed.
        """
        context = self.context
        try:
            rounds.establish(context, self._assembly.original)
            if self._assembly.moved:
                rounds.remeasure_frontier(context)
            reason = rounds.run_rounds(context)
            rounds.confirm(context, self._assembly.fresh_pool)
            return self._finish(reason)
        except (RunInterrupted, KeyboardInterrupt):
            self._interrupted()
            raise RunInterrupted("interrupted", remedy=f"kernelskill resume {context.run.root}") from None
        except AnswersWaiting:
            self._write_so_far()
            raise
        except JobsWaiting:
            raise  # the run is as it should be; a resume goes on when the answers are there
        except KernelSkillError as error:
            self._failed(error)
            raise
        except BrokenPipeError:
            raise  # a sink's reader has gone; that is no trouble of the run
        except (OSError, sqlite3.Error) as error:
            failed = HarnessError(
                f"cannot keep the run in {str(context.run.root)!r}: {_reason(error)}",
                remedy=f"when there is room and permission: kernelskill resume {context.run.root}",
            )
            self._failed(failed)
            raise failed from error

    def view(self) -> RunView:
        """Return the run as a report shows it."""
        return build_view(self.context.run, self.context.log.events)

    def close(self) -> None:
        """Release processes and files."""
        self._assembly.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _finish(self, reason: StopReason) -> RunView:
        context = self.context
        rounds.diagnose_best(context)
        view = self.view()
        written = write_outputs(view, context.run.root, reproducer=self._reproducer(view))
        context.log.emit(
            RunFinished(
                reason=reason,
                best=view.state.best,
                speedup=view.headline_speedup if view.improved else 1.0,
                evidence=view.evidence,
                files=written,
                spend=context.spend(),
                attempt=self._assembly.attempt,
            )
        )
        view = self.view()
        write_outputs(view, context.run.root, reproducer=self._reproducer(view))
        return view

    def _interrupted(self) -> None:
        context = self.context
        state = self.state
        where = f"in round {state.open_round.round}" if state.open_round else f"after round {state.rounds}"
        context.log.emit(Interrupted(where=where, attempt=self._assembly.attempt))
        self._write_so_far()

    def _write_so_far(self) -> None:
        """Write the best so far, once there is a baseline."""
        context = self.context
        if self.state.baseline is not None:
            view = self.view()
            write_outputs(view, context.run.root, reproducer=self._reproducer(view))

    def _failed(self, error: KernelSkillError) -> None:
        # The log itself may be what cannot be written; the first error is the one to report.
        with suppress(HarnessError):
            self.context.log.emit(Failed(error=error.message, remedy=error.remedy))

    def _reproducer(self, view: RunView) -> str:
        shapes = view.original.evaluation.shapes
        if not shapes:
            self.context.log.emit(
                Note(text="no reproducer was written: the sizes of the timed case are unknown")
            )
            return ""
        case = next(case for case in view.task.cases if case.index == shapes[0].case)
        return reproducer(view.task, view.best.candidate, case, shapes[0].buffers, shapes[0].scalars)


def _reason(error: OSError | sqlite3.Error) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
