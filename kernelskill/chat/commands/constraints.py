"""`constraints`: the wishes that hold now."""

from __future__ import annotations

from kernelskill.chat.arguments import Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Block, Reply, Say, reply
from kernelskill.schema.base import Record
from kernelskill.session.records import Preferred, RuleView


class Constraints(Record):
    """The wishes that hold."""

    rules: tuple[RuleView, ...]
    preferences: tuple[Preferred, ...] = ()


def run(chat: ChatContext, values: Values) -> Reply:
    """Show them, or take one back."""
    steering = chat.session.steering
    number = values.number("--forget")
    if number is not None:
        gone = steering.forget(number)
        return reply(gone, Say(f"no longer: {gone.shown}"))
    found = Constraints(rules=steering.rules(), preferences=steering.preferences())
    blocks: list[Block] = [Say(f"{rule.number}. {rule.shown}") for rule in found.rules]
    blocks += [
        Say(f"{p.better.name} rather than {p.worse.name}: {p.better.label}") for p in found.preferences
    ]
    return reply(found, *(blocks or [Say("nothing yet; say what you wish, or /ban something")]))


COMMAND = Command(
    "constraints",
    "Show the constraints and preferences that hold; --forget takes one back.",
    "steer",
    run,
    options=(Option("--forget", "Number of the rule to take back.", "number"),),
)
