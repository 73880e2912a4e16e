"""`budget`: the limits and what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelskill.chat.arguments import Kind, Option, Values, checked
from kernelskill.chat.context import ChatContext
from kernelskill.chat.registry import Command
from kernelskill.chat.reply import Reply, reply, rows

if TYPE_CHECKING:
    from kernelskill.session.records import BudgetView

_LIMITS: dict[str, tuple[Kind, str]] = {
    "rounds": ("number", "Rounds of a /run without a number."),
    "patience": ("number", "Rounds without gain."),
    "device": ("word", "Device time: 40s, 5m, or +2m from now."),
    "wall": ("word", "Wall time: 10m, or +10m from now."),
    "evaluations": ("number", "Evaluations."),
    "tokens": ("number", "Tokens of a model, in and out."),
    "usd": ("amount", "Money for a model."),
    "requests": ("number", "Calls of a model."),
}
NO_LIMIT = "none"


def run(chat: ChatContext, values: Values) -> Reply:
    """Show the limits, or change them."""
    changes: dict[str, str | float | int | None] = {}
    for name, (kind, _) in _LIMITS.items():
        if values.has(f"--{name}"):
            changes[name] = _value(f"--{name}", kind, values.text(f"--{name}"))
    settings = chat.session.settings
    found = settings.set_budget(**changes) if changes else settings.budget()
    return reply(found, rows(("limit", "used", "of"), _lines(found)))


def _value(name: str, kind: Kind, text: str) -> str | float | int | None:
    if text == NO_LIMIT:
        return None
    checked(Option(name, "", kind), text, COMMAND.name)
    return int(text) if kind == "number" else float(text) if kind == "amount" else text


def _lines(found: BudgetView) -> list[tuple[str, str, str]]:
    budget, spend, model = found.budget, found.spend, found.model
    return [
        ("rounds", str(spend.rounds), f"{budget.rounds} a /run"),
        ("patience", "", str(budget.patience)),
        ("device", f"{spend.device_seconds:.1f} s", _seconds(budget.device_seconds)),
        ("wall", f"{spend.seconds:.0f} s", _seconds(budget.seconds)),
        ("evaluations", str(spend.evaluations), _limit(budget.evaluations)),
        ("tokens", str(model.tokens), _limit(model.limits.tokens)),
        ("USD", "-" if model.usd is None else f"{model.usd:.2f}", _limit(model.limits.usd)),
        ("requests", str(model.requests), _limit(model.limits.requests)),
    ]


def _seconds(value: float | None) -> str:
    return "no limit" if value is None else f"{value:.4g} s"


def _limit(value: float | None) -> str:
    return "no limit" if value is None else f"{value:g}"


COMMAND = Command(
    "budget",
    "Show the limits and what was spent, or change them.",
    "keep",
    run,
    options=tuple(
        Option(f"--{name}", f"{text} none: no limit.", "word") for name, (_, text) in _LIMITS.items()
    ),
    examples=("/budget", "/budget --device 2m --rounds 12", "/budget --wall none"),
)
