"""What is asked of a language model and what comes back: records, and the protocol of every model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, Field

from kernelskill.schema.base import Record

FailureKind = Literal[
    "refusal", "bad_key", "context_overflow", "unknown_model", "budget", "unreachable", "server", "malformed"
]


def whole_characters(text: str) -> str:
    """Return a text in which halves of a surrogate pair are joined, and lone halves replaced.

    Servers that cut a stream between them send such halves, and bytes that are no UTF-8 are read as some.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


Text = Annotated[str, AfterValidator(whole_characters)]
"""Text that can be written as UTF-8."""


class Message(Record):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: Text


class ModelRequest(Record):
    """One question to a model, whole: the same request always has the same digest."""

    role: str
    """Who asks: the role of the prompt, for example `memory`."""
    messages: tuple[Message, ...] = Field(min_length=1)
    answer_schema: dict[str, Any] | None = None
    """JSON schema of the answer, for servers that can hold a model to it."""
    prompt_digest: str = ""
    """Hash of the prompt's file."""
    sample: int = Field(default=0, ge=0)
    """Tells several answers to one prompt apart."""
    temperature: float | None = Field(default=None, ge=0)
    """None: the server's own."""
    max_output_tokens: int = Field(default=8192, ge=1)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that is asked, as 64 hex digits."""
        return self.content_digest()


class Usage(Record):
    """What one answer, or several together, took."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    requests: int = Field(default=1, ge=0)
    """Calls that reached a server, those that were tried again included."""
    cost_usd: float | None = None
    """None: the model has no known price."""
    estimated: bool = False
    """Whether the tokens were counted by length because nobody reported them."""

    @property
    def tokens(self) -> int:
        """Tokens in and out together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return both together; an unknown cost makes the sum unknown, unless that side asked nothing."""
        costs = [part.cost_usd for part in (self, other) if part.requests or part.tokens]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            requests=self.requests + other.requests,
            cost_usd=sum(known) if len(known) == len(costs) else None,
            estimated=self.estimated or other.estimated,
        )


NO_USAGE = Usage(requests=0, cost_usd=0.0)


class ModelAnswer(Record):
    """What a model said."""

    request: str
    """Digest of the request."""
    model: str
    text: Text
    usage: Usage = Usage()
    truncated: bool = False
    """Whether the answer ended at its limit of tokens."""


class Pending(Record):
    """A request that was handed over and is not answered yet."""

    request: str
    where: str
    """File into which the answer goes."""
    note: str = ""
    """What is wrong with an answer that is there already."""


class ModelFailure(Record):
    """A request that got no answer, in one line that a user can act on."""

    request: str
    kind: FailureKind
    message: Text
    remedy: Text
    usage: Usage = NO_USAGE
    """What the attempts took although nothing came of them."""


Reply = ModelAnswer | Pending | ModelFailure


class Model(Protocol):
    """Answers requests. What a server does wrong is a `ModelFailure`, never an exception."""

    name: str

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        """Return one reply a request, in the order asked; several are under way at once where possible.

        Raises:
            KernelSkillError: Only for files of the user's own that cannot be read or written.
        """
