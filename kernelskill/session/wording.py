"""Read a wish in plain words: what is to be done with what. What is not understood is handed back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from kernelskill.schema.steering import Action
from kernelskill.session.clauses import Clause, Item, clauses_of, items_of
from kernelskill.session.vocabulary import Topic, Vocabulary, stems

_MOST = 4000
"""Characters that are read."""
_WRAPPED = 50
"""Characters from which on a line goes on in the next one."""
_BULLETS = ("-", "*", "\u2022")
_UNITS = {"kb", "kib", "mb", "mib", "b", "byte", "bytes", "ms", "us", "s", "percent", "%", "gb"}
_BINDING = ("ban", "only", "at_most", "at_least", "exactly", "allow")
_RANGES = ("at_most", "at_least", "exactly", "below", "above")


@dataclass(frozen=True)
class Wish:
    """One thing that was understood."""

    action: Action
    topics: tuple[Topic, ...]
    kernels: tuple[str, ...] = ()
    """Where it holds; empty: everywhere."""
    value: str = ""


@dataclass(frozen=True)
class Reading:
    """What a text amounts to."""

    wishes: tuple[Wish, ...]
    unknown: tuple[str, ...]
    """The parts that were not understood, as they were written."""


def read_wish(text: str, vocabulary: Vocabulary) -> Reading:
    """Return what is wished for; the end of a line ends a wish, but where a long line was wrapped."""
    text = _unwrapped(text[:_MOST])
    wishes: list[Wish] = []
    unknown: list[str] = []
    before: _Done | None = None
    clauses = list(clauses_of(items_of(text, vocabulary)))
    for position, clause in enumerate(clauses):
        following = clauses[position + 1] if position + 1 < len(clauses) else None
        done = _read(clause, before, following, vocabulary)
        if done.alternative and wishes and wishes[-1].action == "exactly":
            wishes[-1] = replace(wishes[-1], value=f"{wishes[-1].value}|{done.alternative}")
        elif done.alternative and wishes and wishes[-1].value and before is not None:
            wishes.pop()  # at most this or that: which one is meant nobody can say
            unknown += [before.text, *done.unknown]
        else:
            wishes += done.wishes
            unknown += done.unknown
        before = done
    return Reading(tuple(_joined(wishes)), tuple(dict.fromkeys(part for part in unknown if part.strip())))


def _unwrapped(text: str) -> str:
    """Return lines as one, with a full stop where one ends that was not wrapped."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    joined = "".join(
        f"{line} " if len(line) >= _WRAPPED and not following.startswith(_BULLETS) else f"{line} ; "
        for line, following in pairwise(lines)
    )
    return joined + lines[-1] if lines else ""


def _joined(wishes: Sequence[Wish]) -> list[Wish]:
    """Return wishes with one `only` for all that were uttered together: a later one would replace it."""
    joined: list[Wish] = []
    for wish in wishes:
        alike = next(
            (w for w in joined if w.action == "only" == wish.action and _kind(w) == _kind(wish)), None
        )
        if alike is None:
            joined.append(wish)
        else:
            both = Wish("only", (*alike.topics, *wish.topics), alike.kernels)
            joined[joined.index(alike)] = both
    return joined


def _kind(wish: Wish) -> tuple[bool, tuple[str, ...]]:
    return any(topic.kernels for topic in wish.topics), wish.kernels


@dataclass(frozen=True)
class _Done:
    """A clause that was read."""

    wishes: tuple[Wish, ...] = ()
    unknown: tuple[str, ...] = ()
    action: str = ""
    """What the next clause inherits."""
    kernels: tuple[str, ...] = ()
    """Where the rest of the sentence holds."""
    alternative: str = ""
    """Another value of the clause before."""
    text: str = ""
    topics: tuple[Topic, ...] = ()


