"""Answers of a model, read strictly: a change as JSON or as Markdown with blocks, or a choice of directions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import Field, ValidationError, model_validator

from kernelskill.schema.base import Record
from kernelskill.schema.profile import BottleneckKind
from kernelskill.schema.proposal import Exactness, MetricChange
from kernelskill.schema.task import Promise

MOST_CHARACTERS = 2_000_000


class AnswerMalformed(Exception):
    """An answer does not have the form that was asked for, with the reason for whoever wrote it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SearchReplace(Record):
    """One stretch of source and what takes its place."""

    path: str = ""
    """Empty for the main file."""
    search: str
    replace: str


class WholeFile(Record):
    """A file written anew."""

    path: str = ""
    text: str


class ChangeAnswer(Record):
    """One change as a model offers it; `nothing` says why there is none."""

    skill: str = ""
    idea: str = ""
    kernel: str = ""
    targets: tuple[BottleneckKind, ...] = ()
    expected_speedup: float = Field(default=1.0, gt=0, le=1e6, allow_inf_nan=False)
    metrics: tuple[MetricChange, ...] = ()
    exactness: Exactness = Exactness.REORDERS
    needs: tuple[Promise, ...] = ()
    rationale: str = ""
    edits: tuple[SearchReplace, ...] = ()
    files: tuple[WholeFile, ...] = ()
    nothing: str = ""

    @model_validator(mode="after")
    def _is_whole(self) -> ChangeAnswer:
        if self.nothing:
            if self.edits or self.files:
                raise ValueError("it offers NOTHING and a change as well")
            return self
        if bool(self.skill) == bool(self.idea):
            raise ValueError("give either SKILL or IDEA")
        if not self.rationale.strip():
            raise ValueError("RATIONALE is missing")
        if bool(self.edits) == bool(self.files):
            raise ValueError("give either SEARCH blocks or whole files")
        return self


class Direction(Record):
    """One direction that a planner chose: a number of the list, or 0 and an idea of its own."""

    number: int = Field(default=0, ge=0)
    specialist: str = ""
    advice: str = ""


class PlanAnswer(Record):
    """Two or three directions, the most promising first."""

    directions: tuple[Direction, ...] = Field(min_length=1, max_length=3)


AnyAnswer = TypeVar("AnyAnswer", ChangeAnswer, PlanAnswer)

