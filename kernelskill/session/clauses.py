"""Clauses: a text as words that stand for something, cut where one wish ends and the next begins."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelskill.session.vocabulary import Meaning, Topic, Vocabulary, Words, stem

_SHORT = {
    "dont": "do not",
    "doesnt": "does not",
    "cant": "can not",
    "wont": "will not",
    "shouldnt": "should not",
}
_TOKEN = re.compile(r"\d+(?:x\d+)*(?![\w.])|\d+(?:\.\d+)?%?|[^\W\d]\w*(?:/\w+)*|<=|>=|==|=<|=>|[^\s\w]|\w+")
_PAIR = re.compile(r"(?<=\d)\s*[x\u00d7*]\s*(?=\d)")
_TIMES = re.compile(r"\b(\d+)x(?!\w)")
_BETWEEN = re.compile(r"\bbetween\s+(\d+)\s+and\s+(\d+)")
_FROM_TO = re.compile(r"(?:\bfrom\s+)?(?<![\w.])(\d+)\s+(?:up\s+)?to\s+(\d+)(?![\w.])")


@dataclass(frozen=True)
class Item:
    """Some words that stand for something."""

    words: Words
    written: str
    meaning: Meaning | None
    """None: unknown."""


@dataclass
class Clause:
    """Items up to the next separator."""

    items: list[Item] = field(default_factory=list)
    place: int = 0
    """How many `then` stood before it in its sentence."""
    begins: bool = True
    """Whether it stands for itself."""
    turns: bool = False
    """Whether a `but` stands before it."""

    @property
    def text(self) -> str:
        """The words as they were written."""
        return " ".join(item.written for item in self.items)


def clauses_of(items: Sequence[Item]) -> Iterator[Clause]:
    """Yield what stands between separators."""
    clause = Clause()
    place = 0
    for item in items:
        kind = item.meaning.kind if item.meaning is not None else "filler"
        if kind not in ("separator", "end", "then"):
            clause.items.append(item)
            continue
        if clause.items:
            yield clause
            clause = Clause(begins=False)
        if kind == "then":
            place += 1
        elif kind == "end":
            place = 0
            clause.turns = item.written.lower() == "but"
            clause.begins = not clause.turns
        clause.place = place
    if clause.items:
        yield clause


def items_of(text: str, vocabulary: Vocabulary) -> list[Item]:
    """Return the words of a text with what they stand for."""
    written = [part for word in _TOKEN.findall(plain_text(text)) for part in _parts(word, vocabulary)]
    found: list[Item] = []
    position = 0
    while position < len(written):
        item, length = _item(written, position, vocabulary)
        position += length
        found.append(item)
    return _with_kernels(found, vocabulary)


def _parts(word: str, vocabulary: Vocabulary) -> list[str]:
    """Return a word, or its parts where a slash means `and`."""
    if "/" not in word or word in vocabulary.names or len(word) == 1:
        return [word]
    return re.findall(r"[^/]+|/", word)


def _item(written: Sequence[str], position: int, vocabulary: Vocabulary) -> tuple[Item, int]:
    word = written[position]
    for length in range(min(vocabulary.longest, len(written) - position), 0, -1):
        words = tuple(stem(part) for part in written[position : position + length])
        meaning = vocabulary.phrases.get(words)
        if meaning is not None:
            return Item(words, " ".join(written[position : position + length]), meaning), length
        named = vocabulary.names.get(word.lower()) if length == 1 else None
        if named is not None:
            return Item(words, word, Meaning("topic", topic=named)), 1
    return Item((stem(word),), word, None), 1


def _with_kernels(items: list[Item], vocabulary: Vocabulary) -> list[Item]:
    """Take the word beside `kernel` for a kernel's name, even where it means something else alone."""
    changed = list(items)
    for position, item in enumerate(items):
        if item.meaning is None or item.meaning.kind != "kernel":
            continue
        for beside in (position + 1, position - 1):
            if 0 <= beside < len(items):
                named = vocabulary.names.get(items[beside].written.lower())
                if named is not None and named.kernels:
                    changed[beside] = Item(
                        items[beside].words, items[beside].written, Meaning("topic", topic=named)
                    )
                    break
    return changed


def cleaned(text: str) -> str:
    """Return what somebody typed without what a terminal would obey and what cannot be written as UTF-8."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() or c.isspace() else " " for c in whole)


def _span(match: re.Match[str]) -> str:
    """Return a span as its two limits; one that goes downwards stays as it is."""
    low, high = match[1], match[2]
    return f">= {low} <= {high}" if int(low) <= int(high) else match[0]


def plain_text(text: str) -> str:
    """Return a text in lower case with its contractions written out."""
    plain = (
        unicodedata.normalize("NFKC", text)
        .lower()
        .replace("\u2019", "'")
        .replace("`", " ")
        .replace("\u2264", "<=")
    )
    plain = (
        plain.replace("\u2265", ">=")
        .replace('"', " ")
        .replace("can't", "can not")
        .replace("won't", "will not")
    )
    plain = re.sub(r"n't\b", " not", plain)
    plain = re.sub(r"'s\b", "", plain).replace("'", " ")
    plain = re.sub(r"\b(\w+)\b", lambda match: _SHORT.get(match[1], match[1]), plain)
    plain = _FROM_TO.sub(_span, _BETWEEN.sub(_span, plain))
    plain = re.sub(r"(?<=\w)[.](?=\w)", " ", plain)
    return _TIMES.sub(r"\1 ", _PAIR.sub("x", plain)).replace("-", " ")


def is_question(text: str, vocabulary: Vocabulary) -> bool:
    """Return whether a text asks something; a polite wish with a question mark is none."""
    plain = plain_text(text).strip()
    if any(plain.startswith(f"{word} ") for word in vocabulary.polite):
        return False
    if plain.startswith(("do not ", "what if we ")):
        return False
    if plain.rstrip().endswith(("?", "\uff1f", "\u061f")):
        return True
    return any(re.match(rf"{re.escape(word)}\b", plain) for word in vocabulary.questions)


def topics_in(text: str, vocabulary: Vocabulary) -> tuple[Topic, ...]:
    """Return what a text speaks of, whatever it says about it."""
    found = [item.meaning.topic for item in items_of(text, vocabulary) if item.meaning and item.meaning.topic]
    return tuple({topic.name: topic for topic in found}.values())
