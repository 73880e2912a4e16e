"""`confirm`: the head against the original, with fresh seeds."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply, said


def run(chat: ChatContext, values: Values) -> Reply:
    """Measure the head again."""
    with chat.working("measuring the head against the original again, with fresh seeds"):
        found = chat.session.work.confirm()
    if found is None:
        return said("the head is the original: nothing is to be confirmed")
    held = found.verdict == "accepted"
    title = Say(views.verdict(found.verdict, found.reason), "good" if held else "bad")
    return reply(found, title, views.case_rows(found.cases), failed=not held)


COMMAND = Command(
    "confirm",
    "Measure the head against the original again, with fresh seeds in fresh processes.",
    "measure",
    run,
)
