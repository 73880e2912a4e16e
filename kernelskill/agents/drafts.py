"""Drafts: what an answer of a model amounts to, a proposal or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Literal

from kernelskill.agents.answers import AnswerMalformed, ChangeAnswer, parse_change
from kernelskill.agents.changes import ChangeRefused, apply_change
from kernelskill.agents.kept_bits import SAME_BITS
from kernelskill.agents.sections import one_line
from kernelskill.agents.steering import Steering
from kernelskill.agents.verifier import permitted
from kernelskill.llm.base import ModelRequest
from kernelskill.schema.base import Record, canonical_json, sha256_text
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.proposal import Effect, Exactness, Proposal, Skill
from kernelskill.schema.task import Task
from kernelskill.skills.apply import strictest
from kernelskill.skills.parsed_files import parsed
from kernelskill.source.tokens import tokens

Purpose = Literal["change", "reformat", "repair", "plan", "question"]
Outcome = Literal["proposal", "duplicate", "nothing", "malformed", "unusable", "not_permitted", "plan"]

MENDABLE: tuple[Outcome, ...] = ("malformed", "unusable", "not_permitted")
"""Outcomes that are fed back once."""

_TRUST = 0.5
"""Share of a model's own estimate of ln(speedup) that its proposals are ranked by."""
_MOST_EXPECTED = 2.0
"""Of ln(speedup): who promises more than fiftyfold is not believed more. Answers of a strong model promised up to that,
and kept most of it (`benchmarks/results/mailbox`)."""
_DEVIATION = 0.5
_TITLE = 48


class Question(Record):
    """One request to a model with what its answer means."""

    request: ModelRequest
    round: int
    specialist: str
    purpose: Purpose
    base: str
    """Digest of the incumbent."""
    subject: Candidate
    """What the answer's blocks refer to: the incumbent, or a change of it that failed."""
    attempt: int = 0
    """Repairs before this one."""
    parent: str = ""
    """Digest of the request whose answer is to be mended."""
    shown: tuple[str, ...] = ()
    """Ids of the skills that the prompt shows; anything else is an idea of the model's own."""
    is_free: bool = False
    """Whether the direction that led to it was an idea outside those allowed."""
    trail: tuple[str, ...] = ()
    """How the attempts before ended, a line each."""

    @property
    def digest(self) -> str:
        """The request's."""
        return self.request.digest


class Draft(Record):
    """What became of one answer."""

    request: str
    outcome: Outcome
    detail: str = ""
    proposal: str = ""
    idea: bool = False


@dataclass(frozen=True)
class Desk:
    """What is needed to turn answers into proposals."""

    task: Task
    keep_exact: bool
    only_kernel: str
    skills: Sequence[Skill]
    steering: Steering = field(default_factory=Steering)


def draft(question: Question, text: str, *, truncated: bool, desk: Desk) -> tuple[Draft, Proposal | None]:
    """Return what an answer amounts to."""
    try:
        answer = parse_change(text)
    except AnswerMalformed as malformed:
        cut = "the answer was cut off at its limit of tokens, so be shorter; " if truncated else ""
        return _none(question, "malformed", f"{cut}{malformed.reason}"), None
    if answer.nothing:
        return _none(question, "nothing", answer.nothing), None
    # What a model says of its own change proves nothing: the outputs' bits are compared where they count.
    exactness = answer.exactness if desk.keep_exact else strictest([Exactness.REORDERS, answer.exactness])
    reason = permitted(exactness, desk.task, keep_exact=desk.keep_exact) or _unpromised(answer, desk.task)
    if reason:
        return _none(question, "not_permitted", reason), None
    try:
        candidate = apply_change(question.subject, answer, desk.task.signature)
        _require_other_kernels(question.subject, candidate, desk.only_kernel)
    except ChangeRefused as refused:
        return _none(question, "unusable", refused.reason), None
    known = any(skill.id == answer.skill for skill in desk.skills)
    whose = "" if known else question.specialist
    reason = desk.steering.declines(answer.skill, answer.kernel, whose)
    reason = reason or desk.steering.objection(question.subject, candidate)
    if reason:
        return _none(question, "not_permitted", reason), None
    if candidate.digest == question.base:
        return _none(question, "unusable", "it gives the source that there was before the change"), None
    proposal = _proposal(question, answer, candidate, exactness, desk)
    idea = _is_idea(answer, question, desk.skills)
    made = Draft(request=question.digest, outcome="proposal", proposal=proposal.id, idea=idea)
    return made, proposal


