"""`choose A B`: of two proposals that were shown, the user would try the first."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Keep a choice as a preference of the policy."""
    found = chat.session.steering.prefer(values.text("better"), values.text("worse"))
    return reply(
        found,
        Say(f"preferred: {found.better.name} {found.better.label}", "good"),
        Say(f"to {found.worse.label}"),
    )


COMMAND = Command(
    "choose",
    "Tell the policy which of two proposals you would try first.",
    "steer",
    run,
    arguments=(
        Argument("better", "A name of /offers, for example p2.1.", "word", required=True),
        Argument("worse", "Another of the same round.", "word", required=True),
    ),
    examples=("/choose p1.3 p1.1",),
)
