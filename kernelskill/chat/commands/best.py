"""`best`: the head, its times and the changes that led to it."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show the head."""
    best = chat.session.history.best()
    lines = [Say(f"{number}. {change}") for number, change in enumerate(best.changes, 1)]
    lines += [Say(f"relies on: {text}", "dim") for text in best.assumptions]
    if not best.exact:
        lines.append(Say("a change reorders sums or rounds otherwise", "dim"))
    if best.node.number:
        lines.append(
            Say("confirmed with fresh seeds" if best.confirmed else "not confirmed yet: /stop does", "dim")
        )
    if best.faster is not None:
        lines.append(Say(f"faster, off this line: {views.node(best.faster)}", "head"))
    return reply(best, Say(f"head {views.node(best.node)}", "head"), views.case_rows(best.cases), *lines)


COMMAND = Command("best", "Show the head: times, roof, changes, what it relies on.", "look", run)
