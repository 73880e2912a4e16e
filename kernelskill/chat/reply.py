"""What a command answers: a record for programs and blocks for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from kernelskill.schema.base import Record

Tone = Literal["good", "bad", "dim", "head", "plain"]


@dataclass(frozen=True)
class Say:
    """One line, wrapped where the terminal is narrow."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Rows:
    """A table; where it is wider than the terminal every row becomes a block of its own."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: tuple[Tone, ...] = ()
    """One a row, where rows differ."""
    plain: bool = False
    """Whether cells speak for themselves: a narrow terminal shows them without their titles."""


@dataclass(frozen=True)
class Code:
    """Text in a language: `cuda`, `diff`, `text` or `markdown`."""

    text: str
    language: Literal["cuda", "diff", "text", "markdown"] = "text"


Block = Say | Rows | Code


class Text(Record):
    """The record of an answer that is nothing but text."""

    text: str


@dataclass(frozen=True)
class Reply:
    """The answer of one command."""

    record: BaseModel | None
    blocks: tuple[Block, ...]
    failed: bool = False
    """Whether the command was carried out and its answer is no: a wrong kernel, a refused change."""
    leaves: bool = False
    """Whether the chat ends with it."""


def reply(record: BaseModel | None, *blocks: Block, failed: bool = False) -> Reply:
    """Return an answer."""
    return Reply(record, blocks, failed)


def said(*texts: str, tone: Tone = "plain", failed: bool = False) -> Reply:
    """Return an answer that is a few lines."""
    return Reply(Text(text="\n".join(texts)), tuple(Say(text, tone) for text in texts), failed)


def rows(
    titles: Sequence[str],
    lines: Iterable[Sequence[str]],
    tones: Sequence[Tone] = (),
    *,
    plain: bool = False,
) -> Rows:
    """Return a table."""
    return Rows(tuple(titles), tuple(tuple(line) for line in lines), tuple(tones), plain)
