"""`why [what]`: the evidence for a change or a bottleneck."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, reply
from kernelskill.errors import UnknownNameError
from kernelskill.session.records import Explanation


def run(chat: ChatContext, values: Values) -> Reply:
    """Explain from the evidence."""
    what = values.text("what")
    with chat.working("looking at the evidence"):
        found = _asked(chat, what) if what.endswith("?") else _named(chat, what)
    return reply(found, *views.explanation(found), failed=not found.understood)


def _named(chat: ChatContext, what: str) -> Explanation:
    try:
        return chat.session.evidence.why(what)
    except UnknownNameError:
        if " " not in what:
            raise
        return _asked(chat, what)


def _asked(chat: ChatContext, what: str) -> Explanation:
    return chat.session.evidence.ask(f"why {what}")


COMMAND = Command(
    "why",
    "Show the evidence for a change, a bottleneck or a skill; without a name, what limits the head.",
    "look",
    run,
    arguments=(Argument("what", "A candidate, a proposal (p2.1), a limit, a skill, or a question.", "text"),),
    examples=("/why", "/why 3", "/why coalescing", "/why p1.2"),
)
