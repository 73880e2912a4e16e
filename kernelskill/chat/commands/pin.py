"""`pin FILE`: adopt an edited file as a candidate, checked like any other."""

from __future__ import annotations

from kernelskill.chat import views
from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Check a file and keep it as a candidate."""
    file = chat.folder / (values.path("file") or "")
    with chat.working(f"building, checking and timing {file.name}"):
        found = chat.session.history.pin_file(
            file, path=values.text("--as"), move=True if values.has("--head") else None
        )
    known = " (judged before)" if found.known else ""
    if not found.accepted:
        return reply(found, Say(f"{views.verdict(found.status, found.reason)}{known}", "bad"), failed=True)
    gain = (
        ""
        if found.gain is None
        else f", {views.speedup(found.gain, estimated=found.node.estimated)} over its base"
    )
    place = "the head" if found.moved else "kept in the tree; the head stays where it is"
    return reply(
        found,
        Say(f"{views.node(found.node)}: right{gain}{known}", "good"),
        Say(f"{place}: {found.reason}" if found.reason else place),
    )


COMMAND = Command(
    "pin",
    "Adopt your edited file as a candidate, checked like any other.",
    "look",
    run,
    arguments=(Argument("file", "The edited source.", "path", required=True),),
    options=(
        Option("--head", "Make it the head even where it is slower."),
        Option("--as", "Which file of the candidate it replaces. Default: the main one.", "word"),
    ),
    examples=("/pin mine.cu", "/pin mine.cu --head"),
)
