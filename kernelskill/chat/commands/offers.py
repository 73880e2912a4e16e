"""`offers [round]`: what was offered in a round."""

from __future__ import annotations

from kernelskill.chat.arguments import Argument, Option, Values
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Block, Reply, Say, Tone, reply, rows
from kernelskill.schema.base import Record
from kernelskill.session.records import ShownProposal

SHOWN = 12


class Offers(Record):
    """The proposals of a round."""

    proposals: tuple[ShownProposal, ...]


def run(chat: ChatContext, values: Values) -> Reply:
    """Show a slate."""
    found = chat.session.steering.proposals(values.number("round"))
    if not found:
        return reply(
            Offers(proposals=()), Say("nothing could be offered in that round; /offers 1 shows the first")
        )
    shown = found if values.has("--all") else found[:SHOWN]
    tones: list[Tone] = ["plain" if proposal.chosen else "dim" for proposal in shown]
    table = rows(
        ("proposal", "expected", "", "what it is"), [_line(proposal) for proposal in shown], tones, plain=True
    )
    more = len(found) - len(shown)
    hints: list[Block] = [Say(f"and {more} more: /offers --all", "dim")] if more else []
    hints.append(Say("/choose A B tells the policy which of two you would try first", "dim"))
    return reply(Offers(proposals=found), table, *hints)


def _line(proposal: ShownProposal) -> tuple[str, str, str, str]:
    number = "" if proposal.number is None else f"#{proposal.number}"
    outcome = f" ({proposal.outcome})" if proposal.outcome else ""
    return proposal.name, f"{proposal.mean:.2f}x", number, f"{proposal.label}{outcome}"


COMMAND = Command(
    "offers",
    "Show what was offered in a round, and what became of it.",
    "look",
    run,
    arguments=(Argument("round", "Default: the last.", "number"),),
    options=(Option("--all", f"All of them, not only the first {SHOWN}."),),
)
