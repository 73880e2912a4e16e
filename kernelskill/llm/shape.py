"""Shape: which features of the chat protocol a server is sent. What it refuses is left out from then on."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from kernelskill.llm.base import ModelRequest
from kernelskill.schema.base import Record

Form = Literal["schema", "object", "words"]
"""How the form of an answer is asked for: by JSON schema, as some JSON object, or in words only."""

_NEXT_FORM: dict[Form, Form] = {"schema": "object", "object": "words"}
_FORM_WORDS = re.compile(
    r"response_format|json[ _]?schema|json_object|structured|guided|grammar|schema", re.I
)
_LIMIT = re.compile(r"max_(?:completion_)?tokens", re.I)
_LIMIT_TOO_LARGE = re.compile(r"too large|too high|at most|exceeds?|maximum|must be less", re.I)
_AT_MOST = re.compile(
    r"(?:at most|less than or equal to|<=|maximum (?:value )?(?:is|of)) *\(?(\d{2,9})", re.I
)
_ROOM = (
    re.compile(r"maximum context length is (\d+) tokens.{0,200}?(\d+) (?:input|prompt) tokens", re.I | re.S),
    re.compile(
        r"maximum context length is (\d+) tokens.{0,200}?(\d+) (?:tokens )?(?:in|from) the (?:input |text )?messages",
        re.I | re.S,
    ),
)
_LEAST_OUTPUT = 256
"""An answer of fewer tokens than this is of no use."""


class Shape(Record):
    """What goes into a request besides the messages."""

    form: Form = "schema"
    stream: bool = True
    stream_usage: bool = True
    temperature: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    limit_swapped: bool = False
    longest_output: int | None = None
    """The most output tokens that the server grants, where it has said so."""
    room: int | None = None
    """The output tokens for which there is room behind this one prompt."""
    system: bool = True
    """Whether there may be a message of the role `system`."""

    def output_tokens(self, request: ModelRequest) -> int:
        """Return the limit of output tokens that is asked for."""
        limits = (request.max_output_tokens, self.longest_output, self.room)
        return min(limit for limit in limits if limit is not None)

    def arguments(self, model: str, request: ModelRequest) -> dict[str, Any]:
        """Return the arguments of the chat completion."""
        found: dict[str, Any] = {
            "model": model,
            "messages": self._messages(request),
            self.limit: self.output_tokens(request),
        }
        if request.answer_schema is not None and self.form != "words":
            found["response_format"] = self._response_format(request.role, request.answer_schema)
        if request.temperature is not None and self.temperature:
            found["temperature"] = request.temperature
        if self.stream:
            found["stream"] = True
            if self.stream_usage:
                found["stream_options"] = {"include_usage": True}
        return found

    def after_refusal(self, message: str, parameter: str, request: ModelRequest) -> Shape | None:
        """Return the shape to try next where a server refused this one, or None where nothing is left out.

        Args:
            message: What the server said.
            parameter: The parameter that it named, if any.
            request: What was asked.
        """
        said = f"{parameter} {message}"
        formed = request.answer_schema is not None and self.form != "words"
        room = room_for_answer(said)
        if room is not None:
            fits = _LEAST_OUTPUT <= room < self.output_tokens(request)
            return self.model_copy(update={"room": room}) if fits else None
        if _LIMIT.search(said):
            return self._with_other_limit(said, request)
        if self.stream and self.stream_usage and "stream_options" in said:
            return self.model_copy(update={"stream_usage": False})
        if request.temperature is not None and self.temperature and "temperature" in said:
            return self.model_copy(update={"temperature": False})
        if formed and _FORM_WORDS.search(said):
            return self.with_next_form()
        if self.system and re.search(
            r"system (role|message|prompt)|role.{0,12}system|roles must alternate", said, re.I
        ):
            return self.model_copy(update={"system": False})
        if self.stream and re.search(r"\bstream(ing)?\b", said, re.I):
            return self.model_copy(update={"stream": False})
        if formed:
            return self.with_next_form()
        return self.model_copy(update={"stream_usage": False}) if self.stream and self.stream_usage else None

    def with_next_form(self) -> Shape:
        """Return the shape that asks for the form of an answer in a plainer way."""
        return self.model_copy(update={"form": _NEXT_FORM[self.form]})

    def _with_other_limit(self, said: str, request: ModelRequest) -> Shape | None:
        most = _granted(said)
        if most is not None and _LEAST_OUTPUT <= most < self.output_tokens(request):
            return self.model_copy(update={"longest_output": most})
        if self.limit_swapped or _LIMIT_TOO_LARGE.search(said):
            return None
        other = "max_completion_tokens" if self.limit == "max_tokens" else "max_tokens"
        return self.model_copy(update={"limit": other, "limit_swapped": True})

    def _messages(self, request: ModelRequest) -> list[dict[str, str]]:
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        if request.answer_schema is not None and self.form != "schema":
            messages[-1]["content"] += f"\n\n{form_in_words(request.answer_schema)}"
        if self.system:
            return messages
        joined: list[dict[str, str]] = []
        for message in messages:
            role = "user" if message["role"] == "system" else message["role"]
            if joined and joined[-1]["role"] == role:
                joined[-1]["content"] += f"\n\n{message['content']}"
            else:
                joined.append({"role": role, "content": message["content"]})
        return joined

    def _response_format(self, role: str, schema: dict[str, Any]) -> dict[str, Any]:
        if self.form == "object":
            return {"type": "json_object"}
        name = re.sub(r"[^A-Za-z0-9_-]", "_", role)[:64] or "answer"
        described = {"name": name, "schema": schema, "strict": is_strict(schema)}
        return {"type": "json_schema", "json_schema": described}


def form_in_words(schema: dict[str, Any]) -> str:
    """Return the instruction that stands in for a JSON schema where a server takes none."""
    return "Answer with one JSON object and nothing else. It must fit this JSON schema:\n" + json.dumps(
        schema, indent=1, ensure_ascii=False
    )


def is_strict(schema: Any) -> bool:
    """Return whether every object of a schema is closed and requires all it names, as strict decoding wants."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return True
    names = schema.get("properties")
    if isinstance(names, dict):
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(names):
            return False
    elif schema.get("type") == "object":
        return False
    return all(is_strict(part) for part in schema.values())


def room_for_answer(said: str) -> int | None:
    """Return how many output tokens fit behind a prompt, where a server says how long that and its context are."""
    for pattern in _ROOM:
        found = pattern.search(said)
        if found:
            return int(found[1]) - int(found[2])
    return None


def leaves_room(said: str) -> bool:
    """Return whether a server that finds a request too long could take it with a shorter answer."""
    room = room_for_answer(said)
    return room is not None and room >= _LEAST_OUTPUT


def _granted(said: str) -> int | None:
    """Return how many output tokens a server says that it grants."""
    most = _AT_MOST.search(said)
    return int(most[1]) if most else None
