"""`report`: the whole report, as it stands now."""

from __future__ import annotations

from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Code, Reply, Text, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show the report."""
    text = chat.session.output.report()
    return reply(Text(text=text), Code(text, "markdown"))


COMMAND = Command("report", "Show the report as it stands now.", "keep", run)
