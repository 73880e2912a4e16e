"""`profile [candidate]`: what limits it and how that is known."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply
from kernelskill.report.diagnosis import diagnosis_lines


def run(chat: ChatContext, values: Values) -> Reply:
    """Profile a candidate."""
    with chat.working("profiling"):
        found = chat.session.evidence.profile(
            values.text("candidate", "head"), depth="full" if values.has("--full") else "quick"
        )
    lines = [Say(line) for line in diagnosis_lines(found.diagnosis)]
    return reply(found, Say(views.node(found.node), "head"), *lines)


COMMAND = Command(
    "profile",
    "Show what limits a candidate and how that is known.",
    "measure",
    run,
    arguments=(Argument("candidate", "Default: head.", "candidate"),),
    options=(Option("--full", "All counters, where there are any."),),
)
