"""The node that asks a model: changes from the specialists, and repairs of what failed.

A round visits it before every slate. On the first visit the mechanical proposals go on whether or not
all is answered; later visits bring what was answered since, and repairs. When nothing is left to
evaluate and answers are missing, the run ends until they are there.
"""

from __future__ import annotations

from collections.abc import Sequence

from langgraph.runtime import Runtime

from kernelskill.agents.answers import parse_plan
from kernelskill.agents.coordinator import route
from kernelskill.agents.drafts import MENDABLE, Draft, Question
from kernelskill.agents.failures import is_repairable
from kernelskill.agents.kept_bits import changed_bits, is_tested, unrepeatable
from kernelskill.agents.requests import (
    PLANNER,
    change_question,
    plan_question,
    reformat_question,
    repair_question,
)
from kernelskill.errors import AnswersWaiting
from kernelskill.graph.asking import (
    ANSWERS,
    QUESTIONS,
    answered_late,
    ask,
    asked_before,
    asked_in,
    attempt_of,
    drafts_of,
    look_for_late_answers,
)
from kernelskill.graph.context import OFFERS, RoundContext
from kernelskill.graph.knowledge import situation_of
from kernelskill.graph.state import RoundState
from kernelskill.llm.base import ModelAnswer, Pending
from kernelskill.schema.base import Record
from kernelskill.schema.evaluation import Evaluation
from kernelskill.schema.event import ModelFailed, Note, Proposed
from kernelskill.schema.proposal import Proposal

OPENINGS = "openings"
MOST_SPECIALISTS = 3
MOST_DIRECTIONS = 12
"""Directions that a planner may choose from."""


class Opening(Record):
    """What a round asks to begin with; kept, so that a round taken up again asks the same."""

    questions: tuple[str, ...]


class DirectionTaken(Record):
    """One specialist that is asked, and what for."""

    specialist: str
    advice: str = ""
    skill: str = ""
    is_free: bool = False


def consult(state: RoundState, runtime: Runtime[RoundContext]) -> RoundState:
    """Ask what is to be asked, and offer what was answered.

    Raises:
        AnswersWaiting: Nothing but answers is missing.
    """
    context, first = runtime.context, not state["slate"]
    if state["combining"] or (context.is_spent() and not first):
        return {"fresh": False}
    turn = 0 if first else state.get("turn", 0) + 1
    pending = _converse(context, state)
    proposals = _new_proposals(context, state, turn)
    if pending and not proposals and not first:
        raise AnswersWaiting(
            f"{_counted(len(pending), 'answer')} of the model {'is' if len(pending) == 1 else 'are'} missing;"
            f" the first goes into {pending[0].where}{_noted(pending)}",
            remedy=f"write {'it' if len(pending) == 1 else 'them'}, then: kernelskill resume {context.run.root}",
        )
    names = _offer(context, state["round"], turn, proposals)
    return {"offers": names, "turn": turn, "fresh": first or bool(proposals)}


def opening_questions(context: RoundContext, state: RoundState) -> list[Question]:
    """Return what the round asks first, without asking it."""
    if _why_nobody_is_asked(context):
        return []
    return _opening(context, state, asked_in(context, state["round"]))


def _why_nobody_is_asked(context: RoundContext) -> str:
    """Return why no answer could be accepted, whatever it says; empty where one could."""
    if not context.config.keep_exact:
        return ""
    reason = unrepeatable(context.member(context.task.original).evaluation, context.task)
    return (
        f"{reason}, so that no change can be told to keep every bit, as --keep-exact wants" if reason else ""
    )


def _converse(context: RoundContext, state: RoundState) -> list[Pending]:
    """Ask until only what is handed over is left; bad answers are fed back once."""
    number = state["round"]
    reason = _why_nobody_is_asked(context)
    if reason:
        context.log.emit(Note(text=f"no model is asked: {reason}"))
        return []
    look_for_late_answers(context, number)
    drafts_of(context, asked_before(context, number))
    pending: dict[str, Pending] = {}
    done: set[str] = set()
    while True:
        questions = {q.digest: q for q in (*asked_in(context, number), *_further(context, state))}
        news = [q for digest, q in questions.items() if digest not in done]
        if not news or context.is_spent():
            return list(pending.values())
        done.update(question.digest for question in news)
        pending.update({reply.request: reply for reply in ask(context, news)})
        drafts_of(context, news)