def source_digest(candidate: Candidate) -> str:
    """Return a hash of what a compiler sees of a candidate: comments and layout make no difference."""
    return sha256_text(canonical_json([[file.path, _plain(file.text)] for file in candidate.files]))


def _plain(text: str) -> list[str]:
    found: list[str] = []
    line = 0
    directive = False
    for token in tokens(text):
        if token.line != line and (directive or token.text == "#"):
            found.append("\n")  # a directive ends with its line
            directive = token.text == "#"
        line = token.line
        found.append(f"{token.kind.value[:1]}{token.text}")
    return found


def _none(question: Question, outcome: Outcome, detail: str) -> Draft:
    return Draft(request=question.digest, outcome=outcome, detail=one_line(detail, 600))


def _unpromised(answer: ChangeAnswer, task: Task) -> str:
    missing = [promise.value for promise in answer.needs if promise not in task.promise]
    if not missing:
        return ""
    return f"it relies on {', '.join(missing)}, which is not promised; test for it in the code and keep a general path"


def _is_idea(answer: ChangeAnswer, question: Question, skills: Sequence[Skill]) -> bool:
    """Return whether a change is outside all known skills, or follows a direction that was."""
    known = {skill.id for skill in skills}
    return question.is_free or bool(answer.idea) or answer.skill not in known


def _proposal(
    question: Question, answer: ChangeAnswer, candidate: Candidate, exactness: Exactness, desk: Desk
) -> Proposal:
    skill = next((skill for skill in desk.skills if skill.id == answer.skill), None)
    expected = min(_MOST_EXPECTED, max(0.0, _TRUST * log(answer.expected_speedup)))
    return Proposal(
        base=question.base,
        candidate=candidate,
        specialist=question.specialist,
        origin="model",
        steps=(),
        predicted=Effect(log_speedup=expected, deviation=_DEVIATION),
        predicted_metrics=answer.metrics,
        exactness=exactness,
        assumptions=(
            *(f"the promise {promise.value}" for promise in answer.needs),
            *((SAME_BITS,) if desk.keep_exact else ()),
        ),
        rationale=one_line(answer.rationale, 2000),
        triggers=answer.targets or (skill.triggers if skill is not None else ()),
        title=_title(answer, _is_idea(answer, question, desk.skills)),
        kernel=one_line(answer.kernel, 100),
        request=question.digest,
    )


def _title(answer: ChangeAnswer, idea: bool) -> str:
    if idea:
        name = f"idea: {one_line(answer.idea or answer.skill, _TITLE)}"
    else:
        name = answer.skill.rsplit("/", 1)[-1]
    where = f" in {one_line(answer.kernel, 40)}" if answer.kernel else ""
    return f"model {name}{where}"


def _require_other_kernels(before: Candidate, after: Candidate, only_kernel: str) -> None:
    if not only_kernel:
        return
    old, new = _kernels(before), _kernels(after)
    for name, text in old.items():
        if name != only_kernel and new.get(name) != text:
            raise ChangeRefused(f"only the kernel {only_kernel!r} may be rewritten, and {name!r} differs")


def _kernels(candidate: Candidate) -> dict[str, str]:
    units = [parsed(file.text, file.path) for file in candidate.files]
    return {
        kernel.name: unit.text_of(kernel.span).replace("\r\n", "\n")
        for unit in units
        for kernel in unit.kernels
    }
