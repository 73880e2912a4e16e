"""Have a model answer a question from the run's evidence."""

from __future__ import annotations

from kernelskill.agents.requests import ANSWERER, user_question
from kernelskill.errors import ModelUnavailable
from kernelskill.graph.asking import ANSWERS, ask
from kernelskill.graph.context import RoundContext
from kernelskill.graph.knowledge import situation_of
from kernelskill.llm.base import ModelAnswer
from kernelskill.schema.event import Answered, ModelFailed
from kernelskill.session.records import Explanation

_MOST_LINES = 60


def answered_by_model(context: RoundContext, base: str, question: str, own: Explanation) -> Explanation:
    """Return a model's answer; where it gives none, what the records say and why.

    Args:
        context: The run.
        base: Digest of the candidate that is spoken of; it has a diagnosis.
        question: What is asked.
        own: What the records say to it.
    """
    if context.model is None or ANSWERER not in context.prompts.roles():
        return own
    prompt = context.prompts.get(ANSWERER)
    asked = user_question(prompt, situation_of(context, base, "", ()), question, own.lines)
    try:
        pending = ask(context, [asked])
    except ModelUnavailable as error:
        return _without(own, f"the model could not be asked: {error.message}")
    if pending:
        note = f" ({pending[0].note})" if pending[0].note else ""
        return _without(
            own,
            f"the model has not answered yet; its answer goes into {pending[0].where}{note}: then ask the same again",
        )
    if not context.run.has(ANSWERS, asked.digest):
        failed = [e for e in context.log.events if isinstance(e, ModelFailed) and e.request == asked.digest]
        return _without(own, f"the model did not answer: {failed[-1].message if failed else 'unknown why'}")
    answer = context.run.get(ANSWERS, asked.digest, ModelAnswer)
    context.log.emit(
        Answered(
            request=asked.digest,
            role=ANSWERER,
            model=answer.model,
            outcome="answer",
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            requests=answer.usage.requests,
            cost_usd=answer.usage.cost_usd,
            truncated=answer.truncated,
        )
    )
    lines = [_printable(line) for line in answer.text.strip().splitlines()][:_MOST_LINES]
    return Explanation(
        subject="question", name=question, lines=tuple(lines), skills=own.skills, source="model"
    )


def _without(own: Explanation, reason: str) -> Explanation:
    return own.model_copy(update={"lines": (*own.lines, reason)})


def _printable(line: str) -> str:
    """Return a line of a model's without what a terminal would take for commands."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in line.rstrip())
