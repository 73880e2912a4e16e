"""Sections of a prompt: lines with an importance, fenced as data, trimmed to a number of tokens by whole lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelskill.llm.tokens import estimate_text

Line = tuple[int, str]
"""Importance, more is kept longer; and the text."""

_RUNS = re.compile(r"`+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_MARGIN = 12
"""Tokens that a fence and a note about what was left out may take, a block."""


@dataclass(frozen=True)
class Block:
    """Some lines that belong together."""

    lines: tuple[Line, ...]
    title: str = ""
    """A line of ours above it."""
    fence: str | None = None
    """What stands behind the fence, for example `cuda`; None for text of ours that needs none."""


Section = tuple[Block, ...]


def words(text: str, *, importance: int = 9) -> Section:
    """Return a section of text of ours."""
    return (Block(tuple((importance, line) for line in text.splitlines())),)


def data(text: str, *, title: str = "", info: str = "text", importance: int = 5) -> Block:
    """Return a block of text that others wrote, fenced; its first lines are kept longest."""
    lines = text.replace("\r\n", "\n").split("\n")
    return Block(tuple((importance, _clean(line)) for line in lines), title=title, fence=info)


def numbered(text: str, importances: Sequence[int] = (), *, title: str = "", info: str = "cuda") -> Block:
    """Return a source with line numbers.

    Args:
        text: The source.
        importances: Of each line; empty where all are equal.
        title: A line above it.
        info: Language of the fence.
    """
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    width = len(str(len(lines)))
    shown = (f"{number:>{width}}| {_clean(line)}".rstrip() for number, line in enumerate(lines, 1))
    weights = importances if len(importances) == len(lines) else [5] * len(lines)
    return Block(tuple(zip(weights, shown, strict=True)), title=title, fence=info)


def fitted(section: Section, tokens: int) -> str:
    """Return a section's text within a number of tokens.

    The least important lines go first, of equal ones the last; a line is kept or left out as a whole.
    """
    places = [(b, i) for b, block in enumerate(section) for i in range(len(block.lines))]
    cost = {(b, i): estimate_text(section[b].lines[i][1] + "\n") for b, i in places}
    overhead = sum(_MARGIN + estimate_text(block.title) for block in section)
    total = sum(cost.values()) + overhead
    kept = set(places)
    for place in sorted(places, key=lambda place: (section[place[0]].lines[place[1]][0], *_last(place))):
        if total <= tokens:
            break
        kept.discard(place)
        total -= cost[place]
    parts = [_rendered(block, b, kept) for b, block in enumerate(section)]
    return "\n\n".join(part for part in parts if part)


def is_cut(section: Section, tokens: int) -> bool:
    """Return whether a section has to lose lines to fit."""
    whole = {(b, i) for b, block in enumerate(section) for i in range(len(block.lines))}
    return fitted(section, tokens) != "\n\n".join(
        part for part in (_rendered(block, b, whole) for b, block in enumerate(section)) if part
    )


def fence(text: str, info: str = "") -> str:
    """Return text in a fence that nothing in it can close."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{info}\n{text}\n{ticks}"


def one_line(text: str, limit: int = 300) -> str:
    """Return text of others as one line that no markup of ours is taken for."""
    flat = " ".join(_clean(text).split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def _last(place: tuple[int, int]) -> tuple[int, int]:
    return -place[0], -place[1]


def _rendered(block: Block, position: int, kept: Iterable[tuple[int, int]]) -> str:
    known = set(kept)
    shown: list[str] = []
    missing = 0
    for index, (_, text) in enumerate(block.lines):
        if (position, index) in known:
            shown += _omission(missing)
            shown.append(text)
            missing = 0
        else:
            missing += 1
    if not shown:
        return ""
    shown += _omission(missing)
    body = "\n".join(shown)
    if block.fence is not None:
        body = fence(body, block.fence)
    else:
        body = body.strip("\n")
    return f"{block.title}\n\n{body}" if block.title else body


def _omission(count: int) -> list[str]:
    return [f"... ({count} line{'s' if count != 1 else ''} left out)"] if count else []


def _clean(line: str) -> str:
    return _UNPRINTABLE.sub("?", line)
