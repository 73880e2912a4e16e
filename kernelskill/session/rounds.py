"""Drive the rounds of a run: baseline, rounds until a limit, confirmation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from kernelskill.agents.profiler import diagnose_candidate
from kernelskill.errors import RunInterrupted
from kernelskill.evaluation.baseline import BaselineReport, establish_baseline
from kernelskill.graph import outcomes
from kernelskill.graph.asking import model_is_spent
from kernelskill.graph.context import DIAGNOSES, MEMBERS, RoundContext
from kernelskill.graph.predictions import observe
from kernelskill.graph.state import initial_state
from kernelskill.runs import RunState, fold
from kernelskill.schema.candidate import Candidate, Lineage
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.schema.event import BaselineMeasured, Confirmed, Proposed, RoundStarted
from kernelskill.schema.run import Member, StopReason
from kernelskill.search.budget import stop_reason
from kernelskill.search.strategy import find_strategy


def establish(context: RoundContext, original: Candidate) -> None:
    """Build, check and time the original, and make it the first member of the frontier.

    Raises:
        TaskError: The original does not compile or fails its own test.
    """
    require_going(context)
    report = establish_baseline(context.evaluator, context.task, original, seed_pool=context.seed_pool)
    context.noise.update(report.noise)
    context.shapes.update({shape.case: shape for shape in report.evaluation.shapes})
    _keep_original(context, original, report)
    context.log.emit(
        BaselineMeasured(
            evaluation=report.evaluation.key,
            timings=report.evaluation.timings,
            rooflines=outcomes.rooflines(context, report.evaluation),
            notes=report.notes,
        )
    )


def require_going(context: RoundContext) -> None:
    """Stop between two pieces of work, where the user asked for it.

    Raises:
        RunInterrupted: The user did.
    """
    if context.stop.is_set:
        raise RunInterrupted("stopped between two evaluations")


def run_rounds(context: RoundContext) -> StopReason:
    """Run rounds until a limit is reached; an unfinished round is finished first.

    Raises:
        RunInterrupted: The user asked to stop.
    """
    while True:
        state = fold(context.log.events)
        if state.open_round is None:
            reason = reason_to_stop(context, state)
            if reason is not None:
                return reason
        run_round(context)


def run_round(context: RoundContext) -> None:
    """Run one round; one that is under way is finished.

    Raises:
        RunInterrupted: The user asked to stop.
    """
    # What a run is refused for is told before the graph's library is loaded: that takes longer than all else.
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415

    from kernelskill.graph.build import build_round  # noqa: PLC0415

    require_going(context)
    with SqliteSaver.from_conn_string(str(context.run.checkpoint)) as saver:
        graph = build_round(context.library.specialists(), saver, with_model=context.model is not None)
        _run_round(context, graph, fold(context.log.events))


def confirm(context: RoundContext, fresh_pool: Callable[[str], str]) -> None:
    """Measure the winner against the original again, with fresh seeds, in fresh processes.

    Args:
        context: The run.
        fresh_pool: Digest of the winner to the digest of seeds that the search never used.
    """
    state = fold(context.log.events)
    best = context.member(state.best)
    original = context.member(context.task.original)
    if state.best == context.task.original or not context.config.confirm:
        return
    require_going(context)
    request = Request(
        task=context.task.content_digest(),
        candidate=best.candidate,
        stage="time",
        incumbent=original.candidate,
        device=context.evaluator.identity,
        seed_pool=fresh_pool(state.best),
        fresh=1,
    )
    evaluation = context.evaluator.evaluate(request)
    context.log.emit(
        Confirmed(
            candidate=state.best,
            evaluation=evaluation.key,
            verdict=outcomes.confirmed_verdict(context, best, request, evaluation),
            timings=evaluation.timings,
            original_timings=evaluation.incumbent_timings,
        )
    )


def diagnose_best(context: RoundContext) -> None:
    """Profile the winner for the report, unless that was done."""
    best = context.member(fold(context.log.events).best)
    if not context.run.has(DIAGNOSES, best.candidate.digest):
        roofline = outcomes.heaviest_roofline(context, best)
        timings = best.evaluation.timings
        diagnosis = diagnose_candidate(context.evaluator, best.candidate, roofline, timings=timings)
        context.run.put(DIAGNOSES, best.candidate.digest, diagnosis)
    observe(context, best.candidate.digest)


def remeasure_frontier(context: RoundContext) -> None:
    """Time the members of the frontier again: the run was moved to another device."""
    state = fold(context.log.events)
    original = context.member(context.task.original)
    for digest in (d for d in state.frontier if d != context.task.original):
        member = context.member(digest)
        evaluation = context.evaluator.evaluate(context.request_for(member.candidate, original.candidate))
        if evaluation.passed:
            speedup = outcomes.speedup_to(context, original.evaluation, evaluation)
            renewed = member.model_copy(update={"evaluation": evaluation, "speedup": speedup})
            context.run.put(MEMBERS, digest, renewed)


def _run_round(context: RoundContext, graph: Any, state: RunState) -> None:
    started = state.open_round or _start_round(context, state)
    thread = {
        "configurable": {"thread_id": f"{context.run_id}-round-{started.round}"},
        "recursion_limit": 500,
    }
    bases = [started.base, *started.others]
    # A checkpoint of this round means that it was under way: None continues from there.
    under_way = bool(graph.get_state(thread).next)
    # Synchronous: a step may begin only when the one before it is safe from a kill.
    graph.invoke(
        None if under_way else initial_state(started.round, bases),
        thread,
        context=context,
        durability="sync",
    )


def _start_round(context: RoundContext, state: RunState) -> RoundStarted:
    frontier = [context.member(digest) for digest in state.frontier]
    expanded: Counter[str] = Counter()
    for event in context.log.events:
        if isinstance(event, RoundStarted):
            expanded.update((event.base, *event.others))
    bases = find_strategy(context.config.strategy)(frontier, expanded)
    started = RoundStarted(
        round=state.rounds + 1,
        base=bases[0].candidate.digest,
        others=tuple(member.candidate.digest for member in bases[1:]),
        frontier=state.frontier,
    )
    context.log.emit(started)
    return started


def reason_to_stop(
    context: RoundContext, state: RunState, *, since: RunState | None = None
) -> StopReason | None:
    """Return why no further round should start, or None.

    Args:
        context: The run.
        state: What it came to.
        since: The same with the rounds that count, where those before do not.
    """
    best = context.member(state.best)
    if state.rounds and model_is_spent(context):
        return "model_budget"
    return stop_reason(
        context.budget,
        context.spend(),
        since or state,
        roof_fraction=_roof_fraction(context, best.evaluation),
        offered=_offered(context, state) if since is None or since.rounds else None,
    )


def _roof_fraction(context: RoundContext, evaluation: Evaluation) -> float | None:
    """Return the least fraction of the roof over the timed cases; None where one is unknown."""
    fractions = [roof.fraction for roof in outcomes.rooflines(context, evaluation)]
    if not fractions or any(fraction is None for fraction in fractions):
        return None
    return min(cast("list[float]", fractions))


def _offered(context: RoundContext, state: RunState) -> int | None:
    if state.rounds == 0:
        return None
    events = [e for e in context.log.events if isinstance(e, Proposed) and e.round == state.rounds]
    return sum(len(event.proposals) for event in events)


def _keep_original(context: RoundContext, original: Candidate, report: BaselineReport) -> None:
    member = Member(
        candidate=original,
        lineage=Lineage(),
        evaluation=report.evaluation,
        speedup=1.0,
        proven=True,
        exact=True,
    )
    context.run.put(MEMBERS, original.digest, member)
