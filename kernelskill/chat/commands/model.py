"""`model [MODEL]`: which model is asked, if any."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, Say, reply


def run(chat: ChatContext, values: Values) -> Reply:
    """Show or change the model."""
    settings = chat.session.settings
    changes = any(values.has(name) for name in ("model", *(option.name for option in COMMAND.options)))
    found = settings.model()
    if changes:
        found = settings.set_model(
            values.text("model") or None,
            samples=values.number("--samples"),
            repairs=values.number("--repairs"),
            plan=values.text("--plan") == "yes" if values.has("--plan") else None,
        )
    cost = "" if found.usd is None else f", {found.usd:.2f} USD"
    used = (
        f"{found.requests} requests, {found.tokens} tokens{cost}" if found.requests else "nothing asked yet"
    )
    plan = "" if not found.plan else ", asked for a plan first"
    how = f"samples {found.samples}, repairs {found.repairs}{plan}"
    return reply(found, Say(f"model: {found.spec}; {how}; {used}"))


COMMAND = Command(
    "model",
    "Show which model is asked, or change it; none is none.",
    "keep",
    run,
    arguments=(Argument("model", "none, openai:NAME, openai:NAME@URL, mailbox:DIR, scripted:FILE.", "word"),),
    options=(
        Option("--samples", "Answers for each specialist and round.", "number"),
        Option("--repairs", "Times that a change that failed may be mended.", "number"),
        Option("--plan", "Whether it is asked first what to try.", "choice", ("yes", "no")),
    ),
    examples=(
        "/model",
        "/model openai:NAME@http://localhost:11434/v1",
        "/model none",
        "/model --samples 3 --plan yes",
    ),
)
