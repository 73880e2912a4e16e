"""Answers kept in a file: nothing is asked twice, and what was recorded can be played again."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelskill.errors import HarnessError, UsageError
from kernelskill.llm.base import Model, ModelAnswer, ModelFailure, ModelRequest, Reply, Usage
from kernelskill.schema.base import Record


class AnswerRow(Record):
    """One line of the file: an answer, or what a failure took."""

    role: str
    prompt_digest: str = ""
    sample: int = 0
    answer: ModelAnswer | None = None
    failure: ModelFailure | None = None

    @property
    def digest(self) -> str:
        """Digest of the request."""
        reply = self.answer or self.failure
        return reply.request if reply is not None else ""

    @property
    def usage(self) -> Usage:
        """What it took."""
        reply = self.answer or self.failure
        return reply.usage if reply is not None else Usage(requests=0, cost_usd=0.0)


class AnswerFile:
    """A file of answers, a line each, appended as they come; a line cut by a kill is left out.

    Raises:
        UsageError: The file cannot be read or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._rows = list(_read(path))
        self._answers = {row.answer.request: row.answer for row in self._rows if row.answer is not None}

    @property
    def rows(self) -> tuple[AnswerRow, ...]:
        """Everything that is kept, in the order in which it came."""
        return tuple(self._rows)

    def answer(self, digest: str) -> ModelAnswer | None:
        """Return the answer to a request, if it is kept."""
        return self._answers.get(digest)

    def ended(self) -> tuple[tuple[str, str], ...]:
        """Return role and digest of every request that has ended, each once, in order."""
        return tuple(dict.fromkeys((row.role, row.digest) for row in self._rows))

    def add(self, request: ModelRequest, reply: Reply) -> None:
        """Keep an answer, or what a failure took; pending requests are kept by whoever answers them.

        Raises:
            HarnessError: The file cannot be written.
        """
        answer = reply if isinstance(reply, ModelAnswer) else None
        failure = reply if isinstance(reply, ModelFailure) else None
        if answer is None and failure is None:
            return
        row = AnswerRow(
            role=request.role,
            prompt_digest=request.prompt_digest,
            sample=request.sample,
            answer=answer,
            failure=failure,
        )
        with self._lock:
            if answer is not None and self._answers.get(answer.request) is not None:
                return
            self._append(row.model_dump_json(exclude_none=False) + "\n")
            self._rows.append(row)
            if answer is not None:
                self._answers[answer.request] = answer

    def _append(self, line: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+b") as stream:
                if stream.tell() and not _ends_whole(self._path):
                    stream.write(b"\n")  # a kill has cut the last line; the next one stands alone
                stream.write(line.encode("utf-8", "replace"))
        except OSError as error:
            raise HarnessError(
                f"the answers cannot be kept in {str(self._path)!r}: {error.strerror}",
                remedy="make room or give another folder; what was answered before is kept",
            ) from error


class KeepingModel:
    """Another model whose answers are kept; a request that has its answer is not asked again."""

    def __init__(self, model: Model, file: AnswerFile) -> None:
        self.name = model.name
        self._model = model
        self._file = file

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return kept answers, and what the other model says to the rest."""
        known = {request.digest: self._file.answer(request.digest) for request in requests}
        open_requests = [request for request in requests if known[request.digest] is None]
        replies = self._model.ask(open_requests) if open_requests else ()
        fresh: dict[str, Reply] = {}
        for request, reply in zip(open_requests, replies, strict=True):
            if request.digest not in fresh:
                self._file.add(request, reply)
            fresh[request.digest] = reply
        return tuple(known[request.digest] or fresh[request.digest] for request in requests)


class ReplayModel:
    """Answers from a recording alone."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UsageError(
                f"there is no recording {str(path)!r}", remedy="make one with record:FILE:MODEL first"
            )
        self._path = path
        self._file = AnswerFile(path)
        self.name = next((row.answer.model for row in self._file.rows if row.answer is not None), "replay")

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return what was recorded; anything else is a failure."""
        return tuple(self._file.answer(request.digest) or self._missing(request) for request in requests)

    def _missing(self, request: ModelRequest) -> ModelFailure:
        return ModelFailure(
            request=request.digest,
            kind="unreachable",
            message=f"{str(self._path)!r} holds no answer to this request of role {request.role!r}",
            remedy="prompts, kernel, device or settings differ from the recorded run; record it again",
        )


def _read(path: Path) -> Iterator[AnswerRow]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            f"the answers in {str(path)!r} cannot be read: {error.strerror}", remedy="give a file of answers"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield AnswerRow.model_validate_json(line)
        except ValidationError as error:
            if _is_cut(error):
                continue
            raise UsageError(
                f"{path}:{number} is no answer of a model",
                remedy="give a file that record:FILE:MODEL wrote, or a new name",
            ) from error


def _is_cut(error: ValidationError) -> bool:
    """Return whether a line is JSON that ends too early, as a kill leaves it."""
    first = error.errors()[0]
    return first["type"] == "json_invalid" and "EOF" in first["msg"]


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"
