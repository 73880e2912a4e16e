"""Help and the page of documentation, both made from the commands themselves."""

from __future__ import annotations

from kernelskill.chat.registry import TOPICS, Command, Commands
from kernelskill.chat.reply import Block, Reply, Say, reply, rows
from kernelskill.schema.base import Record

PAGE_BEGIN = "<!-- commands: made from the commands themselves; see tests/unit/chat -->"
PAGE_END = "<!-- end of commands -->"
FORMS = (
    ("!command", "Run a command of the shell."),
    ("@file", "In a message: the text of a file. \\@ is a plain @."),
    ("anything else", "A wish for the search (`leave shared memory alone`) or a question."),
)


class CommandHelp(Record):
    """One command in words."""

    name: str
    usage: str
    summary: str


class Overview(Record):
    """All commands in words."""

    commands: tuple[CommandHelp, ...]


def overview(commands: Commands) -> Reply:
    """List everything that can be typed."""
    blocks: list[Block] = []
    width = max(len(_short_usage(command)) for command in commands)
    for topic, title in TOPICS.items():
        blocks.append(Say(title, "head"))
        found = commands.of_topic(topic)
        blocks.append(
            rows(("", ""), [(f"  {_short_usage(c):<{width}}", c.summary) for c in found], plain=True)
        )
    blocks += [
        Say("And", "head"),
        rows(("", ""), [(f"  {form:<{width}}", text) for form, text in FORMS], plain=True),
    ]
    blocks.append(Say("Unique prefixes work: /rem 3. A command explains itself: /run --help.", "dim"))
    record = Overview(commands=tuple(_help(command) for command in commands))
    return reply(record, *blocks)


def help_of(command: Command) -> Reply:
    """Explain one command."""
    blocks: list[Block] = [Say(command.usage, "head"), Say(command.summary)]
    blocks += [Say(command.details)] if command.details else []
    if described := _described(command):
        blocks.append(rows(("", ""), [(f"  {name}", text) for name, text in described], plain=True))
    blocks += [Say(f"  {example}", "dim") for example in command.examples]
    return Reply(_help(command), tuple(blocks))


def page(commands: Commands) -> str:
    """Return the commands as Markdown, for docs/chat.md."""
    parts = [PAGE_BEGIN]
    for topic, title in TOPICS.items():
        parts += ["", f"### {title}", "", "| command | does |", "|---|---|"]
        parts += [f"| `{_short_usage(c)}` | {_cell(c)} |" for c in commands.of_topic(topic)]
    return "\n".join([*parts, "", PAGE_END])


def _described(command: Command) -> list[tuple[str, str]]:
    lines = [(argument.name, argument.help) for argument in command.arguments]
    for option in command.options:
        lines.append((f"{option.name} {option.metavar}" if option.kind else option.name, option.help))
    return lines


def _short_usage(command: Command) -> str:
    """Return the form without options."""
    parts = [f"/{command.name}"]
    parts += [a.name if a.required else f"[{a.name}]" for a in command.arguments]
    return " ".join(parts)


def _cell(command: Command) -> str:
    options = [f"`{option.name}`" for option in command.options]
    text = f"{command.summary} {command.details}".strip()
    text = f"{text} Options: {', '.join(options)}." if options else text
    return text.replace("|", "\\|")


def _help(command: Command) -> CommandHelp:
    return CommandHelp(name=command.name, usage=command.usage, summary=command.summary)
