"""`step`: one round, or the rest of one that was interrupted."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, reply


def search(chat: ChatContext, count: int | None) -> Reply:
    """Run rounds; after an interruption go on with what is left of them, if the user says so."""
    left = count
    while True:
        with chat.working("searching"):
            found = chat.session.work.rounds(left)
        if found.stopped != "interrupted" or not chat.go_on(found.detail):
            break
        left = None if left is None else max(1, left - found.rounds)
    return reply(found, *views.step(found), failed=found.stopped in ("refused", "interrupted"))


def run(chat: ChatContext, values: Values) -> Reply:
    """Run one round."""
    return search(chat, 1)


COMMAND = Command("step", "Run one round, or the rest of one that was interrupted.", "search", run)
