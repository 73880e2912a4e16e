"""A model whose answers stand in a file: by the request's digest, or by role in the order of the file.

model: a name            # optional
answers:
  - role: memory         # taken once, in order; role "*" serves every role that has none of its own left
    text: |
      ...
  - role: memory
    answer: {idea: ...}  # written as JSON
  - request: 3fa9...     # at least eight digits of a digest; taken as often as asked
    text: ...
  - role: compute
    failure: {kind: refusal, message: ..., remedy: ...}
  - role: compute
    pending: true
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError, model_validator

from kernelskill.errors import UsageError
from kernelskill.llm.base import FailureKind, ModelAnswer, ModelFailure, ModelRequest, Pending, Reply, Usage
from kernelskill.llm.tokens import estimate_text, estimate_tokens
from kernelskill.schema.base import Record, canonical_json

_ANY_ROLE = "*"
_DIGEST_DIGITS = 8


class ScriptedFailure(Record):
    """A failure that is to be played."""

    kind: FailureKind
    message: str = "the script says so"
    remedy: str = ""


class ScriptedAnswer(Record):
    """One entry of a script."""

    role: str = ""
    request: str = ""
    text: str | None = None
    answer: dict[str, Any] | list[Any] | None = None
    failure: ScriptedFailure | None = None
    pending: bool = False
    truncated: bool = False
    repeat: bool = False
    """Serve this role from here on with this entry, however often it asks."""

    @model_validator(mode="after")
    def _is_whole(self) -> ScriptedAnswer:
        if bool(self.role) == bool(self.request):
            raise ValueError("an entry needs either `role` or `request`")
        if self.request and len(self.request) < _DIGEST_DIGITS:
            raise ValueError(f"`request` needs at least {_DIGEST_DIGITS} digits of the digest")
        said = [self.text is not None, self.answer is not None, self.failure is not None, self.pending]
        if sum(said) != 1:
            raise ValueError("an entry needs one of `text`, `answer`, `failure` and `pending`")
        return self


class Script(Record):
    """A whole file."""

    model: str = "scripted"
    answers: tuple[ScriptedAnswer, ...] = Field(default=())


class ScriptedModel:
    """Answers from a script, the same request always with the same entry.

    Args:
        file: YAML or JSON.
        given: Role and digest of every request that ended in an earlier part of the run, in order.

    Raises:
        UsageError: The file cannot be read or is no script.
    """

    def __init__(self, file: Path, *, given: Iterable[tuple[str, str]] = ()) -> None:
        self._file = file
        self._script = _read(file)
        self.name = self._script.model
        self._lock = threading.Lock()
        self._chosen: dict[str, ScriptedAnswer | None] = {}
        self._left: dict[str, list[ScriptedAnswer]] = {}
        for entry in self._script.answers:
            if entry.role:
                self._left.setdefault(entry.role, []).append(entry)
        for role, digest in given:
            if self._by_digest(digest) is None:
                self._take(role)

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return what the script says; a script that has run out is a failure."""
        with self._lock:
            return tuple(self._reply(request) for request in requests)

    def _reply(self, request: ModelRequest) -> Reply:
        digest = request.digest
        if digest not in self._chosen:
            self._chosen[digest] = self._choose(request)
        entry = self._chosen[digest]
        if entry is None:
            return ModelFailure(
                request=digest,
                kind="unreachable",
                message=f"{self._file} has no answer left for role {request.role!r}",
                remedy=f"add an entry with `role: {request.role}` or `request: {digest[:12]}`",
            )
        if entry.pending:
            del self._chosen[digest]
            return Pending(request=digest, where=str(self._file))
        if entry.failure is not None:
            return ModelFailure(request=digest, **entry.failure.model_dump())
        text = entry.text if entry.text is not None else canonical_json(entry.answer)
        usage = Usage(
            input_tokens=estimate_tokens(request),
            output_tokens=estimate_text(text),
            cost_usd=0.0,
            estimated=True,
        )
        return ModelAnswer(request=digest, model=self.name, text=text, usage=usage, truncated=entry.truncated)

    def _choose(self, request: ModelRequest) -> ScriptedAnswer | None:
        return self._by_digest(request.digest) or self._take(request.role)

    def _by_digest(self, digest: str) -> ScriptedAnswer | None:
        named = (entry for entry in self._script.answers if entry.request)
        return next((entry for entry in named if digest.startswith(entry.request)), None)

    def _take(self, role: str) -> ScriptedAnswer | None:
        for name in (role, _ANY_ROLE):
            left = self._left.get(name)
            if left:
                return left[0] if left[0].repeat else left.pop(0)
        return None


def _read(file: Path) -> Script:
    remedy = "a script is YAML or JSON with a list `answers` of entries with `role` and `text`"
    try:
        text = file.read_text(encoding="utf-8")
        document = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise UsageError(f"cannot read the script {str(file)!r}: {error.strerror}", remedy=remedy) from error
    except (UnicodeDecodeError, json.JSONDecodeError, yaml.YAMLError) as error:
        first = " ".join(str(error).split())
        raise UsageError(f"the script {str(file)!r} cannot be parsed: {first}", remedy=remedy) from error
    try:
        return Script.model_validate(document)
    except ValidationError as error:
        first_error = error.errors()[0]
        where = ".".join(str(part) for part in first_error["loc"]) or "the file"
        raise UsageError(f"the script {str(file)!r}, {where}: {first_error['msg']}", remedy=remedy) from error