def _further(context: RoundContext, state: RoundState) -> list[Question]:
    """Return what follows from what is known: the round's own questions, second tries, repairs."""
    asked, late = asked_in(context, state["round"]), answered_late(context, state["round"])
    followed = {question.parent for question in (*asked_before(context, state["round"]), *asked)}
    further = _opening(context, state, asked)
    for question, made in drafts_of(context, [*late, *asked]):
        may = question.purpose in ("change", "repair") and question.digest not in followed
        if may and made.outcome in MENDABLE:
            further.append(_second_try(context, state, question, made))
    for event in context.judgements(state["round"]):
        proposal = context.proposal(event.proposal)
        if proposal.origin == "model" and proposal.request not in followed:
            further += _repair(context, state, proposal)
    return further


def _opening(context: RoundContext, state: RoundState, asked: Sequence[Question]) -> list[Question]:
    """Return the questions that a round begins with, or first the planner's."""
    number = state["round"]
    name = f"{number:03d}"
    if context.run.has(OPENINGS, name):
        known = context.run.get(OPENINGS, name, Opening).questions
        return [context.run.get(QUESTIONS, digest, Question) for digest in known]
    base = state["bases"][0]
    directions = _by_rules(context, base)
    if context.config.plan:
        plan = next((q for q in asked if q.purpose == "plan"), None)
        if plan is None:
            return [_plan_question(context, state, base)]
        if not context.run.has(ANSWERS, plan.digest):
            return [] if _may_come(context, plan) else _ask_all(context, state, base, directions)
        directions = _planned(context, plan) or directions
    return _ask_all(context, state, base, directions)


def _ask_all(
    context: RoundContext, state: RoundState, base: str, directions: Sequence[DirectionTaken]
) -> list[Question]:
    number, samples = state["round"], context.config.samples
    questions = []
    for direction in directions:
        situation = situation_of(
            context,
            base,
            direction.specialist,
            state["offers"],
            direction=direction.advice,
            skill=direction.skill,
            is_free=direction.is_free,
        )
        prompt = context.prompts.get(direction.specialist)
        questions += [
            change_question(
                prompt,
                situation,
                number=number,
                # Another round is another sample: the same words again would bring the same answer.
                sample=(number - 1) * samples + position,
                specialist=direction.specialist,
            )
            for position in range(samples)
        ]
    unique = {question.digest: question for question in questions}
    for question in unique.values():
        context.run.put(QUESTIONS, question.digest, question)
    context.run.put(OPENINGS, f"{number:03d}", Opening(questions=tuple(unique)))
    return list(unique.values())


def _by_rules(context: RoundContext, base: str) -> list[DirectionTaken]:
    """Return the specialists that answer the diagnosis, or else the first."""
    routes = [
        r
        for r in route(context.diagnosis(base).bottlenecks, context.library.all())
        if r.specialist in context.prompts.roles()
        and not context.steering.declines_specialist(r.specialist, context.library.all())
    ]
    fitting = [r for r in routes if r.weight > 0] or routes[:1]
    return [DirectionTaken(specialist=r.specialist) for r in fitting[:MOST_SPECIALISTS]]


def _plan_question(context: RoundContext, state: RoundState, base: str) -> Question:
    situation = situation_of(context, base, "", state["offers"])
    known = [f for f in situation.skills if f.skill.specialist in context.prompts.roles()]
    return plan_question(
        context.prompts.get(PLANNER), situation, known[:MOST_DIRECTIONS], number=state["round"]
    )


