"""One attempt at one request: sent, streamed, read with care."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from kernelskill.llm.base import ModelRequest, Usage
from kernelskill.llm.faults import AttemptFailed, Fault, fault_of, malformed, refusal, unreachable, web_page
from kernelskill.llm.shape import Shape
from kernelskill.llm.tokens import estimate_text, estimate_tokens

_THINKS, _THOUGHT = "<think>", "</think>"
"""Around the thinking of models whose server does not take it out; some begin inside it."""
_LONGEST_TEXT = 8 << 20
"""Characters of an answer that are read; no model says more."""


@dataclass
class Attempt:
    """What has come of an answer so far."""

    text: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    """Thinking, which is counted and not kept."""
    declined: list[str] = field(default_factory=list)
    finish: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def began(self) -> bool:
        """Whether any of the answer has come."""
        return bool(self.text or self.hidden or self.declined or self.finish)

    @property
    def answer(self) -> str:
        """What was said, without thinking that a server left in it."""
        said = "".join(self.text)
        _, mark, after = said.rpartition(_THOUGHT)
        if mark:
            return after.lstrip()
        return "" if said.lstrip().startswith(_THINKS) else said

    def usage(self, request: ModelRequest) -> Usage:
        """Return the tokens as reported, or counted by length where nobody said."""
        known = self.input_tokens is not None and self.output_tokens is not None
        said = "".join((*self.text, *self.hidden, *self.declined))
        return Usage(
            input_tokens=estimate_tokens(request) if self.input_tokens is None else self.input_tokens,
            output_tokens=estimate_text(said) if self.output_tokens is None else self.output_tokens,
            estimated=not known,
        )


def attempt(client: openai.OpenAI, model: str, request: ModelRequest, shape: Shape) -> Attempt:
    """Ask once and return the whole answer.

    Raises:
        AttemptFailed: With the reason; `usage_of_fault` tells what it took.
    """
    found = Attempt()
    try:
        _ask(client, shape.arguments(model, request), found)
    except openai.OpenAIError as error:
        raise AttemptFailed(_with_output(fault_of(error, began=found.began), found)) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise AttemptFailed(_with_output(malformed("sent invalid JSON", cut=found.began), found)) from None
    fault = _fault_in(found)
    if fault is not None:
        raise AttemptFailed(_with_output(fault, found))
    return found


def usage_of_fault(fault: Fault, request: ModelRequest) -> Usage:
    """Return what a failed attempt took: an answer that had begun has used its input."""
    output = estimate_text(fault.output)
    if not fault.cut and not output:
        return Usage(requests=1, cost_usd=None)
    return Usage(input_tokens=estimate_tokens(request), output_tokens=output, estimated=True)


def _ask(client: openai.OpenAI, arguments: dict[str, Any], found: Attempt) -> None:
    create = cast(Any, client.chat.completions.create)
    answer = create(**arguments)
    if not arguments.get("stream"):
        if not isinstance(answer, ChatCompletion):
            raise AttemptFailed(malformed("sent what is no chat completion"))
        _read_whole(answer, found)
        return
    with answer:
        if "text/html" in answer.response.headers.get("content-type", ""):
            raise AttemptFailed(web_page())
        _read_stream(answer, found)


def _read_stream(chunks: Iterable[ChatCompletionChunk], found: Attempt) -> None:
    """Add up the chunks. Servers leave out what the types promise, so nothing is taken for granted."""
    size = 0
    for chunk in chunks:
        found.model = _string(chunk, "model") or found.model
        _take_usage(getattr(chunk, "usage", None), found)
        choice = _first(getattr(chunk, "choices", None))
        if choice is None:
            continue
        delta = getattr(choice, "delta", None)
        _take_parts(delta, found)
        size += len(_words(delta, "content"))
        found.finish = _string(choice, "finish_reason") or found.finish
        if size > _LONGEST_TEXT:
            raise AttemptFailed(malformed("does not end its answer", again=False))


def _read_whole(answer: ChatCompletion, found: Attempt) -> None:
    found.model = _string(answer, "model")
    _take_usage(getattr(answer, "usage", None), found)
    choice = _first(getattr(answer, "choices", None))
    if choice is None:
        return
    _take_parts(getattr(choice, "message", None), found)
    found.finish = _string(choice, "finish_reason") or "stop"


def _take_parts(part: object, found: Attempt) -> None:
    for name, kept in (
        ("content", found.text),
        ("refusal", found.declined),
        ("reasoning_content", found.hidden),
        ("reasoning", found.hidden),
    ):
        text = _words(part, name)
        if text:
            kept.append(text)


def _take_usage(usage: object, found: Attempt) -> None:
    if usage is None:
        return
    for name, attribute in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
        count = getattr(usage, name, None)
        if isinstance(count, int) and count >= 0:
            setattr(found, attribute, count)


def _fault_in(found: Attempt) -> Fault | None:
    """Return what is wrong with an answer that came without an error."""
    if "".join(found.declined).strip():
        return refusal("".join(found.declined))
    if found.finish == "content_filter":
        return refusal("its content filter stopped it")
    if not found.began:
        return malformed("sent an empty answer")
    if not found.finish:
        return unreachable("broke off in the middle of an answer", cut=True)
    if found.answer.strip():
        return None
    if found.finish == "length":
        return malformed(
            "used its whole limit of output tokens before it said anything", again=False, cut=True
        )
    return malformed("sent an empty answer", cut=True)


def _with_output(fault: Fault, found: Attempt) -> Fault:
    return fault.model_copy(update={"output": "".join((*found.text, *found.hidden, *found.declined))})


def _first(choices: object) -> object | None:
    if isinstance(choices, list) and choices:
        return cast(object, choices[0])
    return None


def _words(holder: object, name: str) -> str:
    """Return a text, or the texts of a list of parts, as some servers send them."""
    value = getattr(holder, name, None)
    if not isinstance(value, list):
        return value if isinstance(value, str) else ""
    texts = [part.get("text") for part in value if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _string(holder: object, name: str) -> str:
    value = getattr(holder, name, None)
    return value if isinstance(value, str) else ""
