"""`stop`: end the search, confirm the head and write the results."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Finish: confirm with fresh seeds and write everything."""
    with chat.working("measuring the head against the original again, with fresh seeds"):
        view = chat.session.finish()
    best = chat.session.history.best()
    gain = views.speedup(
        view.headline_speedup if view.improved else 1.0, estimated=view.evidence == "estimated"
    )
    return reply(
        best,
        Say(f"{gain} in all" if view.improved else "no change was confirmed as faster", "head"),
        views.case_rows(best.cases),
        Say(f"written into {chat.session.folder}; /export writes your kernel file"),
    )


COMMAND = Command(
    "stop",
    "End the search here: measure the head again with fresh seeds and write the results.",
    "search",
    run,
    details="Rounds under way are stopped with Ctrl-C; /stop may be the answer to whether they go on. "
    "After a stop, /run searches on.",
)
