"""`remeasure [candidate]`: time it again, fresh."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Time a candidate again."""
    with chat.working("measuring again"):
        found = chat.session.work.remeasure(values.text("candidate", "head"))
    estimated = found.node.estimated
    before, after = (
        views.time(found.before_ms, estimated=estimated),
        views.time(found.after_ms, estimated=estimated),
    )
    return reply(
        found,
        Say(f"{views.node(found.node)}: {before} -> {after}", "head"),
        views.case_rows(found.cases),
        Say(views.verdict(found.verdict, found.reason)),
    )


COMMAND = Command(
    "remeasure",
    "Time a candidate again, with fresh seeds in a fresh process.",
    "measure",
    run,
    arguments=(Argument("candidate", "Default: head.", "candidate"),),
)
