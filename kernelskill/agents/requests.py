"""Requests: put prompts, situations and failures together into what a model is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelskill.agents import prompt_facts as facts
from kernelskill.agents.answers import CHANGE_SCHEMA, PLAN_SCHEMA
from kernelskill.agents.drafts import Purpose, Question
from kernelskill.agents.failures import failure_section
from kernelskill.agents.prompts import Prompt, PromptLibrary
from kernelskill.agents.sections import Block, Section, data, is_cut, words
from kernelskill.agents.situation import FittingSkill, Situation
from kernelskill.llm.base import Message, ModelRequest
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation
from kernelskill.schema.proposal import Proposal
from kernelskill.source.edits import unified_diff

REPAIR = "repair"
PLANNER = "planner"
ANSWERER = "answer"
_MOST_OUTPUT_TOKENS = {"change": 1 << 20, "plan": 2048, "text": 2048}
_SCHEMAS = {"change": CHANGE_SCHEMA, "plan": PLAN_SCHEMA, "text": None}


def change_question(
    prompt: Prompt, situation: Situation, *, number: int, sample: int, specialist: str
) -> Question:
    """Return what a specialist's model is asked."""
    values = {
        **_basics(situation),
        "source": _source(prompt, situation),
        "diagnosis": facts.diagnosis(situation),
        "skills": facts.skills(situation.skills),
        "experience": facts.pool(situation.pool),
        "others": facts.others(situation.others),
        "tried": facts.tried(situation.tried),
        "direction": facts.direction(situation.direction),
    }
    return _question(
        _request(prompt, values, sample, situation),
        number,
        specialist,
        "change",
        situation.base,
        situation.base,
        shown=tuple(each.skill.id for each in situation.skills),
        is_free=situation.is_free,
    )


def plan_question(
    prompt: Prompt, situation: Situation, directions: Sequence[FittingSkill], *, number: int
) -> Question:
    """Return what the planner is asked."""
    lines = [
        f"{position}. {each.skill.specialist}: {each.skill.title} (`{each.skill.id}`)"
        for position, each in enumerate(directions, 1)
    ]
    values = {
        **_basics(situation),
        "source": _source(prompt, situation),
        "diagnosis": facts.diagnosis(situation),
        "directions": words("\n".join(lines) or "None."),
        "tried": facts.tried(situation.tried),
    }
    request = _request(prompt, values, 0, situation)
    return _question(
        request,
        number,
        PLANNER,
        "plan",
        situation.base,
        situation.base,
        shown=tuple(each.skill.id for each in directions),
    )


def user_question(
    prompt: Prompt, situation: Situation, text: str, evidence: Sequence[str], *, sample: int = 0
) -> Question:
    """Return a question of the user's to a model, with what the records say to it."""
    values = {
        **_basics(situation),
        "source": _source(prompt, situation),
        "diagnosis": facts.diagnosis(situation),
        "tried": facts.tried(situation.tried),
        "evidence": (data("\n".join(evidence)),) if evidence else words("Nothing in particular."),
        "question": (data(text, importance=9),),
    }
    request = _request(prompt, values, sample, situation)
    return _question(request, 0, ANSWERER, "question", situation.base, situation.base)


def repair_question(
    prompts: PromptLibrary,
    situation: Situation,
    earlier: Question,
    proposal: Proposal,
    evaluation: Evaluation,
    *,
    number: int,
    bits: str = "",
) -> Question:
    """Return the request to mend a change that failed when it was built or checked.

    Args:
        prompts: Hold the one for repairs.
        situation: What is known of the base.
        earlier: The request that was answered with the change.
        proposal: The change.
        evaluation: What became of it.
        number: The round.
        bits: Where a change that is right lost bits that it has to keep.
    """
    prompt = prompts.get(REPAIR)
    intent = (
        data(proposal.rationale, importance=8),
        data(unified_diff(situation.base, proposal.candidate), title="What it changed:", info="diff"),
    )
    failure = failure_section(evaluation, proposal.candidate, situation.task, bits)
    values = _repair_values(prompt, situation, proposal.candidate, intent, failure, earlier.trail)
    line = f"not exact: {bits}" if bits else f"{evaluation.status.value}: {evaluation.detail}"
    return _question(
        _request(prompt, values, earlier.request.sample, situation),
        number,
        earlier.specialist,
        "repair",
        situation.base,
        proposal.candidate,
        attempt=earlier.attempt + 1,
        parent=earlier.digest,
        shown=earlier.shown,
        is_free=earlier.is_free,
        trail=(*earlier.trail, line),
    )


