"""The three borders: asked, answered in advance, or answered safely where nobody is there."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.chat.borders import BORDERS, UNASKED, Borders, edit_text, read_answers
from kernelskill.chat.output import JsonOutput, TextOutput
from kernelskill.chat.readers import PipeReader
from kernelskill.errors import UsageError
from kernelskill.session.borders import Border, BorderQuestion


class Somebody:
    """Answers questions from a list, then goes away."""

    can_ask = True

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def line(self) -> str | None:
        return None

    def answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self._answers.pop(0) if self._answers else None


def question(
    border: Border = Border.WRITE, source: str = "new\n", diff: str = "-old\n+new\n"
) -> BorderQuestion:
    return BorderQuestion(border=border, text="Write kernel.cu?", path="kernel.cu", source=source, diff=diff)


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Path]:
    """An editor that appends a line, ends with what `code` says, or does nothing."""
    script = tmp_path / "my editor"
    script.write_text(
        '#!/bin/sh\n[ "$1" = -n ] && exit 0\necho "// größer" >> "$2"\nexit $1\n', encoding="utf-8"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    before = {name: os.environ.pop(name, None) for name in ("VISUAL", "EDITOR")}
    yield script
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def test_nobody_is_asked_at_a_pipe_and_the_answers_are_safe() -> None:
    stream = io.StringIO()
    borders = Borders(JsonOutput(stream), PipeReader(io.BytesIO(b"yes\n")), {})
    assert {border: borders(question(Border(border))).kind for border in BORDERS} == UNASKED
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["kind"], line["border"], line["answer"]) for line in said] == [
        ("border", border, UNASKED[border]) for border in BORDERS
    ]
    assert UNASKED["write"] == UNASKED["budget"] == "no"


def test_answers_given_in_advance() -> None:
    assert read_answers([], yes=False) == {}
    assert read_answers([], yes=True) == dict.fromkeys(BORDERS, "yes")
    given = read_answers(["write=no", "budget=+2m"], yes=True)
    assert given == {"first_run": "yes", "write": "no", "budget": "+2m"}
    borders = Borders(JsonOutput(io.StringIO()), PipeReader(io.BytesIO()), given)
    assert borders(question()).kind == "no"
    more = borders(question(Border.BUDGET))
    assert (more.kind, more.text) == ("edit", "+2m")


@pytest.mark.parametrize("text", ["", "write", "write=", "write=perhaps", "file=yes", "budget="])
def test_an_answer_that_is_none(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_answers([text], yes=False)
    assert "BORDER=ANSWER" in caught.value.remedy


@pytest.mark.parametrize(
    ("said", "kind"), [("y", "yes"), ("YES", "yes"), ("n", "no"), ("a", "always"), ("alw", "always")]
)
def test_first_letters_do(said: str, kind: str) -> None:
    somebody = Somebody(said)
    assert Borders(TextOutput(), somebody, {})(question()).kind == kind
    assert "[y]es" in somebody.asked[0]
    assert "[d]iff" in somebody.asked[0]


def test_no_answer_is_no_and_nonsense_is_asked_again() -> None:
    assert Borders(TextOutput(), Somebody(), {})(question()).kind == "no"
    somebody = Somebody("perhaps", "", "y")
    assert Borders(TextOutput(), somebody, {})(question()).kind == "yes"
    assert len(somebody.asked) == 3


def test_the_diff_is_shown_and_the_question_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert Borders(TextOutput(), Somebody("d", "n"), {})(question()).kind == "no"
    assert "+new" in capsys.readouterr().out


def test_an_edit_goes_through_the_editor(editor: Path) -> None:
    os.environ["EDITOR"] = f"'{editor}' 0"
    answer = Borders(TextOutput(), Somebody("e"), {})(question())
    assert (answer.kind, answer.text) == ("edit", "new\n// größer\n")


def test_an_edit_that_fails_or_changes_nothing_is_asked_again(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ["EDITOR"] = f"'{editor}' 3"
    assert Borders(TextOutput(), Somebody("e", "n"), {})(question()).kind == "no"
    assert "ended with 3" in capsys.readouterr().out
    os.environ["EDITOR"] = f"'{editor}' -n"
    assert Borders(TextOutput(), Somebody("e", "y"), {})(question()).kind == "yes"
    os.environ["EDITOR"] = "/no/such/editor"
    assert Borders(TextOutput(), Somebody("e", "y"), {})(question()).kind == "yes"
    assert "cannot start the editor" in capsys.readouterr().out
    with pytest.raises(UsageError):
        edit_text("x", suffix=".cu")


def test_a_new_limit_is_asked_for() -> None:
    answer = Borders(TextOutput(), Somebody("e", " +2m "), {})(question(Border.BUDGET, source="", diff=""))
    assert (answer.kind, answer.text) == ("edit", "+2m")
