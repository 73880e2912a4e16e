"""Vocabulary: which words mean what when somebody steers a run. The words are data; a run adds its own names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kernelskill.schema.proposal import Skill

_FILE = Path(__file__).with_name("vocabulary.toml")
_PLAIN = re.compile(r"[a-z]+")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_LEAST_STEM = 3
Words = tuple[str, ...]
"""A phrase as the stems of its words."""

Kind = Literal[
    "topic", "action", "filler", "separator", "end", "then", "condition", "place", "kernel", "expert"
]


@dataclass(frozen=True)
class Topic:
    """Something that can be steered."""

    name: str
    skills: tuple[str, ...] = ()
    """Ids."""
    parameters: tuple[str, ...] = ()
    measure: Literal["side", "product"] = "side"
    source: tuple[str, ...] = ()
    """Words of a source that show it."""
    verbs: tuple[str, ...] = ()
    own: bool = False
    """Whether its parameters count in its own skills alone."""
    kernels: tuple[str, ...] = ()
    specialists: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    """Of a problem: to avoid it means to prefer its skills, whose triggers name one of them."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Meaning:
    """What a phrase stands for; a phrase can be a topic and an action at once."""

    kind: Kind
    action: str = ""
    topic: Topic | None = None


@dataclass(frozen=True)
class Vocabulary:
    """All phrases."""

    topics: tuple[Topic, ...]
    phrases: dict[Words, Meaning]
    cures: frozenset[Words]
    questions: tuple[str, ...]
    polite: tuple[str, ...]
    longest: int
    names: dict[str, Topic] = field(default_factory=dict)
    """Kernels and skills, which are taken as they are written; lower case."""

    def topic(self, name: str) -> Topic | None:
        """Return what a whole name means: a skill, a kernel, a specialist, or a topic by any of its words."""
        exact = self.names.get(name.strip().lower())
        if exact is not None:
            return exact
        found = self.phrases.get(stems(name))
        return found.topic if found is not None else None

    def spellings(self) -> list[str]:
        """Return everything that can be spoken of, for suggestions."""
        words = [word for topic in self.topics for word in (topic.name, *topic.words)]
        return list(dict.fromkeys([*words, *(topic.name for topic in self.names.values())]))


def stems(text: str) -> Words:
    """Return the stems of a phrase's words."""
    return tuple(stem(word) for word in re.findall(r"[\w]+|[^\w\s-]+", text.lower()))


def stem(word: str) -> str:
    """Return a word without plural and endings; for comparing only."""
    if len(word) <= _LEAST_STEM or not _PLAIN.fullmatch(word):
        return word
    short = word
    for ending in _ENDINGS:
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= _LEAST_STEM:
            short = word[: -len(ending)]
            break
    if short[-1] == short[-2]:
        short = short[:-1]
    return short[:-1] + "i" if short.endswith("y") else short


def vocabulary_of(skills: Sequence[Skill], kernels: Iterable[str]) -> Vocabulary:
    """Return the words of a run.

    Args:
        skills: All that the library holds.
        kernels: Names of the task's kernels.
    """
    document = _document()
    topics = (*_topics(document, skills), *_problems(document, skills), *_specialists(document, skills))
    phrases: dict[Words, Meaning] = {}
    for words, meaning in _small(document):
        phrases.setdefault(words, meaning)
    for topic in topics:
        for word in topic.words:
            phrases.setdefault(stems(word), Meaning("topic", topic=topic))
    names = {kernel.lower(): Topic(name=f"the kernel {kernel}", kernels=(kernel,)) for kernel in kernels}
    for skill in skills:
        short = skill.id.rsplit("/", 1)[-1]
        topic = Topic(name=short, skills=(skill.id,), parameters=tuple(p.name for p in skill.parameters))
        names[skill.id.lower()] = topic
        names.setdefault(short.lower(), topic)
        phrases.setdefault(stems(short.replace("_", " ")), Meaning("topic", topic=topic))
    for phrase in document["action"]["cure"]:
        phrases.setdefault(stems(phrase), Meaning("filler"))
    return Vocabulary(
        topics=topics,
        phrases=phrases,
        cures=frozenset(stems(word) for word in document["action"]["cure"]),
        questions=tuple(document["small"]["questions"]),
        polite=tuple(document["small"]["polite"]),
        longest=max(len(words) for words in phrases),
        names=names,
    )


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _topics(document: dict[str, Any], skills: Sequence[Skill]) -> Iterator[Topic]:
    for entry in document["topic"]:
        ids = [s.id for s in skills if any(fnmatchcase(s.id, pattern) for pattern in entry["skills"])]
        yield Topic(
            name=entry["name"],
            skills=tuple(ids),
            parameters=tuple(entry.get("parameters", ())),
            measure=entry.get("measure", "side"),
            source=tuple(entry.get("source", ())),
            verbs=tuple(entry.get("verbs", ())),
            own=entry.get("own", False),
            specialists=tuple(dict.fromkeys(s.specialist for s in skills)) if entry.get("whole") else (),
            words=(*entry["words"], *entry.get("verbs", ())),
        )


def _problems(document: dict[str, Any], skills: Sequence[Skill]) -> Iterator[Topic]:
    for entry in document["problem"]:
        named = entry.get("skills", ())
        ids = [skill.id for skill in skills if skill.id in named] or [
            skill.id for skill in skills if {t.value for t in skill.triggers} & set(entry["limits"])
        ]
        yield Topic(
            name=entry["name"],
            skills=tuple(ids),
            limits=tuple(entry["limits"]),
            words=tuple(entry["words"]),
        )


def _specialists(document: dict[str, Any], skills: Sequence[Skill]) -> Iterator[Topic]:
    words = document["small"]["specialist"]
    for name in dict.fromkeys(skill.specialist for skill in skills):
        ids = tuple(skill.id for skill in skills if skill.specialist == name)
        named = [name, *(f"{name} {word}" for word in words)]
        yield Topic(name=f"the {name} specialist", skills=ids, specialists=(name,), words=tuple(named))


def _small(document: dict[str, Any]) -> Iterator[tuple[Words, Meaning]]:
    for action, phrases in document["action"].items():
        if action != "cure":
            for phrase in phrases:
                yield stems(phrase), Meaning("action", action=action)
    kinds: dict[str, Kind] = {
        "separators": "separator",
        "ends": "end",
        "then": "then",
        "conditions": "condition",
        "places": "place",
        "kernel": "kernel",
        "filler": "filler",
    }
    for name, kind in kinds.items():
        for phrase in document["small"][name]:
            yield stems(phrase) or (phrase,), Meaning(kind)
