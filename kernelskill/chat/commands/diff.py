"""`diff [a] [b]`: how two candidates differ."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Block, Code, Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show a unified diff."""
    found = chat.session.history.diff(values.text("a", "original"), values.text("b", "head"))
    title = Say(f"{views.node(found.first)} -> {views.node(found.second)}", "dim")
    body: Block = Code(found.text, "diff") if found.text else Say("they are the same")
    return reply(found, title, body)


COMMAND = Command(
    "diff",
    "Show how two candidates differ; without names, the original and the head.",
    "look",
    run,
    arguments=(
        Argument("a", "The first candidate. Default: original.", "candidate"),
        Argument("b", "The second. Default: head.", "candidate"),
    ),
    examples=("/diff", "/diff head~1 head", "/diff 2 5"),
)