@dataclass
class _Parts:
    """A clause sorted by what its items are."""

    actions: list[str] = field(default_factory=list)
    is_negated: bool = False
    topics: list[Topic] = field(default_factory=list)
    others: list[Topic] = field(default_factory=list)
    """Behind an `instead of`."""
    has_others: bool = False
    has_preferred: bool = False
    """Whether the word itself stands there: `prefer this to that`."""
    kernels: list[str] = field(default_factory=list)
    ranges: list[tuple[str, str]] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    pending: str = ""
    leftover: list[str] = field(default_factory=list)
    cures: bool = False
    is_conditional: bool = False


def _read(clause: Clause, before: _Done | None, following: Clause | None, vocabulary: Vocabulary) -> _Done:
    parts = _sorted(clause, vocabulary)
    if parts.is_conditional:
        return _Done(unknown=(clause.text,))
    action = _action(parts, clause, vocabulary)
    inherited = before.action if before and not clause.begins else ""
    if not clause.begins and before is not None and before.kernels:
        parts.kernels += [kernel for kernel in before.kernels if kernel not in parts.kernels]
    if _is_place(parts, clause, action):
        return _Done(kernels=tuple(parts.kernels))
    if not parts.topics and before is not None and _goes_on(parts, clause):
        parts.topics = list(before.topics)  # `at least 64 threads and at most 256`
    if not (parts.topics or parts.kernels):
        return _without_topic(parts, clause, following, action, inherited)
    if not action:
        action = _turned(inherited, clause) or _trailing(following, vocabulary)
    problem = parts.is_negated and any(
        name in ("larger", "smaller", "later", "only") for name in parts.actions
    )
    if not action or (problem and not parts.ranges):
        return _Done(unknown=(clause.text,))
    wishes = _wishes(action, parts, clause)
    if wishes is not None and parts.others:
        wishes.append(Wish("later", tuple(parts.others), tuple(parts.kernels)))
    # A constraint of which a part is not understood may be another one altogether.
    is_binding = wishes is not None and any(wish.action in _BINDING for wish in wishes)
    if wishes is None or (is_binding and parts.leftover):
        return _Done(unknown=(clause.text,))
    scope = before.kernels if before is not None and not clause.begins else ()
    return _Done(
        tuple(wishes),
        tuple(parts.leftover),
        action=action,
        kernels=scope,
        text=clause.text,
        topics=tuple(parts.topics),
    )


def _goes_on(parts: _Parts, clause: Clause) -> bool:
    """Return whether a clause is another limit of what the one before spoke of."""
    limits = bool(parts.ranges) and all(kind != "exactly" for kind, _ in parts.ranges)
    return limits and not (clause.begins or parts.leftover or parts.kernels)


def _without_topic(
    parts: _Parts, clause: Clause, following: Clause | None, action: str, inherited: str
) -> _Done:
    """Return what a clause amounts to that names nothing: an action for the next one, or another value."""
    odd = bool(parts.leftover or parts.numbers)
    if not clause.begins and len(parts.ranges) == 1 and not (odd or parts.actions):
        kind, value = parts.ranges[0]
        alternative = value if kind == "exactly" else ""
        return _Done(action=inherited, alternative=alternative, unknown=(clause.text,))
    odd = odd or bool(parts.ranges)
    # `first, registers` is cut in two by a comma; an action alone goes on to the next clause.
    if action and not odd and following is not None and not following.begins:
        return _Done(action=action)
    is_said = odd or bool(parts.actions)
    return _Done(unknown=(clause.text,) if is_said else (), action="" if is_said else inherited)


def _is_place(parts: _Parts, clause: Clause, action: str) -> bool:
    """Return whether a clause only says where the next ones hold: `in kernel foo, ...`."""
    kinds = [item.meaning.kind for item in clause.items if item.meaning is not None]
    silent = not (action or parts.topics or parts.leftover or parts.ranges)
    return silent and bool(parts.kernels) and "place" in kinds


