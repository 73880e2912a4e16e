import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.errors import UsageError
from kernelskill.llm.base import Message, ModelAnswer, ModelRequest, Pending
from kernelskill.llm.mailbox import END, Mailbox, whole_answer

SCHEMA = {"type": "object", "properties": {"idea": {"type": "string"}}}


def request(text: str = "Make `x` fast.\n```cuda\nint x;\n```", **fields: object) -> ModelRequest:
    messages = (Message(role="system", text="You know CUDA."), Message(role="user", text=text))
    return ModelRequest.model_validate({"role": "memory", "messages": messages, **fields})


def test_a_request_is_a_page_that_can_be_answered_from_alone(tmp_path: Path) -> None:
    asked = request(answer_schema=SCHEMA, sample=2)
    (pending,) = Mailbox(tmp_path / "mail").ask([asked])
    assert isinstance(pending, Pending)
    answer_file = Path(pending.where)
    page = answer_file.with_name(answer_file.name.replace(".answer.md", ".md")).read_text()
    prompt = page.split("\nPROMPT\n", 1)[1]
    assert all(message.text in prompt for message in asked.messages)
    assert answer_file.name in page
    assert json.dumps(SCHEMA, indent=1) in page
    assert END in page
    assert "sample 2" in page


def test_many_are_outstanding_and_answers_come_in_any_order(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    requests = [request(sample=number) for number in range(5)]
    first = box.ask(requests)
    assert all(isinstance(reply, Pending) for reply in first)
    assert len(box.outstanding()) == 5
    for number in (3, 1):
        pending = first[number]
        assert isinstance(pending, Pending)
        Path(pending.where).write_text(f"answer {number}\n{END}\n")
    second = box.ask(requests)
    assert [getattr(reply, "text", None) for reply in second] == [None, "answer 1", None, "answer 3", None]
    assert len(box.outstanding()) == 3
    usage = second[1].usage if isinstance(second[1], ModelAnswer) else None
    assert usage is not None
    assert usage.estimated
    assert usage.cost_usd == 0.0


def test_it_goes_on_in_a_copy_on_another_machine(tmp_path: Path) -> None:
    (pending,) = Mailbox(tmp_path / "here").ask([request()])
    assert isinstance(pending, Pending)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    (tmp_path / "there" / Path(pending.where).name).write_text(f"done\n{END}")
    (answer,) = Mailbox(tmp_path / "there").ask([request()])
    assert isinstance(answer, ModelAnswer)
    assert answer.text == "done"


@pytest.mark.parametrize(
    ("content", "note"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("half of an ans", "does not end with the line"),
        ('{"idea": "tile', "does not end with the line"),
        ('```json\n{"idea": "tile"}\n', "does not end with the line"),
        (END, "does not end with the line"),
        ("12", "does not end with the line"),
    ],
)
def test_half_an_answer_is_not_taken(tmp_path: Path, content: str, note: str) -> None:
    box = Mailbox(tmp_path)
    (pending,) = box.ask([request()])
    assert isinstance(pending, Pending)
    assert pending.note == ""
    Path(pending.where).write_text(content)
    (again,) = box.ask([request()])
    assert isinstance(again, Pending)
    assert note in again.note


def test_files_that_are_no_text_are_named(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    (pending,) = box.ask([request()])
    assert isinstance(pending, Pending)
    Path(pending.where).write_bytes(b"\xff\xfe\x00")
    (again,) = box.ask([request()])
    assert isinstance(again, Pending)
    assert "is not UTF-8" in again.note
    Path(pending.where).write_bytes(b"x" * (5 << 20))
    (again,) = box.ask([request()])
    assert isinstance(again, Pending)
    assert "larger than" in again.note


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (f"text\n{END}\n\n", "text"),
        ('{"idea": "tile"}\n', '{"idea": "tile"}'),
        ('{"idea": "two\nlines"}', '{"idea": "two\nlines"}'),
        ('Here it is:\n```json\n{"a": 1}\n```\n', 'Here it is:\n```json\n{"a": 1}\n```'),
        (f'{{"a": 1}}\n{END}', '{"a": 1}'),
        ("\ufefftext\r\nmore\r\n" + END, "text\nmore"),
    ],
)
@pytest.mark.parametrize("suffix", [".answer.md", ".answer.txt", ".answer.json"])
def test_whole_answers_are_taken_without_their_mark(
    tmp_path: Path, content: str, text: str, suffix: str
) -> None:
    box = Mailbox(tmp_path)
    (pending,) = box.ask([request(answer_schema=SCHEMA)])
    assert isinstance(pending, Pending)
    Path(pending.where.removesuffix(".answer.md") + suffix).write_bytes(content.encode())
    (answer,) = box.ask([request(answer_schema=SCHEMA)])
    assert isinstance(answer, ModelAnswer)
    assert answer.text == text


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.text())), st.data())
def test_no_part_of_a_json_answer_looks_whole(value: dict[str, object], data: st.DataObject) -> None:
    text = json.dumps(value)
    assert whole_answer(text, formed=True) == text
    assert whole_answer(text, formed=False) is None
    cut = data.draw(st.integers(0, len(text) - 1))
    assert whole_answer(text[:cut], formed=True) is None


def test_a_block_of_json_is_not_the_end_of_a_text(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    (pending,) = box.ask([request()])
    assert isinstance(pending, Pending)
    Path(pending.where).write_text('```json\n{"idea": "tile"}\n```\n')
    assert isinstance(box.ask([request()])[0], Pending)
    assert len(box.outstanding()) == 1
    (formed,) = box.ask([request(answer_schema=SCHEMA)])
    assert isinstance(formed, Pending)
    Path(formed.where).write_text('```json\n{"idea": "tile"}\n```\n')
    assert isinstance(box.ask([request(answer_schema=SCHEMA)])[0], ModelAnswer)
    assert len(box.outstanding()) == 1


def test_a_request_that_was_changed_by_hand_is_written_again(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.ask([request()])
    (page,) = tmp_path.glob("*.md")
    whole = page.read_text()
    page.write_text("gone")
    box.ask([request()])
    assert page.read_text() == whole


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    box = Mailbox(tmp_path)
    box.ask([request(role="../../odd role!")])
    (page,) = box.outstanding()
    assert page.parent == tmp_path
    assert page.name.startswith("odd-role-")
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_a_file_is_no_mailbox(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used: File exists"):
        Mailbox(tmp_path / "file")
