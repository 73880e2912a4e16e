"""Ask a model with the records of a run: what was answered once is never asked again."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.agents.answers import AnswerMalformed, parse_plan
from kernelskill.agents.drafts import Desk, Draft, Question, draft, source_digest
from kernelskill.errors import ModelUnavailable, RunInterrupted
from kernelskill.graph.context import PROPOSALS, RoundContext
from kernelskill.llm.base import ModelAnswer, ModelFailure, Pending
from kernelskill.llm.tokens import estimate_tokens
from kernelskill.schema.chat_event import Configured
from kernelskill.schema.event import Answered, Asked, ModelFailed, RoundFinished, RunResumed
from kernelskill.schema.proposal import Proposal

QUESTIONS = "questions"
ANSWERS = "answers"
DRAFTS = "drafts"

_UNAVAILABLE = ("bad_key", "unknown_model", "unreachable")
"""Failures after which asking again is of no use until the user has done something."""


def asked_in(context: RoundContext, number: int) -> list[Question]:
    """Return the questions of a round, in the order in which they were asked."""
    asked = [e for e in context.log.events if isinstance(e, Asked) and e.round == number]
    return [context.run.get(QUESTIONS, event.request, Question) for event in asked]


def asked_before(context: RoundContext, number: int) -> list[Question]:
    """Return the questions of earlier rounds that ask for a change, in the order in which they were asked."""
    asked = dict.fromkeys(
        e.request for e in context.log.events if isinstance(e, Asked) and 0 < e.round < number
    )
    questions = [context.run.get(QUESTIONS, request, Question) for request in asked]
    return [question for question in questions if question.purpose in ("change", "reformat", "repair")]


def look_for_late_answers(context: RoundContext, number: int) -> None:
    """Take what was written into a mailbox since the round that asked for it ended; nobody else is asked again."""
    before = asked_before(context, number) if context.answers_by_hand else []
    missing = [question for question in before if not context.run.has(ANSWERS, question.digest)]
    if context.model is None or not missing:
        return
    replies = context.model.ask([question.request for question in missing])
    for question, reply in zip(missing, replies, strict=True):
        # What is still missing is waited for no longer, and what fails was given up with its round.
        if isinstance(reply, ModelAnswer):
            context.run.put(ANSWERS, question.digest, reply)


def answered_late(context: RoundContext, number: int) -> list[Question]:
    """Return the questions of earlier rounds whose answers came when those rounds were over."""
    ends = {e.round: e.seq for e in context.log.events if isinstance(e, RoundFinished)}
    late = {
        e.request
        for e in context.log.events
        if isinstance(e, Answered) and e.round in ends and e.seq > ends[e.round]
    }
    return [question for question in asked_before(context, number) if question.digest in late]


def attempt_of(context: RoundContext) -> int:
    """Return how often the run was taken up again, or its model or the limits of that were changed."""
    return max((e.attempt for e in context.log.events if isinstance(e, RunResumed)), default=0) + sum(
        isinstance(event, Configured) for event in _begins(context)
    )


def _begins(context: RoundContext) -> list[RunResumed | Configured]:
    """Return the events from which on what could not be asked may be asked again."""
    return [
        event
        for event in context.log.events
        if isinstance(event, RunResumed)
        or (isinstance(event, Configured) and any(name.startswith("model") for name in event.changes))
    ]


def model_is_spent(context: RoundContext) -> bool:
    """Return whether a limit of tokens, money or requests kept this part of the run from asking."""
    attempt = attempt_of(context)
    failed = [e for e in context.log.events if isinstance(e, ModelFailed) and e.attempt == attempt]
    return any(event.failure == "budget" for event in failed)


def ask(context: RoundContext, questions: Sequence[Question]) -> list[Pending]:
    """Ask what is not answered yet; answers are kept in the run folder.

    Returns:
        What was handed over and is not answered.

    Raises:
        ModelUnavailable: Nothing could be asked at all, and nothing was answered before.
        RunInterrupted: The user asked to stop.
    """
    model, attempt = context.model, attempt_of(context)
    failed = {e.request for e in context.log.events if isinstance(e, ModelFailed) and e.attempt == attempt}
    open_ones = {q.digest: q for q in questions if q.digest not in failed}
    waiting = [q for q in open_ones.values() if not context.run.has(ANSWERS, q.digest)]
    if model is None or not waiting:
        return []
    if context.stop.is_set:
        raise RunInterrupted("stopped before a model was asked")
    for question in waiting:
        context.run.put(QUESTIONS, question.digest, question)
        context.log.emit(_asked(question))
    replies = model.ask([question.request for question in waiting])
    failures = [reply for reply in replies if isinstance(reply, ModelFailure)]
    _require_available(context, failures, len(replies))
    pending = []
    for question, reply in zip(waiting, replies, strict=True):
        if isinstance(reply, ModelAnswer):
            context.run.put(ANSWERS, question.digest, reply)
        elif isinstance(reply, Pending):
            pending.append(reply)
        else:
            context.log.emit(_failed(question, reply, attempt))
    return pending


def drafts_of(context: RoundContext, questions: Sequence[Question]) -> list[tuple[Question, Draft]]:
    """Return what became of every answered question, in the order of the questions."""
    known: _Known | None = None
    found = []
    for question in questions:
        if not context.run.has(ANSWERS, question.digest):
            continue
        if not context.run.has(DRAFTS, question.digest):
            known = known or _Known(context)
            context.run.put(DRAFTS, question.digest, _drafted(context, question, known))
        made = context.run.get(DRAFTS, question.digest, Draft)
        if known is not None and made.proposal:
            known.add(context.proposal(made.proposal))
        context.log.emit(_answered(context, question, made))
        found.append((question, made))
    return found


def _drafted(context: RoundContext, question: Question, known: _Known) -> Draft:
    answer = context.run.get(ANSWERS, question.digest, ModelAnswer)
    if question.purpose == "plan":
        return _plan_draft(question, answer)
    desk = Desk(
        task=context.task,
        keep_exact=context.config.keep_exact,
        only_kernel=context.config.only_kernel,
        skills=context.library.all(),
        steering=context.steering,
    )
    made, proposal = draft(question, answer.text, truncated=answer.truncated, desk=desk)
    if proposal is None:
        return made
    twin = known.twin(proposal)
    if twin:
        return made.model_copy(update={"outcome": "duplicate", "proposal": "", "detail": twin})
    context.run.put(PROPOSALS, proposal.id, proposal)
    return made


def _plan_draft(question: Question, answer: ModelAnswer) -> Draft:
    try:
        plan = parse_plan(answer.text)
    except AnswerMalformed as malformed:
        return Draft(request=question.digest, outcome="malformed", detail=malformed.reason)
    chosen = "; ".join(
        f"{question.shown[d.number - 1]}: {d.advice}"
        if 0 < d.number <= len(question.shown)
        else f"idea for {d.specialist}: {d.advice}"
        for d in plan.directions
    )
    idea = any(not 0 < d.number <= len(question.shown) for d in plan.directions)
    return Draft(request=question.digest, outcome="plan", detail=chosen, idea=idea)


class _Known:
    """Sources that need not be built again, by what a compiler sees of them."""

    def __init__(self, context: RoundContext) -> None:
        self._tried = context.tried()
        self._sources: dict[str, str] = {}
        for event in context.log.events:
            if isinstance(event, Answered) and event.proposal:
                self.add(context.proposal(event.proposal))
        self._context = context

    def add(self, proposal: Proposal) -> None:
        """Remember the source of a proposal."""
        self._sources.setdefault(source_digest(proposal.candidate), proposal.id)

    def twin(self, proposal: Proposal) -> str:
        """Return in words what a proposal is the same as, or an empty text."""
        if proposal.candidate.digest in self._tried:
            return "the same source was evaluated before"
        digest = source_digest(proposal.candidate)
        base = self._context.member(proposal.base).candidate
        if digest == source_digest(base):
            return "only comments or layout differ from the source that there was"
        if digest in self._sources:
            return f"the same change was offered before, as {self._sources[digest]}"
        return ""


def _asked(question: Question) -> Asked:
    request = question.request
    return Asked(
        round=question.round,
        request=question.digest,
        role=request.role,
        purpose=question.purpose,
        prompt=request.prompt_digest,
        sample=request.sample,
        attempt=question.attempt,
        tokens=estimate_tokens(request),
    )


def _answered(context: RoundContext, question: Question, made: Draft) -> Answered:
    answer = context.run.get(ANSWERS, question.digest, ModelAnswer)
    return Answered(
        round=question.round,
        request=question.digest,
        role=question.request.role,
        model=answer.model,
        outcome=made.outcome,
        detail=made.detail,
        proposal=made.proposal,
        idea=made.idea,
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        requests=answer.usage.requests,
        cost_usd=answer.usage.cost_usd,
        truncated=answer.truncated,
    )


def _failed(question: Question, failure: ModelFailure, attempt: int) -> ModelFailed:
    return ModelFailed(
        round=question.round,
        request=question.digest,
        role=question.request.role,
        failure=failure.kind,
        message=failure.message,
        remedy=failure.remedy,
        input_tokens=failure.usage.input_tokens,
        output_tokens=failure.usage.output_tokens,
        requests=failure.usage.requests,
        cost_usd=failure.usage.cost_usd,
        attempt=attempt,
    )


def _require_available(context: RoundContext, failures: Sequence[ModelFailure], asked: int) -> None:
    if len(failures) < asked or any(failure.kind not in _UNAVAILABLE for failure in failures):
        return
    since = _begins(context)
    begun = since[-1].seq if since else 0
    if any(isinstance(e, Answered) and e.seq > begun for e in context.log.events):
        return
    first = failures[0]
    remedy = f"{first.remedy}; then: " if first.remedy else ""
    raise ModelUnavailable(first.message, remedy=f"{remedy}kernelskill resume {context.run.root}")
