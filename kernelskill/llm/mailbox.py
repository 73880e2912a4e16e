"""A folder as a model: each request becomes a Markdown file, each answer is read from a file beside it.

    ROLE-DIGEST.md           the request: the exact prompt, the form of the answer, where it goes
    ROLE-DIGEST.answer.md    the answer, written by whoever has a model (or is one)

Names follow from what is asked, so a run goes on from the folder on any machine that has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from kernelskill.errors import UsageError
from kernelskill.llm.base import ModelAnswer, ModelRequest, Pending, Reply, Usage
from kernelskill.llm.tokens import estimate_text, estimate_tokens
from kernelskill.runs import write_atomically

END = "<!-- end -->"
"""The last line of an answer: nothing shorter tells a whole text from half of one."""
_SUFFIXES = (".answer.md", ".answer.txt", ".answer.json")
_FORM = "## The form of the answer"
_JSON_FORM = "One JSON object that fits this JSON schema:"
_JSON_ENDS = "; one whole JSON object needs no such line"
_DIGITS = 16
_LARGEST = 4 << 20
_LAST_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[ \t]*\Z", re.MULTILINE | re.DOTALL)


class Mailbox:
    """Hands requests over as files and takes up the answers that are whole.

    Args:
        folder: Made if it is missing.

    Raises:
        UsageError: The folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"mailbox {folder.name or folder}"
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"the mailbox {str(folder)!r} cannot be used: {error.strerror}", remedy="give a folder"
            ) from error

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return the answers that are there and `Pending` for the rest; never waits.

        Raises:
            UsageError: A request cannot be written.
        """
        return tuple(self._reply(request) for request in requests)

    def outstanding(self) -> tuple[Path, ...]:
        """Return the requests in the folder that have no whole answer yet."""
        prompts = (path for path in self._folder.glob("*.md") if not path.name.endswith(_SUFFIXES))
        marked = [path for path in prompts if re.search(rf"-[0-9a-f]{{{_DIGITS}}}$", path.stem)]
        return tuple(path for path in sorted(marked) if self._find(path.stem, _wants_json(path))[0] is None)

    def _reply(self, request: ModelRequest) -> Reply:
        stem = _stem(request)
        text, note = self._find(stem, request.answer_schema is not None)
        if text is None:
            self._hand_over(self._folder / f"{stem}.md", request)
            return Pending(
                request=request.digest, where=str(self._folder / f"{stem}{_SUFFIXES[0]}"), note=note
            )
        usage = Usage(
            input_tokens=estimate_tokens(request),
            output_tokens=estimate_text(text),
            cost_usd=0.0,
            estimated=True,
        )
        return ModelAnswer(request=request.digest, model=self.name, text=text, usage=usage)

    def _find(self, stem: str, formed: bool) -> tuple[str | None, str]:
        """Return a whole answer, or None and what is wrong with the file that is there."""
        note = ""
        for suffix in _SUFFIXES:
            path = self._folder / f"{stem}{suffix}"
            text, note = _read(path, formed)
            if text is not None or note:
                return text, note
        return None, note

    def _hand_over(self, path: Path, request: ModelRequest) -> None:
        data = request_page(request).encode("utf-8", "replace")
        try:
            if not path.is_file() or path.read_bytes() != data:
                write_atomically(path, data)
        except OSError as error:
            raise UsageError(
                f"the request {str(path)!r} cannot be written: {error.strerror}",
                remedy="give the mailbox a folder that can be written",
            ) from error


def request_page(request: ModelRequest) -> str:
    """Return a request as Markdown: what to do, the form of the answer, the exact prompt."""
    name = f"{_stem(request)}{_SUFFIXES[0]}"
    formed = request.answer_schema is not None
    lines = [
        f"# {request.role}: request {request.digest[:_DIGITS]}",
        "",
        f"Write the answer into `{name}` in this folder. Everything below the line `PROMPT` is the prompt, whole and",
        "exact: paste it into a model, or answer it yourself; nothing else is needed. Keep the answer as it is given.",
        f"Its last line must be `{END}`, so that a half-written file is not taken{_JSON_ENDS if formed else ''}.",
    ]
    if request.sample:
        lines += [
            "",
            f"This is sample {request.sample}: answer it afresh, without a look at the other answers.",
        ]
    lines += ["", _FORM, ""]
    if request.answer_schema is None:
        lines.append("Text, as the prompt asks for it.")
    else:
        schema = json.dumps(request.answer_schema, indent=1, ensure_ascii=False)
        lines += [_JSON_FORM, "", "```json", schema, "```"]
    lines += ["", "---", "PROMPT"]
    for number, message in enumerate(request.messages, 1):
        lines += ["", f"<!-- message {number}, {message.role} -->", "", message.text]
    return "\n".join(lines) + "\n"


def whole_answer(text: str, *, formed: bool) -> str | None:
    """Return an answer that is whole, without its end mark, or None for half of one.

    Args:
        text: What the file holds.
        formed: Whether one JSON value was asked for; such a one is whole by itself, alone or in a closed fence
            at the end. Any other text is whole when it ends with `<!-- end -->`.
    """
    stripped = text.strip()
    if stripped.endswith(END):
        return stripped.removesuffix(END).strip() or None
    if not formed:
        return None
    if _is_json(stripped):
        return stripped
    fence = _LAST_FENCE.search(stripped)
    return stripped if fence and _is_json(fence[2]) else None


def _stem(request: ModelRequest) -> str:
    role = re.sub(r"[^a-z0-9]+", "-", request.role.lower()).strip("-")[:40] or "request"
    return f"{role}-{request.digest[:_DIGITS]}"


def _read(path: Path, formed: bool) -> tuple[str | None, str]:
    try:
        if not path.is_file():
            return None, ""
        if path.stat().st_size > _LARGEST:
            return None, f"{path.name} is larger than {_LARGEST >> 20} MiB"
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return None, f"{path.name} is not UTF-8 text"
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror}"
    if not text.strip():
        return None, f"{path.name} is empty"
    answer = whole_answer(text, formed=formed)
    return answer, "" if answer is not None else f"{path.name} does not end with the line {END} yet"


def _wants_json(page: Path) -> bool:
    try:
        return f"{_FORM}\n\n{_JSON_FORM}" in page.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _is_json(text: str) -> bool:
    """Return whether a text is one JSON object or list; a cut number or word would look whole."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text, strict=False)
    except (json.JSONDecodeError, RecursionError):
        return False
    return True
