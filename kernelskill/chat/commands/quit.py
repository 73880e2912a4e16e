"""`quit`: leave; everything is kept."""

from __future__ import annotations

from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Leave."""
    return Reply(None, (), leaves=True)


COMMAND = Command(
    "quit",
    "Leave; everything is kept, and the chat says how to go on. Ctrl-D does the same.",
    "chat",
    run,
    aliases=("exit", "bye"),
)
