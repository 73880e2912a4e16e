"""Work: what uses the device - baseline, rounds, confirmation, another measurement."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.errors import HarnessError, RunInterrupted, UsageError
from kernelskill.evaluation.judge import judge
from kernelskill.graph import outcomes
from kernelskill.graph.asking import model_is_spent
from kernelskill.graph.context import MEMBERS
from kernelskill.report import figures
from kernelskill.schema import chat_event
from kernelskill.schema.evaluation import Evaluation
from kernelskill.schema.event import Judged, Proposed
from kernelskill.search.budget import exhausted
from kernelskill.session import rounds
from kernelskill.session.borders import Border, BorderQuestion, BorderRefused, EditGiven
from kernelskill.session.history import History
from kernelskill.session.records import BaselineView, Confirmation, Remeasured, StepResult
from kernelskill.session.settings import Settings
from kernelskill.session.tree import find_node, tree
from kernelskill.session.workbench import Workbench, heaviest


class Work:
    """Runs what is asked for; a stop is an answer here, no exception."""

    def __init__(self, bench: Workbench, history: History, settings: Settings) -> None:
        self._bench = bench
        self._history = history
        self._settings = settings

    def baseline(self) -> BaselineView:
        """Measure the original; what is measured already costs nothing.

        Raises:
            TaskError: The original fails its own test.
            RunInterrupted: The user asked to stop.
        """
        self._bench.context.stop.is_set = False
        self._bench.ready()
        measured = self._bench.measured()
        original = self._bench.assembly.original
        cases = self._bench.case_times(original, measured.timings)
        return BaselineView(cases=cases, notes=measured.notes)

    def step(self) -> StepResult:
        """Run one round, or what is left of one that was interrupted."""
        return self.rounds(1)

    def rounds(self, count: int | None = None) -> StepResult:
        """Run rounds.

        Args:
            count: How many; None: until one of the run's limits is reached.

        Raises:
            UsageError: The count is no positive number.
            TaskError: The original fails its own test.
            AnswersWaiting: A model has not answered yet.
            HarnessError: Our own machinery failed; all that is finished is kept.
        """
        if count is not None and count < 1:
            raise UsageError(f"{count} rounds cannot be run", remedy="give 1 or more")
        context = self._bench.context
        context.stop.is_set = False
        since = self._bench.number
        begun = self._bench.state.rounds
        stopped = ""
        try:
            self._bench.ready()
            while not stopped and (count is None or self._bench.state.rounds - begun < count):
                stopped = self._round(begun, count)
        except EditGiven as edit:
            stopped = self._taken(edit)
        except BorderRefused:
            stopped = "refused"
        except RunInterrupted:
            stopped = "interrupted"
        return self._result(since, begun, count, stopped)

    def confirm(self) -> Confirmation | None:
        """Measure the head against the original again, with fresh seeds in fresh processes.

        Returns:
            What that gave; None where the head is the original.

        Raises:
            RunInterrupted: The user asked to stop.
        """
        self._bench.context.stop.is_set = False
        self._bench.ready()
        rounds.confirm(self._bench.context, self._bench.assembly.fresh_pool)
        confirmed = self._bench.state.confirmed
        if confirmed is None:
            return None
        head = self._bench.head.candidate
        return Confirmation(
            verdict=confirmed.verdict.kind.value,
            reason=confirmed.verdict.reason,
            speedup=confirmed.verdict.speedup,
            cases=self._bench.case_times(head, confirmed.timings),
        )

    def remeasure(self, ref: str = "head") -> Remeasured:
        """Time a candidate against the original again, whatever was measured before.

        Raises:
            UnknownNameError: No candidate is named so.
            UsageError: The candidate is not right, so it has no time.
            HarnessError: It was right and is not any more.
        """
        bench, context = self._bench, self._bench.context
        context.stop.is_set = False
        bench.ready()
        node = find_node(context, ref)
        if not node.kept:
            raise UsageError(
                f"#{node.number} has no time: {node.reason}", remedy="give a candidate that is right"
            )
        member, original = context.member(node.digest), context.member(context.task.original)
        again = sum(
            isinstance(e, chat_event.Remeasured) and e.candidate == node.digest for e in context.log.events
        )
        request = context.request_for(member.candidate, original.candidate)
        evaluation = context.evaluator.evaluate(request.model_copy(update={"fresh": 1 + again}))
        if not evaluation.passed:
            raise HarnessError(
                f"#{node.number} was right and now ends with {evaluation.status.value}: {evaluation.detail}",
                remedy="measure it once more; a candidate whose results waver should not be used",
            )
        verdict = judge(context.task, evaluation, incumbent_label="the original", noise=context.noise)
        speedup = verdict.speedup if verdict.speedup is not None else member.speedup
        context.run.put(
            MEMBERS, node.digest, member.model_copy(update={"evaluation": evaluation, "speedup": speedup})
        )
        context.log.emit(
            chat_event.Remeasured(
                number=bench.number,
                candidate=node.digest,
                evaluation=evaluation.key,
                verdict=verdict,
                before=member.speedup,
                speedup=speedup,
                seconds=outcomes.device_seconds(evaluation),
            )
        )
        cases = bench.case_times(member.candidate, evaluation.timings)
        return Remeasured(
            node=find_node(context, node.digest),
            cases=cases,
            before_ms=_time(bench, member.evaluation),
            after_ms=_time(bench, evaluation),
            speedup=speedup,
            verdict=verdict.kind.value,
            reason=verdict.reason,
        )

    def _round(self, begun: int, count: int | None) -> str:
        """Run one round; returns why none should follow, or nothing."""
        context, state = self._bench.context, self._bench.state
        if state.open_round is None:
            reason = self._spent() or (self._reason(begun) if count is None else "")
            if reason:
                return reason
        rounds.run_round(context)
        number = self._bench.state.rounds
        offered = [e for e in context.log.events if isinstance(e, Proposed) and e.round == number]
        return "" if any(event.proposals for event in offered) else "nothing_to_do"

    def _reason(self, begun: int) -> str:
        """Return the limit of rounds, patience or roof that is reached since a call began."""
        context, state = self._bench.context, self._bench.state
        done = state.rounds - begun
        # What earlier calls brought, or did not, is no reason: whoever asks again wants to see it tried.
        since = replace(state, rounds=done, rounds_without_gain=min(state.rounds_without_gain, done))
        return rounds.reason_to_stop(context, state, since=since) or ""

    def _spent(self) -> str:
        """Return the budget that is used up, unless the user lets it be passed."""
        context = self._bench.context
        while True:
            limit = exhausted(context.budget, context.spend())
            reason = limit or ("model_budget" if model_is_spent(context) else "")
            if not reason or not self._extended(reason):
                return reason

    def _extended(self, reason: str) -> bool:
        answer = self._bench.borders.answer(
            BorderQuestion(
                border=Border.BUDGET,
                text=f"{figures.stop_reason(reason)}: go on?",
                detail="yes: the same amount again; always: without this limit; edit: a new limit, or +2m",
                answers=("yes", "no", "edit", "always"),
            )
        )
        if answer.kind == "no":
            return False
        given = answer.text.strip() if answer.kind == "edit" else ""
        always = answer.kind == "always" or self._bench.borders.is_open(Border.BUDGET)
        self._settings.extend(reason, given, lift=always)
        return True

    def _taken(self, edit: EditGiven) -> str:
        """Take the user's text in place of generated code: the round ends, and the text is pinned."""
        self._bench.end_round("the user gave another text")
        pinned = self._history.pin(edit.text)
        return "" if pinned.accepted else "refused"

    def _result(self, since: int, begun: int, count: int | None, stopped: str) -> StepResult:
        bench = self._bench
        context, state = bench.context, bench.state
        nodes = tree(context)
        fresh = [e for e in context.log.events[since:] if isinstance(e, Judged)]
        won = {event.candidate for event in fresh if event.verdict.kind.value == "accepted"}
        head = next(node for node in nodes if node.is_head)
        done = state.rounds - begun
        return StepResult(
            round=state.open_round.round if state.open_round else state.rounds,
            rounds=done,
            finished=not stopped or (count is None and stopped not in ("interrupted", "refused")),
            stopped=stopped,
            detail=_detail(stopped, done, state.open_round is not None),
            accepted=tuple(node for node in nodes if node.digest in won),
            head=head,
            speedup=state.best_speedup,
            estimated=context.evaluator.evidence == "estimated",
        )


def _detail(stopped: str, done: int, is_open: bool) -> str:
    rounds_done = f"{done} round{'' if done == 1 else 's'} finished"
    if not stopped:
        return rounds_done
    if stopped == "interrupted":
        rest = "; the open one goes on with the next step" if is_open else ""
        return f"{rounds_done}; stopped at a safe point{rest}"
    if stopped == "refused":
        return f"{rounds_done}; stopped because you did not agree"
    return f"{rounds_done}; {figures.stop_reason(stopped)}"


def _time(bench: Workbench, evaluation: Evaluation) -> float:
    case = heaviest(bench.case_times(bench.assembly.original, evaluation.timings))
    return case.ms if case is not None else 0.0
