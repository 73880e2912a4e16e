"""`redo [n]`: the head moves forward again, or to any candidate that was kept."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.commands.undo import moved
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Move the head forward."""
    if values.has("--to"):
        return moved(chat.session.history.move(values.text("--to")))
    return moved(chat.session.history.redo(values.number("n", 1)))


COMMAND = Command(
    "redo",
    "Move the head forward again, or to any candidate that was kept.",
    "look",
    run,
    arguments=(Argument("n", "How many steps. Default: 1.", "number"),),
    options=(Option("--to", "Move the head to this candidate.", "candidate"),),
    examples=("/redo", "/redo --to 3"),
)
