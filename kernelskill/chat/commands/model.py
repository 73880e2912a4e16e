"""`model [MODEL]`: which model is asked, if any."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show or change the model."""
    settings = chat.session.settings
    found = settings.set_model(values.text("model")) if values.has("model") else settings.model()
    cost = "" if found.usd is None else f", {found.usd:.2f} USD"
    used = (
        f"{found.requests} requests, {found.tokens} tokens{cost}" if found.requests else "nothing asked yet"
    )
    return reply(found, Say(f"model: {found.spec}; {used}"))


COMMAND = Command(
    "model",
    "Show which model is asked, or change it; none is none.",
    "keep",
    run,
    arguments=(Argument("model", "none, openai:NAME, openai:NAME@URL, mailbox:DIR, scripted:FILE.", "word"),),
    examples=("/model", "/model openai:NAME@http://localhost:11434/v1", "/model none"),
)
