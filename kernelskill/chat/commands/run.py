"""`run [n]`: rounds of the search."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.commands.step import search
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Run rounds until a limit, or so many."""
    return search(chat, values.number("n"))


COMMAND = Command(
    "run",
    "Run n rounds; without n, until a limit is reached.",
    "search",
    run,
    arguments=(Argument("n", "How many rounds.", "number"),),
    details="Ctrl-C once stops at the next safe point and asks; twice leaves, and everything is kept.",
    examples=("/run", "/run 2"),
)