def _planned(context: RoundContext, plan: Question) -> list[DirectionTaken]:
    """Return the directions of a plan; none where it cannot be read."""
    [(_, made)] = drafts_of(context, [plan])
    if made.outcome != "plan":
        return []
    answer = parse_plan(context.run.get(ANSWERS, plan.digest, ModelAnswer).text)
    taken = []
    for each in answer.directions:
        if 0 < each.number <= len(plan.shown):
            skill = context.library.get(plan.shown[each.number - 1])
            advice = f"use {skill.id}: {each.advice}" if each.advice else f"use {skill.id}"
            taken.append(DirectionTaken(specialist=skill.specialist, advice=advice, skill=skill.id))
        elif each.specialist in context.library.specialists() and each.specialist in context.prompts.roles():
            advice = f"free idea: {each.advice}"
            taken.append(DirectionTaken(specialist=each.specialist, advice=advice, is_free=True))
    return taken


def _may_come(context: RoundContext, question: Question) -> bool:
    """Return whether an answer may still come: it was handed over, not failed."""
    attempt = attempt_of(context)
    return not any(
        isinstance(e, ModelFailed) and (e.request, e.attempt) == (question.digest, attempt)
        for e in context.log.events
    )


def _second_try(context: RoundContext, state: RoundState, question: Question, made: Draft) -> Question:
    situation = situation_of(context, question.base, question.specialist, state["offers"])
    answer = context.run.get(ANSWERS, question.digest, ModelAnswer).text
    return reformat_question(context.prompts, situation, question, answer, made.detail, number=state["round"])


def _repair(context: RoundContext, state: RoundState, proposal: Proposal) -> list[Question]:
    earlier = context.run.get(QUESTIONS, proposal.request, Question)
    evaluation = context.evaluation(proposal)
    bits = _bits_lost(context, proposal, evaluation)
    if earlier.attempt >= context.config.repairs or not (bits or is_repairable(evaluation)):
        return []
    situation = situation_of(context, proposal.base, proposal.specialist, state["offers"])
    return [
        repair_question(
            context.prompts, situation, earlier, proposal, evaluation, number=state["round"], bits=bits
        )
    ]


def _bits_lost(context: RoundContext, proposal: Proposal, evaluation: Evaluation) -> str:
    """Return where a right change lost bits that it has to keep."""
    if not (context.config.keep_exact and evaluation.passed and is_tested(proposal)):
        return ""
    return changed_bits(evaluation, context.member(context.task.original).evaluation, context.task)


def _new_proposals(context: RoundContext, state: RoundState, turn: int) -> list[Proposal]:
    """Return what was answered and not offered yet, in whatever round it was asked; at first also what no
    earlier slate had room for.
    """
    number, tried = state["round"], context.tried()
    earlier = [e for e in context.log.events if isinstance(e, Proposed) and e.origin == "model"]
    before = [e for e in earlier if (e.round, e.turn) != (number, turn)]
    offered = {identity for event in before for identity in event.proposals}
    asked = [*asked_before(context, number), *asked_in(context, number)]
    made = [d.proposal for _, d in drafts_of(context, asked) if d.proposal]
    fresh = [identity for identity in made if identity not in offered]
    if turn == 0:
        fresh += sorted(p for e in before if e.base in state["bases"] for p in e.proposals)
    proposals = [context.proposal(identity) for identity in dict.fromkeys(fresh)]
    steering = context.steering
    return [
        p
        for p in proposals
        if p.candidate.digest not in tried
        # What was answered before a wish was uttered has to keep to it, too.
        and not steering.objection(context.member(p.base).candidate, p.candidate)
    ]


def _offer(context: RoundContext, number: int, turn: int, proposals: Sequence[Proposal]) -> list[str]:
    names = []
    for specialist, base in dict.fromkeys((p.specialist, p.base) for p in proposals):
        own = [p for p in proposals if (p.specialist, p.base) == (specialist, base)]
        name = f"{number:03d}-{specialist}-{base[:16]}-model-{turn:02d}"
        offer = Proposed(
            round=number,
            specialist=specialist,
            base=base,
            proposals=tuple(p.id for p in own),
            labels=tuple(p.label for p in own),
            origin="model",
            turn=turn,
        )
        context.run.put(OFFERS, name, offer)
        names.append(name)
    return names


def _noted(pending: Sequence[Pending]) -> str:
    notes = [reply.note for reply in pending if reply.note]
    return f" ({notes[0]})" if notes else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
