"""Shorter names in a kernel's text: `j_2` is `j` where no other `j` is meant or seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelskill.source.masking import Lexeme, lexemes

_NUMBERED = re.compile(r"([A-Za-z]\w*?)(?:_\d+)+\Z")


@dataclass(frozen=True)
class _Scope:
    """A block, or a `for` with its head."""

    start: int
    end: int
    """Positions in the list of lexemes."""
    parent: int

    def holds(self, position: int) -> bool:
        """Whether a lexeme lies in it."""
        return self.start <= position < self.end


@dataclass(frozen=True)
class _Name:
    """A variable: where it is written, and the scope in which it is declared."""

    text: str
    scope: int
    places: tuple[int, ...]


def tidied(kernel: str, reserved: Iterable[str]) -> str:
    """Return a kernel's text with numbers of names left out where the plain name is free.

    Every name is declared before it is used, and twice only in blocks that do not hold each other. A name
    is changed where the plain one occurs neither in its scope nor, as a declaration, round it.

    Args:
        kernel: The text, without preprocessor macros of its own.
        reserved: Names that mean something outside of the kernel, and those that must stay.
    """
    data = kernel.encode()
    words = [each for each in lexemes(data) if each.kind != "comment"]
    texts = [data[each.start : each.end].decode() for each in words]
    scopes = _scopes(texts)
    names = _names(words, texts, scopes)
    taken = set(reserved)
    changed: dict[int, str] = {}
    for position, name in enumerate(names):
        found = _NUMBERED.match(name.text)
        if found is None or name.text in taken or found.group(1) in taken:
            continue
        plain = found.group(1)
        if _is_free(plain, name, names, scopes):
            names[position] = _Name(plain, name.scope, name.places)
            changed.update(dict.fromkeys(name.places, plain))
    return _replaced(data, words, changed)


def _replaced(data: bytes, words: Sequence[Lexeme], changed: dict[int, str]) -> str:
    parts, at = [], 0
    for place in sorted(changed):
        parts += [data[at : words[place].start], changed[place].encode()]
        at = words[place].end
    return b"".join([*parts, data[at:]]).decode()


def _is_free(plain: str, name: _Name, names: Sequence[_Name], scopes: Sequence[_Scope]) -> bool:
    """Whether a plain name means nothing else in or round the scope of a variable."""
    own = scopes[name.scope]
    round_it = _ancestors(name.scope, scopes)
    return not any(
        other.text == plain and (other.scope in round_it or any(own.holds(place) for place in other.places))
        for other in names
    )


def _ancestors(scope: int, scopes: Sequence[_Scope]) -> set[int]:
    found = set()
    while scope >= 0:
        found.add(scope)
        scope = scopes[scope].parent
    return found


def _scopes(texts: Sequence[str]) -> list[_Scope]:
    """Return the scopes, the whole text first, outer ones before inner ones."""
    ends = _closing(texts)
    found = [_Scope(0, len(texts), -1)]
    open_scopes = [0]
    for position, text in enumerate(texts):
        while position >= found[open_scopes[-1]].end:
            open_scopes.pop()
        end = -1
        if text == "{":
            end = ends[position] + 1
        elif text == "for":
            end = _end_of_statement(texts, ends, position)
        if end >= 0:
            found.append(_Scope(position, end, open_scopes[-1]))
            open_scopes.append(len(found) - 1)
    return found


def _closing(texts: Sequence[str]) -> dict[int, int]:
    """Return where each bracket is closed."""
    found: dict[int, int] = {}
    stack: list[int] = []
    for position, text in enumerate(texts):
        if text in ("(", "{", "["):
            stack.append(position)
        elif text in (")", "}", "]") and stack:
            found[stack.pop()] = position
    return {position: found.get(position, len(texts) - 1) for position in [*found, *stack]}


def _end_of_statement(texts: Sequence[str], ends: dict[int, int], loop: int) -> int:
    """Return where a `for` ends: behind its block, or behind the statement that it repeats."""
    position = ends.get(loop + 1, len(texts) - 1) + 1
    while position < len(texts):
        text = texts[position]
        if text == "{":
            return ends[position] + 1
        if text == ";":
            return position + 1
        position = ends[position] + 1 if text in ("(", "[") else position + 1
    return len(texts)


def _names(words: Sequence[Lexeme], texts: Sequence[str], scopes: Sequence[_Scope]) -> list[_Name]:
    """Return the variables: a name that is met outside of the scope where it was met first is another one."""
    places: dict[str, list[list[int]]] = {}
    owners: dict[tuple[str, int], int] = {}
    inner = _innermost(len(texts), scopes)
    for position, text in enumerate(texts):
        if words[position].kind != "word" or (position and texts[position - 1] == "."):
            continue
        groups = places.setdefault(text, [])
        if not groups or not scopes[owners[text, len(groups) - 1]].holds(position):
            groups.append([])
            owners[text, len(groups) - 1] = inner[position]
        groups[-1].append(position)
    return [
        _Name(text, owners[text, number], tuple(group))
        for text, groups in places.items()
        for number, group in enumerate(groups)
    ]


def _innermost(count: int, scopes: Sequence[_Scope]) -> list[int]:
    """Return the innermost scope of every lexeme."""
    found = [0] * count
    for number, scope in enumerate(scopes):
        found[scope.start : scope.end] = [number] * (scope.end - scope.start)
    return found
