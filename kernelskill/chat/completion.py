"""What Tab offers: commands, then whatever the command at hand takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from kernelskill.chat.arguments import Kind
from kernelskill.chat.registry import Command, Commands

Names = Callable[[Kind], Iterable[tuple[str, str]]]
"""Names of a kind (`candidate`, `skill`), each with what it is."""


class ChatCompleter(Completer):
    """Completes a line of the chat."""

    def __init__(self, commands: Commands, names: Names, folder: Path) -> None:
        self._commands = commands
        self._names = names
        self._paths = PathCompleter(expanduser=True, get_paths=lambda: [str(folder)])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Offer what may stand at the cursor."""
        text = document.text_before_cursor.lstrip()
        word = "" if not text or text[-1].isspace() else text.split()[-1]
        first, _, rest = text.removeprefix("/").partition(" ")
        if word.startswith("@"):
            yield from self._path(word[1:], complete_event)
        elif text.startswith("!"):
            yield from self._path(word.removeprefix("!"), complete_event)
        elif " " not in text:
            yield from self._command(text)
        elif len(found := self._commands.matching(first)) == 1:
            yield from self._argument(found[0], rest, word, complete_event)

    def _command(self, text: str) -> Iterator[Completion]:
        slash = "/" if text.startswith("/") or not text else ""
        written = text.removeprefix("/").lower()
        for command in self._commands:
            if command.name.startswith(written):
                yield Completion(
                    slash + command.name, -len(text), display=f"/{command.name}", display_meta=command.summary
                )

    def _argument(self, command: Command, rest: str, word: str, event: CompleteEvent) -> Iterator[Completion]:
        before = rest[: len(rest) - len(word)].split()
        options = {option.name: option for option in command.options}
        if word.startswith("-"):
            for option in [*options.values()]:
                if option.name.startswith(word) and option.name not in before:
                    yield Completion(option.name, -len(word), display_meta=option.help)
            return
        last = options.get(before[-1]) if before else None
        if last is not None and last.kind is not None:
            yield from self._of_kind(last.kind, last.choices, word, event)
            return
        number = sum(not part.startswith("-") for part in before)
        arguments = command.arguments
        if arguments:
            argument = arguments[min(number, len(arguments) - 1)]
            if number < len(arguments) or argument.kind == "text":
                yield from self._of_kind(argument.kind, argument.choices, word, event)

    def _of_kind(
        self, kind: Kind, choices: tuple[str, ...], word: str, event: CompleteEvent
    ) -> Iterator[Completion]:
        if kind == "path":
            yield from self._path(word, event)
            return
        offered = [(choice, "") for choice in choices]
        if kind == "command":
            offered += [(command.name, command.summary) for command in self._commands]
        elif kind in ("candidate", "skill", "text"):
            offered += list(self._names(kind))
        for name, what in offered:
            if _fits(name, word):
                yield Completion(name, -len(word), display_meta=what)

    def _path(self, written: str, event: CompleteEvent) -> Iterator[Completion]:
        yield from self._paths.get_completions(Document(written), event)


def _fits(name: str, word: str) -> bool:
    """Return whether a name begins with a word, or its part after the slash does."""
    lowered = word.lower()
    return name.lower().startswith(lowered) or name.rpartition("/")[2].lower().startswith(lowered)
