"""`ban NAME`: a skill or a direction is not tried any more."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Add a constraint."""
    found = chat.session.steering.ban(values.text("name"))
    return reply(found, *views.steered(found))


COMMAND = Command(
    "ban",
    "Forbid a skill, a specialist, a direction or a kernel.",
    "steer",
    run,
    arguments=(Argument("name", "For example unroll, or shared memory.", "text", required=True),),
    examples=("/ban unroll", "/ban shared memory"),
)