def _wishes(action: str, parts: _Parts, clause: Clause) -> list[Wish] | None:
    """Return what a clause asks for; None where it asks for what cannot be."""
    topics, kernels = tuple(parts.topics), tuple(parts.kernels)
    with_parameters = tuple(topic for topic in topics if topic.parameters)
    if action in ("range", "larger", "smaller") and not with_parameters:
        if action == "range" or not topics:
            return None
        action = "prefer" if action == "larger" else "later"
    if action == "range":
        if sum(kind == "exactly" for kind, _ in parts.ranges) > 1:
            return None
        narrowed = _narrowed(with_parameters, topics)
        return [
            Wish(_range_action(kind), narrowed, kernels, _limit(kind, value)) for kind, value in parts.ranges
        ]
    if action in ("larger", "smaller"):
        return [Wish(_as_action(action), _narrowed(with_parameters, topics), kernels)]
    if action == "nothing":
        return None
    if not topics:
        names = tuple(Topic(name=f"the kernel {name}", kernels=(name,)) for name in kernels)
        return [Wish(_as_action(action), names, value=_place(action, clause))]
    problems = tuple(topic for topic in topics if topic.limits)
    if problems and parts.cures and action in ("ban", "less", "smaller", "prefer"):
        return [Wish("prefer", problems, kernels, _place("prefer", clause))]
    return [Wish(_as_action(action), topics, kernels, _place(action, clause))]


def _narrowed(topics: tuple[Topic, ...], all_topics: tuple[Topic, ...]) -> tuple[Topic, ...]:
    """Return topics with parameters, within the skills of those without: `tiles of tensor cores`."""
    others = {skill for topic in all_topics if topic not in topics for skill in topic.skills}
    if not others:
        return topics
    return tuple(
        Topic(
            name=topic.name,
            skills=tuple(sorted(others)),
            parameters=topic.parameters,
            measure=topic.measure,
        )
        for topic in topics
    )


def _action(parts: _Parts, clause: Clause, vocabulary: Vocabulary) -> str:
    """Return the action of a clause: the most particular one of its words."""
    names = set(parts.actions)
    has_parameters = any(topic.parameters for topic in parts.topics)
    if parts.ranges:
        return "range"
    for more, particular, general in (("more", "larger", "prefer"), ("less", "smaller", "later")):
        if more in names and not parts.topics:
            return "nothing"
        if more in names:
            names.discard(more)
            names.add(particular if has_parameters else general)
    negated = parts.is_negated
    for name in ("only", "later", "larger", "smaller", "ban", "prefer", "allow"):
        if name not in names:
            continue
        if negated and name in ("prefer", "allow"):
            return "ban"
        if negated and name == "ban":
            return "allow"
        return name
    return "ban" if negated else _implied(parts, clause)


def _implied(parts: _Parts, clause: Clause) -> str:
    """Return the action of a clause that names none: `unroll the loop`."""
    first = next((item for item in clause.items if item.meaning and item.meaning.kind != "filler"), None)
    if first is not None and first.meaning is not None and first.meaning.topic is not None:
        verbs = {stems(verb) for verb in first.meaning.topic.verbs}
        raw = first.written.lower().split()[0]
        if (first.words in verbs or first.words[:1] in verbs) and not raw.endswith(("ing", "s")):
            return "prefer"
    asks = any(item.written in ("please", "pls") for item in clause.items) and not parts.leftover
    cured = parts.cures and any(topic.limits for topic in parts.topics)
    return "prefer" if cured or (asks and parts.topics) else ""


def _sorted(clause: Clause, vocabulary: Vocabulary) -> _Parts:
    parts = _Parts()
    problem = any(i.meaning and i.meaning.topic and i.meaning.topic.limits for i in clause.items)
    for position, item in enumerate(clause.items):
        if problem and item.words in vocabulary.cures:
            parts.cures = True
            if item.meaning is not None and item.meaning.kind == "topic":
                continue
        _sort(item, clause.items[position + 1 :], parts)
    _pair(parts)
    return parts


