"""`baseline`: build, check and time the original."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Measure once, then show."""
    with chat.working("building, checking and timing the original"):
        found = chat.session.work.baseline()
    notes = [Say(f"note: {note}", "dim") for note in found.notes]
    return reply(found, views.case_rows(found.cases), *notes)


COMMAND = Command(
    "baseline",
    "Build, check and time the original; measured once, then shown.",
    "measure",
    run,
)
