"""`allow NAME`: a skill or direction that was forbidden may be tried again."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Take a constraint back."""
    found = chat.session.steering.allow(values.text("name"))
    return reply(found, *views.steered(found))


COMMAND = Command(
    "allow",
    "Permit again what /ban or a wish forbade.",
    "steer",
    run,
    arguments=(Argument("name", "For example unroll, or shared memory.", "text", required=True),),
    examples=("/allow unroll",),
)
