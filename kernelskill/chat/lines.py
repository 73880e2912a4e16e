"""What a line of input is: a command, a shell command, a message, or nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernelskill.chat.arguments import Values
from kernelskill.chat.registry import Command, Commands
from kernelskill.errors import UsageError

LARGEST_FILE = 256 * 1024
_FILE = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|(\S+))')
_ESCAPED = re.compile(r"(?:(?<=\s)|^)\\@")


@dataclass(frozen=True)
class Invocation:
    """A command with its arguments."""

    command: Command
    values: Values
    wants_help: bool = False


@dataclass(frozen=True)
class Shell:
    """A command for the shell."""

    text: str


@dataclass(frozen=True)
class Message:
    """Free text: a wish or a question."""

    text: str


Line = Invocation | Shell | Message


def read_line(text: str, commands: Commands, *, folder: Path) -> Line | None:
    """Say what a line is; None for an empty one or a comment.

    A line that begins with `/` is a command. Without the slash it is one where its first word names a
    command and the rest fits; anything else is a message.

    Args:
        text: What was typed, one line or several.
        commands: All there are.
        folder: Where the names of files begin.

    Raises:
        UsageError: It is a command and cannot be read, or names a file that cannot be read.
    """
    stripped = text.strip()
    if not stripped or (stripped.startswith("#") and "\n" not in stripped):
        return None
    if stripped.startswith("!"):
        return _shell(stripped)
    if stripped.startswith("/"):
        word, rest = _first_word(stripped[1:])
        return _invocation(commands.find(word), rest) if word else _only_a_slash()
    if stripped == "?":
        return Invocation(commands.find("help"), Values())
    found = _bare_command(stripped, commands)
    return found or Message(with_files(stripped, folder=folder))


def entries_of(text: str, commands: Commands) -> list[str]:
    """Return what was typed or pasted as entries: lines of which one is a command are entries each."""
    lines = [line for line in text.splitlines() if line.strip()]
    if text.lstrip().startswith("!") or not any(_names_command(line, commands) for line in lines[1:]):
        return [text]
    return lines


def _names_command(line: str, commands: Commands) -> bool:
    word, _ = _first_word(line.strip().removeprefix("/"))
    return line.lstrip().startswith("/") and bool(commands.matching(word))


def _shell(stripped: str) -> Shell:
    if not stripped[1:].strip():
        raise UsageError("no command stands behind the !", remedy="for example !nvidia-smi")
    return Shell(stripped[1:].strip())


def _only_a_slash() -> Line:
    raise UsageError("no command stands behind the /", remedy="/help lists the commands")


def _bare_command(stripped: str, commands: Commands) -> Invocation | None:
    """Return the command that a line without a slash means, if it means one."""
    word, rest = _first_word(stripped)
    found = commands.matching(word)
    several = "\n" in stripped
    if len(found) > 1 and (not rest or rest.isdigit()) and not several:
        commands.find(word)  # says which ones there are
    if len(found) != 1:
        return None
    command = found[0]
    whole = word.lower() == command.name
    if command.takes.free_text and rest and (several or not whole):
        return None  # `all loops` is no short form of `allow`
    try:
        return _invocation(command, rest)
    except UsageError:
        # One odd word behind a command is a slip; a sentence is a message.
        if whole and not several and (len(rest.split()) < 2 or rest.startswith("-")):
            raise
        return None


def _invocation(command: Command, rest: str) -> Invocation:
    if rest.strip() in ("--help", "-h") or (not command.takes.free_text and "--help" in rest.split()):
        return Invocation(command, Values(), wants_help=True)
    return Invocation(command, command.takes.parse(command.name, rest))


def _first_word(text: str) -> tuple[str, str]:
    parts = text.split(maxsplit=1)
    if not parts or text[0].isspace():
        return "", ""
    return parts[0], parts[1] if len(parts) > 1 else ""


def with_files(text: str, *, folder: Path) -> str:
    """Return a message with the text of every `@file` behind it; a backslash before it keeps a plain @.

    Raises:
        UsageError: A file cannot be read.
    """
    names = list(dict.fromkeys(quoted or plain for quoted, plain in _FILE.findall(text)))
    parts = [_ESCAPED.sub("@", text)]
    for written in names:
        name = _without_punctuation(written, folder)
        content = _file_text(folder / Path(name).expanduser(), name)
        parts.append(f"{name}:\n```\n{content.rstrip()}\n```")
    return "\n\n".join(parts)


def _without_punctuation(name: str, folder: Path) -> str:
    """Return the name without a comma or full stop that belongs to the sentence."""
    shorter = name.rstrip(",.;:!?)")
    whole = (folder / Path(name).expanduser()).exists()
    return shorter if shorter and not whole and (folder / Path(shorter).expanduser()).exists() else name


def _file_text(path: Path, name: str) -> str:
    remedy = "name a text file, or write \\@ for a plain @"
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                f"{name!r} is larger than {LARGEST_FILE // 1024} KiB", remedy="name a smaller file"
            )
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {name!r}: {error.strerror}", remedy=remedy) from None
    except UnicodeDecodeError:
        raise UsageError(f"{name!r} is no UTF-8 text", remedy=remedy) from None
