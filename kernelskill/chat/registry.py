"""The commands of the chat: found as modules of `commands`, looked up by unique prefixes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from kernelskill.chat import commands as command_modules
from kernelskill.chat.arguments import Argument, Option, Takes, Values
from kernelskill.chat.reply import Reply
from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.registry import near_names

if TYPE_CHECKING:
    from kernelskill.chat.context import ChatContext

Topic = Literal["measure", "search", "look", "steer", "keep", "chat"]
TOPICS: dict[Topic, str] = {
    "measure": "Task and measurements",
    "search": "Searching",
    "look": "Looking",
    "steer": "Steering",
    "keep": "Settings and results",
    "chat": "The chat",
}


@dataclass(frozen=True)
class Command:
    """One command. Help, completion and documentation are made from this."""

    name: str
    summary: str
    """One sentence."""
    topic: Topic
    run: Callable[[ChatContext, Values], Reply]
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    details: str = ""
    examples: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names, written whole; they are no part of help and completion."""

    @property
    def takes(self) -> Takes:
        """Its arguments and options."""
        return Takes(self.arguments, self.options)

    @property
    def usage(self) -> str:
        """One line that shows the form."""
        return self.takes.usage(self.name)


class Commands:
    """All commands, by name."""

    def __init__(self, found: Iterable[Command]) -> None:
        self._by_name = {command.name: command for command in sorted(found, key=lambda c: c.name)}
        self._aliases = {alias: command for command in self for alias in command.aliases}

    def __iter__(self) -> Iterator[Command]:
        return iter(self._by_name.values())

    @property
    def names(self) -> list[str]:
        """All names, sorted."""
        return list(self._by_name)

    def of_topic(self, topic: Topic) -> list[Command]:
        """Return the commands of one topic, sorted by name."""
        return [command for command in self if command.topic == topic]

    def matching(self, word: str) -> list[Command]:
        """Return the commands that a word may mean: the one of that name, or all that begin with it."""
        lowered = word.lower()
        exact = self._by_name.get(lowered) or self._aliases.get(lowered)
        if exact is not None:
            return [exact]
        return [command for command in self if lowered and command.name.startswith(lowered)]

    def find(self, word: str) -> Command:
        """Return the command of a name or unique prefix.

        Raises:
            UnknownNameError: None or several fit.
        """
        found = self.matching(word)
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownNameError(
                f"/{word} may be {_either([f'/{c.name}' for c in found])}", remedy="write one more letter"
            )
        near = near_names(word, self.names)
        remedy = (
            f"did you mean {_either([f'/{name}' for name in near])}?" if near else "/help lists the commands"
        )
        raise UnknownNameError(f"no command is called {word!r}", remedy=remedy)


@cache
def all_commands() -> Commands:
    """Return every command there is a module for.

    Raises:
        UsageError: A module holds no command, or one of another name.
    """
    found = []
    for module in pkgutil.iter_modules(command_modules.__path__):
        loaded = importlib.import_module(f"{command_modules.__name__}.{module.name}")
        command = getattr(loaded, "COMMAND", None)
        if not isinstance(command, Command) or module.name != command.name:
            raise UsageError(
                f"{module.name!r} of the chat's commands holds no command of its name",
                remedy="a module NAME.py defines COMMAND = Command('NAME', ...)",
            )
        found.append(command)
    return Commands(found)


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
