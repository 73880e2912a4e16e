"""`help [command]`: what there is, or all about one command."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.helping import help_of, overview
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Explain."""
    name = values.text("command").lstrip("/")
    return help_of(chat.commands.find(name)) if name else overview(chat.commands)


COMMAND = Command(
    "help",
    "List the commands, or explain one.",
    "chat",
    run,
    arguments=(Argument("command", "Its name.", "command"),),
)
