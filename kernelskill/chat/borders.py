"""The three borders: first run of generated code, writing the user's file, passing the budget."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kernelskill.chat.output import Output
from kernelskill.chat.readers import Reader
from kernelskill.chat.reply import Code
from kernelskill.errors import UsageError

if TYPE_CHECKING:
    from kernelskill.session.borders import BorderAnswer, BorderQuestion

BORDERS = ("first_run", "write", "budget")
UNASKED: dict[str, str] = {"first_run": "yes", "write": "no", "budget": "no"}
"""What is answered where nobody can be asked: generated code runs as it does in `kernelskill run`, the
user's file stays as it is, and a limit is a limit."""
_LETTERS = {"y": "yes", "n": "no", "e": "edit", "d": "diff", "a": "always"}
_EDITORS = ("sensible-editor", "nano", "vim", "vi")


def read_answers(given: list[str], *, yes: bool) -> dict[str, str]:
    """Return answers given in advance, by border.

    Args:
        given: Texts such as `write=yes` or `budget=+2m`.
        yes: Whether everything not given is answered yes.

    Raises:
        UsageError: A text is no answer.
    """
    answers = dict.fromkeys(BORDERS, "yes") if yes else {}
    for text in given:
        border, equals, answer = text.partition("=")
        known = answer in ("yes", "no", "always") or (border == "budget" and answer)
        if border not in BORDERS or not equals or not known:
            raise UsageError(
                f"--answer is {text!r}",
                remedy=f"give BORDER=ANSWER with {', '.join(BORDERS)} and yes, no or always, or budget=+2m",
            )
        answers[border] = answer
    return answers


class Borders:
    """Asks the user, or answers as was said in advance."""

    def __init__(self, out: Output, reader: Reader, answers: Mapping[str, str]) -> None:
        self._out = out
        self._reader = reader
        self._answers = answers

    def __call__(self, question: BorderQuestion) -> BorderAnswer:
        """Answer a question of the session."""
        border = str(question.border)
        preset = self._answers.get(border)
        if preset is None and self._reader.can_ask:
            return self._ask(question)
        answer = preset if preset is not None else UNASKED[border]
        other = "no" if answer == "yes" else "yes"
        how = (
            "as given" if preset is not None else f"nobody is there to ask; --answer {border}={other} differs"
        )
        self._out.say(
            f"{question.text}: {answer} ({how})", "dim", kind="border", border=border, answer=answer
        )
        return _border_answer(answer)

    def _ask(self, question: BorderQuestion) -> BorderAnswer:
        with self._out.paused():
            self._out.say(question.text, "head")
            if question.detail:
                self._out.say(question.detail)
            while True:
                kind = self._kind(question)
                if kind == "diff":
                    self._out.block(
                        Code(question.diff or question.source, "diff" if question.diff else "cuda")
                    )
                elif kind == "edit":
                    text = self._edited(question)
                    if text is not None:
                        return _border_answer("edit", text)
                else:
                    return _border_answer(kind)

    def _kind(self, question: BorderQuestion) -> str:
        """Return a whole answer that makes sense; no answer is no."""
        offered = [word for word in _LETTERS.values() if word in question.answers]
        if "diff" not in offered and (question.diff or question.source):
            offered.append("diff")
        while True:
            said = self._reader.answer(f"{', '.join(f'[{word[0]}]{word[1:]}' for word in offered)}? ")
            if said is None:
                return "no"
            word = said.strip().lower()
            fitting = [known for known in offered if word and known.startswith(word)]
            if fitting:
                return fitting[0]
            self._out.say(f"please answer with {', '.join(offered)}, or their first letters")

    def _edited(self, question: BorderQuestion) -> str | None:
        if not question.source:
            said = self._reader.answer("how much more, for example +2m? ")
            return said.strip() if said and said.strip() else None
        try:
            text = edit_text(question.source, suffix=Path(question.path).suffix or ".cu")
        except UsageError as error:
            self._out.error(error.message, error.remedy, error.exit_code)
            return None
        if text == question.source:
            self._out.say("nothing was changed")
            return None
        return text


def edit_text(text: str, *, suffix: str) -> str:
    """Return a text as the user left it in an editor.

    Raises:
        UsageError: There is no editor, or it failed.
    """
    command = _editor()
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as folder:
        path = Path(folder) / f"candidate{suffix}"
        path.write_bytes(text.encode())
        try:
            done = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise UsageError(
                f"cannot start the editor {command[0]!r}: {error.strerror}", remedy="set EDITOR"
            ) from error
        if done.returncode != 0:
            raise UsageError(
                f"the editor {command[0]!r} ended with {done.returncode}", remedy="nothing was taken over"
            )
        try:
            return path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            raise UsageError(
                "what the editor left is no UTF-8 text", remedy="nothing was taken over"
            ) from None


def _editor() -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        words = shlex.split(os.environ.get(variable, ""))
        if words:
            return words
    for name in _EDITORS:
        if shutil.which(name):
            return [name]
    raise UsageError("no editor is known", remedy="set EDITOR, for example EDITOR=vim")


def _border_answer(answer: str, text: str = "") -> BorderAnswer:
    from kernelskill.session.borders import BorderAnswer  # noqa: PLC0415 - its room is heavy

    match answer:
        case "yes" | "no" | "edit" | "diff" | "always":
            return BorderAnswer(kind=answer, text=text)
        case _:
            return BorderAnswer(kind="edit", text=answer)  # a new limit, given in advance
