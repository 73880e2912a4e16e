"""`show [candidate]`: its source."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Code, Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show a candidate's source."""
    found = chat.session.history.show(values.text("candidate", "head"))
    others = [path for path, _ in found.files if path != found.path]
    more = [Say(f"further files: {', '.join(others)}", "dim")] if others else []
    return reply(found, Say(f"// {views.node(found.node)}", "dim"), Code(found.text, "cuda"), *more)


COMMAND = Command(
    "show",
    "Show the source of a candidate.",
    "look",
    run,
    arguments=(
        Argument("candidate", "A number of /tree, head, best or original. Default: head.", "candidate"),
    ),
    examples=("/show", "/show 3", "/show original"),
)
