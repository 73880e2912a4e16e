"""`export [FILE]`: write the head into the user's kernel file, or another."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, Tone, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Write a candidate's source; asks before."""
    target = values.path("file")
    found = chat.session.output.export(
        None if target is None else chat.folder / target, ref=values.text("--candidate", "head")
    )
    if not found.files:
        tone: Tone = "bad" if found.refused else "plain"
        return reply(found, Say(found.detail or "nothing was written", tone), failed=found.refused)
    lines = [Say(f"written: {file}", "good") for file in found.files]
    return reply(found, *lines, *([Say(found.detail, "dim")] if found.detail else []))


COMMAND = Command(
    "export",
    "Write the head into your kernel file, or into another; asks first.",
    "keep",
    run,
    arguments=(Argument("file", "Default: the kernel file the run began with.", "path"),),
    options=(Option("--candidate", "Write this candidate instead of the head.", "candidate"),),
    details="Refused where the file changed since the run began or since the last export.",
    examples=("/export", "/export fast.cu", "/export fast.cu --candidate 3"),
)
