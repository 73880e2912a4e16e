"""Session: one optimisation from task to report; every front end drives this.

with Session.start(kernel, tests, config, out) as session:
    view = session.run()
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from kernelskill.config import RunConfig
from kernelskill.errors import AnswersWaiting, HarnessError, JobsWaiting, KernelSkillError, RunInterrupted
from kernelskill.evaluation.seeds import SeedSource
from kernelskill.events import Clock, Sink
from kernelskill.graph.context import RoundContext
from kernelskill.report.outputs import write_outputs
from kernelskill.report.view import RunView, build_view
from kernelskill.runs import RunState, StopFlag, SystemClock, fold
from kernelskill.schema.event import Failed, Interrupted, RunFinished
from kernelskill.schema.run import StopReason
from kernelskill.session import rounds
from kernelskill.session.assemble import Assembly, Surroundings, assemble_new, assemble_resumed
from kernelskill.session.borders import Asker
from kernelskill.session.evidence import Evidence
from kernelskill.session.history import History
from kernelskill.session.output import Output, standalone
from kernelskill.session.records import Said, SessionStatus
from kernelskill.session.saying import said
from kernelskill.session.settings import Settings
from kernelskill.session.status import status_of
from kernelskill.session.steering import SteeringDesk
from kernelskill.session.work import Work
from kernelskill.session.workbench import Workbench


class Session:
    """A run in progress. Close it, or use it as a context manager."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._status: tuple[int, SessionStatus] | None = None

    @cached_property
    def work(self) -> Work:
        """What uses the device: baseline, rounds, confirmation, another measurement."""
        return Work(self._bench, self.history, self.settings)

    @cached_property
    def history(self) -> History:
        """The candidates, and which of them the run goes on from."""
        return History(self._bench)

    @cached_property
    def steering(self) -> SteeringDesk:
        """What the user wants tried or left alone."""
        return SteeringDesk(self._bench)

    @cached_property
    def evidence(self) -> Evidence:
        """Why things are as they are."""
        return Evidence(self._bench, self.history, self.steering)

    @cached_property
    def settings(self) -> Settings:
        """Model and limits."""
        return Settings(self._bench)

    @cached_property
    def output(self) -> Output:
        """Report, results and the user's own file."""
        return Output(self._bench, self.history)

    @cached_property
    def _bench(self) -> Workbench:
        return Workbench(self._assembly)

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
        ask: Asker | None = None,
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
            ask: Asked before generated code runs, a file of the user's is overwritten or a budget is passed;
                None: yes, yes and no.

        Raises:
            TaskError: The kernel or its test cannot be used.
            UsageError: The folder cannot be used.
            ToolchainError: A compiler or device is missing.
        """
        around = Surroundings(
            stop or StopFlag(), clock or SystemClock(), tuple(sinks), waiting, ask, seed_source
        )
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
        ask: Asker | None = None,
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
            changes: Further settings that differ from now on, by name; later resumes begin with them.
            ask: As for `start`.

        Raises:
            UsageError: The folder holds no run.
            ToolchainError: A compiler or device is missing.
        """
        around = Surroundings(stop or StopFlag(), clock or SystemClock(), tuple(sinks), waiting, ask)
        settings = {**(changes or {}), "wait": wait, **({"device": device} if device else {})}
        session = Session(assemble_resumed(folder, settings, around, more_rounds=more_rounds))
        session.settings.keep(changes or {})
        return session

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

    def finish(self) -> RunView:
        """Confirm the head and write the results, however many rounds were run.

        Raises:
            UsageError: The original is not measured yet.
            RunInterrupted: The user asked to stop.
        """
        self._bench.measured()
        self.work.confirm()
        reason = rounds.reason_to_stop(self.context, self.state)
        return self._finish(reason or "user")

    def stop(self) -> None:
        """End what is going on at the next safe point; may be called from anywhere."""
        self.context.stop.is_set = True

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Tell a sink of every event from now on; call what is returned to end that."""
        return self.context.log.subscribe(sink)

    def status(self) -> SessionStatus:
        """Return where the session stands; costs nothing."""
        known = len(self.context.log.events)
        if self._status is None or self._status[0] != known:
            self._status = (known, status_of(self._bench, self.settings))
        return self._status[1].model_copy(update={"spend": self.context.spend()})

    def say(self, text: str) -> Said:
        """Take free text: a question is answered, a wish becomes rules.

        Raises:
            UsageError: There is no text.
        """
        return said(text, self.steering, self.evidence, has_model=self.context.model is not None)

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
        written = write_outputs(view, context.run.root, reproducer=standalone(context, view))
        context.log.emit(
            RunFinished(
                reason=reason,
                best=view.state.best,
                speedup=view.headline_speedup if view.improved else 1.0,
                evidence=view.evidence,
                files=written,
                spend=context.spend(),
                attempt=self._assembly.attempt,
                again=self._times_finished(),
            )
        )
        view = self.view()
        write_outputs(view, context.run.root, reproducer=standalone(context, view))
        return view

    def _times_finished(self) -> int:
        attempt = self._assembly.attempt
        return sum(isinstance(e, RunFinished) and e.attempt == attempt for e in self.context.log.events)

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
            write_outputs(view, context.run.root, reproducer=standalone(context, view))

    def _failed(self, error: KernelSkillError) -> None:
        # The log itself may be what cannot be written; the first error is the one to report.
        with suppress(HarnessError):
            self.context.log.emit(Failed(error=error.message, remedy=error.remedy))


def _reason(error: OSError | sqlite3.Error) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
