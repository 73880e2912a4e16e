"""What a command takes: declared once, then parsed, completed, explained and documented from that."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, overload

from kernelskill.errors import UsageError
from kernelskill.registry import near_names

Kind = Literal["word", "number", "amount", "candidate", "skill", "command", "path", "choice", "text"]
"""`text` takes the rest of the line as it stands, quotes and all; it comes last."""


_FEW = 3
"""Choices of which none needs to be suggested: all are named."""


@dataclass(frozen=True)
class Argument:
    """One positional argument."""

    name: str
    help: str
    kind: Kind = "word"
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """One option; without a kind it is a switch."""

    name: str
    """With its dashes."""
    help: str
    kind: Kind | None = None
    choices: tuple[str, ...] = ()

    @property
    def metavar(self) -> str:
        """What stands for its value in a usage line."""
        return self.name.lstrip("-").upper()


@dataclass(frozen=True)
class Values:
    """The arguments of one call, checked."""

    given: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """Return an argument as it was given."""
        return self.given.get(name, default)

    def has(self, name: str) -> bool:
        """Return whether an argument, option or switch was given."""
        return name in self.given

    @overload
    def number(self, name: str) -> int | None: ...
    @overload
    def number(self, name: str, default: int) -> int: ...
    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a whole number, or the default where it was not given."""
        return int(self.given[name]) if name in self.given else default

    def path(self, name: str) -> Path | None:
        """Return a path, with `~` for the home folder, or None where it was not given."""
        return Path(self.given[name]).expanduser() if self.given.get(name) else None


@dataclass(frozen=True)
class Takes:
    """Everything that a command takes."""

    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()

    @property
    def free_text(self) -> bool:
        """Whether the rest of the line belongs to the command, whatever it is."""
        return any(argument.kind == "text" for argument in self.arguments)

    def usage(self, name: str) -> str:
        """Return one line that shows the form, for example `/diff [a] [b]`."""
        parts = [f"/{name}"]
        parts += [a.name if a.required else f"[{a.name}]" for a in self.arguments]
        for option in self.options:
            parts.append(f"[{option.name} {option.metavar}]" if option.kind else f"[{option.name}]")
        return " ".join(parts)

    def parse(self, command: str, rest: str) -> Values:
        """Check what stands behind a command.

        Raises:
            UsageError: It does not fit; the message says where.
        """
        words, text = _split(rest, self.options, free_text=self.free_text)
        given: dict[str, str] = {}
        positional: list[str] = []
        waiting = list(words)
        while waiting:
            word = waiting.pop(0)
            option = _option(word, self.options, command)
            if option is None:
                positional.append(word)
            elif option.kind is None:
                given[option.name] = ""
            else:
                given[option.name] = _value_of(option, word, waiting, command)
        given.update(self._positional(command, positional, text))
        return Values(given)

    def _positional(self, command: str, words: Sequence[str], text: str) -> dict[str, str]:
        remedy = f"{self.usage(command)}; see /help {command}"
        found: dict[str, str] = {}
        rest = list(words)
        for argument in self.arguments:
            value = text if argument.kind == "text" else (rest.pop(0) if rest else "")
            if value:
                found[argument.name] = checked(argument, value, command)
            elif argument.required:
                raise UsageError(f"/{command} needs {argument.name}: {argument.help}", remedy=remedy)
        if rest:
            raise UsageError(f"/{command} has no use for {rest[0]!r}", remedy=remedy)
        return found


def checked(what: Argument | Option, value: str, command: str) -> str:
    """Return a value, or refuse it.

    Raises:
        UsageError: It is not of the kind.
    """
    name = f"/{command}: {what.name}"
    if what.kind == "number" and not (value.isascii() and value.isdigit()):
        raise UsageError(f"{name} is {value!r}", remedy="give a whole number, 0 or more")
    if what.kind == "amount":
        _require_amount(name, value)
    if what.kind == "choice" and value not in what.choices:
        near = near_names(value, what.choices) if len(what.choices) > _FEW else []
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"{name} is {value!r}", remedy=f"{hint}give one of {', '.join(what.choices)}")
    return value


def _require_amount(name: str, value: str) -> None:
    try:
        fine = 0 <= float(value) < float("inf")
    except ValueError:
        fine = False
    if not fine:
        raise UsageError(f"{name} is {value!r}", remedy="give a number, for example 0.50")


def _split(rest: str, options: Sequence[Option], *, free_text: bool) -> tuple[list[str], str]:
    """Return the words of a line and its free text; only leading options are taken from free text."""
    if not free_text:
        return split_words(rest), ""
    words: list[str] = []
    text = rest.strip()
    known = {option.name: option for option in options}
    while text:
        first, _, remaining = text.partition(" ")
        option = known.get(first)
        if option is None:
            break
        words.append(first)
        text = remaining.lstrip()
        if option.kind is not None:
            value, _, text = text.partition(" ")
            words += [value] if value else []
    return words, text.strip()


def split_words(text: str) -> list[str]:
    """Return the words of a line; quotes and backslashes as a shell has them.

    Raises:
        UsageError: A quotation does not end.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(
            f"{text.strip()!r} cannot be read: {str(error).lower()}",
            remedy="close the quotation, or write a backslash before the quote",
        ) from None


def _option(word: str, options: Sequence[Option], command: str) -> Option | None:
    if not word.startswith("-") or word == "-" or _is_negative_number(word):
        return None
    name = word.partition("=")[0]
    names = {option.name: option for option in options}
    if name in names:
        return names[name]
    fitting = [full for full in names if full.startswith(name) and len(name) > len("--")]
    if len(fitting) == 1:
        return names[fitting[0]]
    near = fitting or near_names(name, names)
    known = f"it takes {', '.join(names)}" if names else "it takes no options"
    remedy = f"did you mean {' or '.join(near)}?" if near else f"{known}; see /help {command}"
    raise UsageError(f"/{command} has no option {name!r}", remedy=remedy)


def _is_negative_number(word: str) -> bool:
    return word[1:2].isdigit()


def _value_of(option: Option, word: str, waiting: list[str], command: str) -> str:
    _, equals, value = word.partition("=")
    if not equals:
        if not waiting:
            raise UsageError(
                f"{option.name} of /{command} needs a value",
                remedy=f"{option.name} {option.metavar}: {option.help}",
            )
        value = waiting.pop(0)
    return checked(option, value, command)
