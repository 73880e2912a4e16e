"""`save`: write source, patches and report into the run folder."""

from __future__ import annotations

from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Write what there is."""
    found = chat.session.output.save()
    lines = [Say(f"written: {file}") for file in found.files]
    return reply(found, *lines, *([Say(found.detail, "dim")] if found.detail else []))


COMMAND = Command(
    "save",
    "Write the head, its patches and the report into the run folder.",
    "keep",
    run,
    details="Every measurement is kept at once, without /save; /stop confirms the head too.",
)
