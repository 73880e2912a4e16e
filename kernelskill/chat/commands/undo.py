"""`undo [n]`: the head moves back in the lineage; nothing is destroyed."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply
from kernelskill.session.records import Moved


def moved(found: Moved) -> Reply:
    """Show a move of the head."""
    notes = [Say(note, "dim") for note in found.notes]
    return reply(found, Say(f"head {views.node(found.before)} -> {views.node(found.after)}", "head"), *notes)


def run(chat: ChatContext, values: Values) -> Reply:
    """Move the head to its parent."""
    return moved(chat.session.history.undo(values.number("n", 1)))


COMMAND = Command(
    "undo",
    "Move the head back to its parent; nothing is destroyed.",
    "look",
    run,
    arguments=(Argument("n", "How many steps. Default: 1.", "number"),),
)
