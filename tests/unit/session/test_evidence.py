"""Questions and explanations without a model: from the diagnosis, the skills' texts and the verdicts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelskill.agents.prompts import PromptLibrary
from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.llm.base import ModelAnswer, ModelFailure, Pending, Usage
from kernelskill.schema.event import Answered, Asked
from kernelskill.session import Session
from tests.unit.graph.shop import Shop
from tests.unit.session.sessions import session_of, stocked
from tests.unit.session.test_history import MINE


@pytest.fixture
def session(shop: Callable[..., Shop]) -> Session:
    made = session_of(stocked(shop))
    made.work.step()
    return made


def text(lines: tuple[str, ...]) -> str:
    return "\n".join(lines)


def test_questions_select_skills_and_speak_of_the_run(session: Session) -> None:
    session.history.move("original")
    said = session.say("what would shared memory bring?")
    assert said.kind == "answer"
    assert said.explanation is not None
    assert said.explanation.skills == ("memory/shared_tile",)
    lines = text(said.explanation.lines)
    assert lines.startswith("shared memory: 0 of 1 skill can be applied to the head")
    assert "what it makes was tried already" in lines
    assert "round 1: shared_tile" in lines
    assert session.say("shared memory").explanation == said.explanation.model_copy(
        update={"name": "shared memory"}
    )
    session.steering.ban("shared_tile")
    banned = session.evidence.ask("and shared memory?")
    assert "you do not want it: you asked for it: 'ban shared_tile'" in text(banned.lines)


def test_changes_proposals_and_skills_are_explained(session: Session) -> None:
    head = session.history.node()
    change = session.evidence.why(f"#{head.number}")
    assert (change.subject, change.name, change.skills) == (
        "change",
        f"#{head.number}",
        ("memory/shared_tile",),
    )
    assert f"{head.verdict}: {head.reason}" in text(change.lines)
    assert session.evidence.why("p1.1").subject == "change"
    assert session.evidence.ask(f"why was #{head.number} accepted?") == change
    assert session.evidence.why("shared_tile").subject == "skill"
    assert session.evidence.why("original").lines == ("#0 is the original: every speedup is counted from it",)
    assert session.evidence.why().subject == "run"
    assert session.evidence.ask("why is it slow?").subject == "run"
    limit = session.evidence.why("bank conflicts")
    assert limit.subject == "limit"
    assert "does not limit the head" in limit.lines[0]
    pinned = session.history.pin(MINE.replace("right", "tail"))
    assert "by you" in session.evidence.why(str(pinned.node.number)).lines[0]


def test_what_to_try_next(session: Session) -> None:
    session.history.move("original")
    found = session.evidence.ask("what should I try next?")
    # Each place was tried with its first values; of the factors some are left.
    assert found.lines[0].startswith("what the next step would look at")
    assert [line.split(":")[0] for line in found.lines[1:]] == [
        "unroll(factor=4) at k//* unrolled {factor} */"
    ]
    rows = {row.id: (row.state, row.tried, row.won) for row in session.evidence.skills()}
    assert rows == {
        "compute/unroll": ("offered", 1, 1),
        "memory/accumulate_in_register": ("declined", 1, 1),
        "memory/shared_tile": ("declined", 1, 1),
    }


def test_what_is_not_understood_is_said(session: Session) -> None:
    answer = session.say("wie geht es dir?")
    assert answer.kind == "answer"
    assert answer.explanation is not None
    assert not answer.explanation.understood
    assert session.say("no sharde memory").explanation is None
    nothing = session.say("glimmer")
    assert (nothing.kind, nothing.explanation) == ("nothing", None)
    for name, near in (("sharedtile", "shared"), ("coalesing", "coalescing"), ("#99", "number")):
        with pytest.raises(UnknownNameError) as caught:
            session.evidence.why(name)
        assert near in caught.value.remedy
    with pytest.raises(UsageError):
        session.evidence.ask("  ")
    with pytest.raises(UnknownNameError, match="no specialist"):
        session.evidence.skills("memmory")
    with pytest.raises(UnknownNameError, match="no skill"):
        session.evidence.skill("unrol")


def test_a_profile_is_of_right_candidates(session: Session) -> None:
    view = session.evidence.profile()
    assert view.node.is_head
    assert view.diagnosis.candidate == view.node.digest
    assert session.evidence.profile("original", depth="full").node.number == 0
    wrong = session.history.pin(MINE.replace("right", "tail")).node
    with pytest.raises(UsageError, match="is not right"):
        session.evidence.profile(str(wrong.number))
    with pytest.raises(UsageError, match="has no time"):
        session.work.remeasure(str(wrong.number))


def test_another_measurement(session: Session) -> None:
    again = session.work.remeasure()
    assert again.node.is_head
    assert (again.verdict, again.before_ms > 0, again.after_ms > 0) == ("accepted", True, True)
    assert again.speedup == pytest.approx(session.status().speedup)
    assert session.work.remeasure("original").node.number == 0


class Oracle:
    """Answers every question with the same."""

    name = "oracle"

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.asked: list = []

    def ask(self, requests: list) -> tuple:
        self.asked += requests
        digests = [request.digest for request in requests]
        if self.kind == "pending":
            return tuple(Pending(request=d, where="answers/x.txt") for d in digests)
        if self.kind == "answer":
            said = "It waits\x1b[31m for memory.\n"
            return tuple(
                ModelAnswer(request=d, model="oracle", text=said, usage=Usage(input_tokens=5))
                for d in digests
            )
        kind = "unreachable" if self.kind == "unreachable" else "refusal"
        return tuple(ModelFailure(request=d, kind=kind, message="it says no", remedy="") for d in digests)


def test_a_model_answers_from_the_evidence(session: Session) -> None:
    oracle = Oracle("answer")
    session.context.model, session.context.prompts = oracle, PromptLibrary.load()
    session.steering.ban("shared memory")
    answer = session.evidence.ask("why is it slow?")
    assert (answer.source, answer.lines) == ("model", ("It waits?[31m for memory.",))
    prompt = oracle.asked[0].messages[1].text
    assert "why is it slow?" in prompt
    assert "takes" in prompt
    assert "keep to it:\n\n```text\n- nothing that uses shared memory" in prompt
    assert session.evidence.ask("why is it slow?") == answer
    assert len(oracle.asked) == 1
    events = session.context.log.events
    assert [e.purpose for e in events if isinstance(e, Asked)] == ["question"]
    assert [(e.outcome, e.input_tokens) for e in events if isinstance(e, Answered)] == [("answer", 5)]


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("pending", "has not answered yet"),
        ("refusal", "did not answer: it says no"),
        ("unreachable", "could not be asked"),
    ],
)
def test_without_an_answer_the_records_speak(session: Session, kind: str, word: str) -> None:
    own = session.evidence.ask("why is it slow?")
    session.context.model, session.context.prompts = Oracle(kind), PromptLibrary.load()
    answer = session.evidence.ask("why is it slow?")
    assert answer.lines[:-1] == own.lines
    assert word in answer.lines[-1]
