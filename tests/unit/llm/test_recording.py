from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelskill.errors import HarnessError, UsageError
from kernelskill.llm.base import Message, ModelAnswer, ModelFailure, ModelRequest, Pending, Reply, Usage
from kernelskill.llm.budget import ModelLimits
from kernelskill.llm.models import open_budgeted, open_model
from kernelskill.llm.recording import AnswerFile, KeepingModel, ReplayModel


def request(text: str, role: str = "memory") -> ModelRequest:
    return ModelRequest(role=role, messages=(Message(role="user", text=text),))


class Parrot:
    """Answers with the question; fails or leaves pending what asks for it."""

    name = "parrot"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        return tuple(self._reply(request) for request in requests)

    def _reply(self, asked: ModelRequest) -> Reply:
        text = asked.messages[-1].text
        self.asked.append(text)
        if text == "fail":
            usage = Usage(input_tokens=5, requests=2, cost_usd=0.5)
            return ModelFailure(request=asked.digest, kind="server", message="m", remedy="r", usage=usage)
        if text == "wait":
            return Pending(request=asked.digest, where="there")
        usage = Usage(input_tokens=10, output_tokens=2, cost_usd=0.25)
        return ModelAnswer(request=asked.digest, model=self.name, text=f"{text} \u00fc\n", usage=usage)


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "answers.jsonl"
    parrot = Parrot()
    requests = [request("a"), request("fail"), request("wait"), request("b"), request("a")]
    first = KeepingModel(parrot, AnswerFile(path)).ask(requests)
    second = KeepingModel(parrot, AnswerFile(path)).ask(requests)
    assert first == second
    assert parrot.asked[-2:] == ["fail", "wait"]
    assert parrot.asked.count("b") == 1


def test_a_kill_in_the_middle_of_a_line_loses_that_line_only(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    KeepingModel(Parrot(), AnswerFile(path)).ask([request("a"), request("b")])
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole), 7):
        path.write_bytes(whole[:cut])
        parrot = Parrot()
        KeepingModel(parrot, AnswerFile(path)).ask([request("a"), request("b")])
        assert parrot.asked == ([] if cut == len(whole) - 1 else ["b"])
        assert [row.answer.text for row in AnswerFile(path).rows if row.answer] == [
            "a \u00fc\n",
            "b \u00fc\n",
        ]


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(UsageError, match=r"notes\.txt:1 is no answer of a model"):
        open_model(f"record:{path}:scripted:nowhere")
    assert path.read_text() == "dear diary\n"
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        AnswerFile(tmp_path)


def test_a_recording_plays_without_the_model(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("model: tiny\nanswers:\n- {role: memory, text: one}\n- {role: memory, text: two}\n")
    recorded = open_model(f"record:{tmp_path / 'rec.jsonl'}:scripted:{script}")
    assert recorded is not None
    replies = recorded.ask([request("a"), request("b")])
    script.unlink()
    replay = open_model(f"replay:{tmp_path / 'rec.jsonl'}")
    assert replay is not None
    assert replay.ask([request("b"), request("a")]) == (replies[1], replies[0])
    assert replay.name == "tiny"
    (missing,) = replay.ask([request("c")])
    assert isinstance(missing, ModelFailure)
    assert "holds no answer to this request of role 'memory'" in missing.message
    assert missing.remedy
    with pytest.raises(UsageError, match="there is no recording"):
        ReplayModel(tmp_path / "nothing.jsonl")


def test_a_run_that_goes_on_takes_up_script_and_budget_where_they_were(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("answers:\n- {role: memory, text: one}\n- {role: memory, text: two}\n")
    limits = ModelLimits(requests=2)
    before = open_budgeted(f"scripted:{script}", limits, folder=tmp_path / "run")
    assert before is not None
    (one,) = before.ask([request("a")])
    after = open_budgeted(f"scripted:{script}", limits, folder=tmp_path / "run")
    assert after is not None
    assert after.usage() == before.usage()
    again, two, three = after.ask([request("a"), request("b"), request("c")])
    assert again == one
    assert isinstance(two, ModelAnswer)
    assert two.text == "two"
    assert isinstance(three, ModelFailure)
    assert three.kind == "budget"
    assert after.usage().requests == 2


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = AnswerFile(tmp_path / "answers.jsonl")
    (tmp_path / "answers.jsonl").mkdir()
    with pytest.raises(HarnessError, match="the answers cannot be kept in"):
        KeepingModel(Parrot(), file).ask([request("a")])
