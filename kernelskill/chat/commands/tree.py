"""`tree`: every candidate that was judged."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply
from kernelskill.schema.base import Record
from kernelskill.session.records import TreeNode


class Tree(Record):
    """The candidates shown."""

    nodes: tuple[TreeNode, ...]


def run(chat: ChatContext, values: Values) -> Reply:
    """Show the tree, or only what was kept."""
    nodes = chat.session.history.tree()
    shown = [n for n in nodes if n.on_line or n.kept] if values.has("--kept") else list(nodes)
    legend = "* head  | on the way to it  + faster  = level  - slower  . passed over  x refused"
    return reply(Tree(nodes=tuple(shown)), views.tree_rows(shown), Say(legend, "dim"))


COMMAND = Command(
    "tree",
    "Show every candidate that was judged; the head is marked.",
    "look",
    run,
    options=(Option("--kept", "Only those that can become the head."),),
)