_TEXT = {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(values: type[Exactness] | type[Promise] | type[BottleneckKind]) -> dict[str, Any]:
    return {"type": "string", "enum": [value.value for value in values]}


CHANGE_SCHEMA = _object(
    skill=_TEXT,
    idea=_TEXT,
    kernel=_TEXT,
    targets=_list(_one_of(BottleneckKind)),
    expected_speedup={"type": "number"},
    metrics=_list(_object(metric=_TEXT, direction={"type": "string", "enum": ["down", "up", "same"]})),
    exactness=_one_of(Exactness),
    needs=_list(_one_of(Promise)),
    rationale=_TEXT,
    edits=_list(_object(path=_TEXT, search=_TEXT, replace=_TEXT)),
    files=_list(_object(path=_TEXT, text=_TEXT)),
    nothing=_TEXT,
)
"""Every field is required, as servers with strict schemas want it; what does not apply is empty."""

PLAN_SCHEMA = _object(
    directions=_list(_object(number={"type": "integer"}, specialist=_TEXT, advice=_TEXT)),
)

_FENCED = re.compile(
    r"\A\s*(`{3,}|~{3,})[ \t]*(?:json|markdown|md|text)?[ \t]*\n(.*)\n[ \t]*\1\s*\Z", re.DOTALL
)
_INDENT = "    "
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_HEADER = re.compile(r"[ \t>*_#-]*([A-Za-z][A-Za-z ]{1,20}?)[ \t*_]*:[ \t*_]*(.*)")
_SEARCH = re.compile(r"<{5,9} ?SEARCH(?:[ \t]+(\S.*?))?[ \t]*\Z")
_FILE = re.compile(r"<{5,9} ?FILE(?:[ \t]+(\S.*?))?[ \t]*\Z")
_MIDDLE = re.compile(r"={5,9}[ \t]*\Z")
_REPLACED = re.compile(r">{5,9} ?REPLACE[ \t]*\Z")
_FILED = re.compile(r">{5,9} ?FILE[ \t]*\Z")
_MARKER = re.compile(r"(?:<{5,9} ?(?:SEARCH|FILE)\b|>{5,9} ?(?:REPLACE|FILE)\b)")
_NAMES = {
    "skill": "skill",
    "idea": "idea",
    "new idea": "idea",
    "kernel": "kernel",
    "targets": "targets",
    "expected speedup": "expected_speedup",
    "speedup": "expected_speedup",
    "metrics": "metrics",
    "exactness": "exactness",
    "needs": "needs",
    "rationale": "rationale",
    "nothing": "nothing",
}
_DIRECTION = re.compile(r"[ \t>*_-]*DIRECTION[ \t*_]*:[ \t*_]*(\d+)[ \t*_]*(?:\|[ \t]*(.*))?", re.IGNORECASE)
_OWN_IDEA = re.compile(r"[ \t>*_-]*IDEA[ \t*_]*:[ \t*_]*([a-z_]+)[ \t*_]*\|[ \t]*(.+)", re.IGNORECASE)


def parse_change(text: str) -> ChangeAnswer:
    """Return the change in an answer.

    Raises:
        AnswerMalformed: It does not have the form that was asked for.
    """
    body = _body(text)
    fields = _as_json(body)
    return _validated(ChangeAnswer, fields if fields is not None else _from_markdown(body))


def parse_plan(text: str) -> PlanAnswer:
    """Return the directions in an answer.

    Raises:
        AnswerMalformed: It does not have the form that was asked for.
    """
    body = _body(text)
    fields = _as_json(body)
    if fields is not None:
        return _validated(PlanAnswer, fields)
    found = []
    for line in body.split("\n"):
        chosen, idea = _DIRECTION.fullmatch(line), _OWN_IDEA.fullmatch(line)
        if chosen:
            found.append({"number": int(chosen[1][:9]), "advice": (chosen[2] or "").strip()})
        elif idea:
            found.append({"specialist": idea[1].lower(), "advice": idea[2].strip()})
    if not found:
        raise AnswerMalformed("no line begins with DIRECTION: or IDEA:")
    return _validated(PlanAnswer, {"directions": found})


def _body(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise AnswerMalformed(f"it has {len(text)} characters; at most {MOST_CHARACTERS} are read")
    if any("\ud800" <= c <= "\udfff" for c in text) or "\0" in text:
        raise AnswerMalformed("it holds characters that are no text")
    body = _THOUGHT.sub("", text.replace("\r\n", "\n").lstrip("\ufeff")).strip("\n")
    fenced = _FENCED.match(body)
    lines = (fenced[2] if fenced else body).split("\n")
    # The form is shown indented, and some answers follow it in that too.
    if all(line.startswith(_INDENT) or not line.strip() for line in lines):
        lines = [line.removeprefix(_INDENT) for line in lines]
    return "\n".join(lines)


def _as_json(body: str) -> dict[str, Any] | None:
    if not body.lstrip().startswith("{"):
        return None
    try:
        document = json.loads(body)
    except (json.JSONDecodeError, RecursionError) as error:
        raise AnswerMalformed(f"it begins like JSON and is none: {error}") from None
    return document if isinstance(document, dict) else None


def _validated(record: type[AnyAnswer], fields: dict[str, Any]) -> AnyAnswer:
    try:
        answer = record.model_validate(fields)
        _require_text(answer.canonical())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = first["msg"].removeprefix("Value error, ")
        raise AnswerMalformed(f"{where}: {reason}" if where else reason) from None
    return answer


def _require_text(text: str) -> None:
    if "\0" in text or "\\u0000" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise AnswerMalformed("it holds characters that are no text")


def _from_markdown(body: str) -> dict[str, Any]:
    fields: dict[str, str] = {}
    edits: list[dict[str, str]] = []
    files: list[dict[str, str]] = []
    open_name = ""
    lines = _Lines(body)
    for line in lines:
        search, file = _SEARCH.fullmatch(line), _FILE.fullmatch(line)
        header = _HEADER.fullmatch(line)
        name = _NAMES.get(header[1].strip().lower(), "") if header else ""
        if search:
            old = lines.until(_MIDDLE, "=======")
            new = lines.until(_REPLACED, ">>>>>>> REPLACE")
            edits.append({"path": search[1] or "", "search": old, "replace": new})
            open_name = ""
        elif file:
            files.append({"path": file[1] or "", "text": lines.until(_FILED, ">>>>>>> FILE")})
            open_name = ""
        elif _MARKER.match(line):
            raise AnswerMalformed(f"line {lines.number}: {line[:60]!r} closes or opens no block")
        elif header and name:
            if name in fields:
                raise AnswerMalformed(f"{header[1].strip().upper()} is given twice")
            fields[name] = header[2].strip()
            open_name = name if name in ("rationale", "nothing") else ""
        elif open_name and not line.lstrip().startswith("```"):
            fields[open_name] = f"{fields[open_name]} {line.strip()}".strip()
    return {**_values(fields), "edits": edits, "files": files}


def _values(fields: dict[str, str]) -> dict[str, Any]:
    """Return the fields of the head as the record wants them."""
    values: dict[str, Any] = {}
    for name, text in fields.items():
        plain = text.strip("`* ")
        if name in ("targets", "needs"):
            items = [item.strip("`* ").lower() for item in plain.split(",")]
            values[name] = [item for item in items if item not in ("", "none")]
        elif name == "metrics":
            values[name] = list(_metrics(plain))
        elif name == "exactness":
            values[name] = plain.lower()
        elif name == "expected_speedup":
            values[name] = plain.lower().removesuffix("x").lstrip("~ ")
        else:
            values[name] = text if name in ("rationale", "nothing") else plain
    return values


def _metrics(text: str) -> Iterator[dict[str, str]]:
    for item in text.split(","):
        name, _, direction = item.strip().rpartition(" ")
        if name and direction in ("down", "up", "same"):
            yield {"metric": name.strip("`* "), "direction": direction}


class _Lines:
    """The lines of an answer, one after the other."""

    def __init__(self, body: str) -> None:
        self._lines = body.split("\n")
        self.number = 0
        """Of the line that was read last, from 1."""

    def __iter__(self) -> Iterator[str]:
        while self.number < len(self._lines):
            self.number += 1
            yield self._lines[self.number - 1]

    def until(self, end: re.Pattern[str], spelled: str) -> str:
        """Return the lines up to the one that ends a block."""
        first = self.number
        taken: list[str] = []
        for line in self:
            if end.fullmatch(line):
                return "\n".join(_without_fence(taken))
            if _MARKER.match(line) or (end is _REPLACED and _MIDDLE.fullmatch(line)):
                break
            taken.append(line)
        raise AnswerMalformed(f"the block at line {first} has no line {spelled!r} of its own")


def _without_fence(lines: list[str]) -> list[str]:
    """Return a block's lines without a code fence that somebody put around them."""
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return lines[1:-1]
    return lines