def reformat_question(
    prompts: PromptLibrary, situation: Situation, earlier: Question, answer: str, reason: str, *, number: int
) -> Question:
    """Return the one request to give an answer again that could not be used."""
    prompt = prompts.get(REPAIR)
    intent = (data(answer, title="This was the answer, whole:", info="markdown"),)
    failure = (
        *words("It was never built, because the answer could not be used:"),
        data(reason, importance=9),
        *words("Give the whole change again, in the form below."),
    )
    values = _repair_values(prompt, situation, earlier.subject, intent, failure, earlier.trail)
    return _question(
        _request(prompt, values, earlier.request.sample, situation),
        number,
        earlier.specialist,
        "reformat",
        situation.base,
        earlier.subject,
        attempt=earlier.attempt,
        parent=earlier.digest,
        shown=earlier.shown,
        is_free=earlier.is_free,
        trail=earlier.trail,
    )


def _question(
    request: ModelRequest,
    number: int,
    specialist: str,
    purpose: Purpose,
    base: Candidate,
    subject: Candidate,
    *,
    attempt: int = 0,
    parent: str = "",
    shown: tuple[str, ...] = (),
    trail: tuple[str, ...] = (),
    is_free: bool = False,
) -> Question:
    return Question(
        request=request,
        round=number,
        specialist=specialist,
        purpose=purpose,
        base=base.digest,
        subject=subject,
        attempt=attempt,
        parent=parent,
        shown=shown,
        trail=trail,
        is_free=is_free,
    )


def _request(
    prompt: Prompt,
    values: Mapping[str, Section],
    sample: int,
    situation: Situation,
) -> ModelRequest:
    return ModelRequest(
        role=prompt.role,
        messages=(
            Message(role="system", text=" ".join(prompt.front.system.split())),
            Message(role="user", text=prompt.render(values)),
        ),
        answer_schema=_SCHEMAS[prompt.front.answer] if situation.structured else None,
        prompt_digest=prompt.digest,
        sample=sample,
        max_output_tokens=min(situation.answer_tokens, _MOST_OUTPUT_TOKENS[prompt.front.answer]),
    )


def _basics(situation: Situation) -> dict[str, Section]:
    return {"contract": facts.contract(situation), "gpu": facts.gpu(situation.gpu)}


def _source(prompt: Prompt, situation: Situation) -> Section:
    launcher = situation.task.signature.symbol
    section = facts.source(situation.base, facts.hot_kernel(situation), launcher)
    return _warned(section, prompt.front.inputs["source"].tokens)


def _warned(section: Section, tokens: int) -> Section:
    """Return a source with a word of warning where it has to lose lines."""
    if not is_cut(section, tokens):
        return section
    warning = (
        "Lines are left out, so change what is shown with SEARCH blocks; a whole file would lose the rest."
    )
    return (*words(warning), *section)


def _repair_values(
    prompt: Prompt,
    situation: Situation,
    subject: Candidate,
    intent: Section,
    failure: Section,
    trail: Sequence[str],
) -> dict[str, Section]:
    launcher, hot = situation.task.signature.symbol, facts.hot_kernel(situation)
    same = subject.digest == situation.base.digest
    incumbent = words("It stands below.") if same else facts.source(situation.base, hot, launcher)
    history = (data("\n".join(trail)),) if trail else (Block(((9, "None."),)),)
    return {
        **_basics(situation),
        "incumbent": incumbent,
        "intent": intent,
        "failure": failure,
        "history": history,
        "source": _warned(facts.source(subject, hot, launcher), prompt.front.inputs["source"].tokens),
    }