def _sort(item: Item, rest: Sequence[Item], parts: _Parts) -> None:
    meaning = item.meaning
    if meaning is None:
        _sort_word(item, parts)
    elif meaning.kind == "condition":
        parts.is_conditional = True
    elif meaning.action == "not":
        parts.is_negated = not parts.is_negated
    elif (
        (item.written == "to" and parts.has_preferred and parts.topics and _leads_to_topic(rest))
        or meaning.action == "instead"
        or (meaning.action == "above" and parts.topics and _leads_to_topic(rest))
    ):
        parts.has_others = True
    elif meaning.action in _RANGES:
        parts.pending = meaning.action
        if parts.numbers:
            parts.ranges.append((parts.pending, parts.numbers.pop()))
            parts.pending = ""
    elif meaning.kind == "action":
        parts.actions.append(meaning.action)
        parts.has_preferred = parts.has_preferred or item.written.startswith("prefer")
    elif meaning.topic is not None:
        _sort_topic(meaning.topic, parts)


def _sort_topic(topic: Topic, parts: _Parts) -> None:
    if topic.kernels:
        parts.kernels += topic.kernels
    elif parts.has_others:
        parts.others.append(topic)
    elif topic not in parts.topics:
        parts.topics.append(topic)


def _leads_to_topic(rest: Sequence[Item]) -> bool:
    """Return whether a topic comes next: `float4 over shared memory`."""
    known = [item for item in rest if item.meaning is None or item.meaning.kind != "filler"]
    return bool(known) and known[0].meaning is not None and known[0].meaning.kind == "topic"


def _sort_word(item: Item, parts: _Parts) -> None:
    if item.written[0].isdigit():
        if item.written.endswith("%") or "." in item.written:
            parts.leftover.append(item.written)
        elif parts.pending:
            parts.ranges.append((parts.pending, item.written))
            parts.pending = ""
        else:
            parts.numbers.append(item.written)
    elif any(character.isalnum() for character in item.written):
        if item.written.lower() in _UNITS:
            parts.is_conditional = True  # sizes in bytes and times are nothing that a rule can hold to
        parts.leftover.append(item.written)


def _pair(parts: _Parts) -> None:
    """Give numbers that stand alone their meaning, and turn round what was negated."""
    parts.ranges += [("exactly", number) for number in parts.numbers]
    parts.numbers = []
    refused = parts.is_negated or "ban" in parts.actions
    turned = {"above": "at_most", "below": "at_least"}
    if refused and any(kind in turned for kind, _ in parts.ranges):
        parts.ranges = [(turned.get(kind, kind), value) for kind, value in parts.ranges]
        parts.is_negated = False
    elif refused and parts.ranges:
        parts.is_conditional = True  # not exactly this value: there is no such rule


def _range_action(kind: str) -> Action:
    return {"below": "at_most", "above": "at_least"}.get(kind, kind)  # type: ignore[return-value]


def _limit(kind: str, value: str) -> str:
    """Return the limit itself: below 64 is at most 63."""
    if kind not in ("below", "above") or not value.isdecimal():
        return value
    return str(max(0, int(value) + (-1 if kind == "below" else 1)))


def _as_action(name: str) -> Action:
    return {"more": "prefer", "less": "later"}.get(name, name)  # type: ignore[return-value]


def _place(action: str, clause: Clause) -> str:
    return str(clause.place + 1) if action == "prefer" else ""


def _turned(inherited: str, clause: Clause) -> str:
    """Return what a clause without an action inherits; behind a `but` it is the contrary."""
    if clause.turns:
        return {"ban": "prefer", "prefer": "ban"}.get(inherited, inherited)
    return inherited if inherited not in ("range",) else ""


def _trailing(following: Clause | None, vocabulary: Vocabulary) -> str:
    """Return the action of the next clause where it stands behind its topic: `registers and tiles first`."""
    if following is None or following.begins:
        return ""
    parts = _sorted(following, vocabulary)
    kinds = [item.meaning.kind for item in following.items if item.meaning and item.meaning.kind != "filler"]
    if parts.is_negated or parts.ranges or not kinds or kinds[-1] != "action" or kinds[0] != "topic":
        return ""
    return _action(parts, following, vocabulary)
