"""What a model was asked in a run, what it took and what came of it, by role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.schema.evaluation import VerdictKind
from kernelskill.schema.event import Answered, Asked, Event, Judged, ModelFailed


@dataclass(frozen=True)
class UsageRow:
    """One role, or all together."""

    role: str
    models: str
    """Names of those that answered."""
    asked: int
    answered: int
    failed: int
    """Requests that got no answer in some part of the run."""
    changes: int
    """Answers that gave a change to evaluate."""
    won: int
    """Changes that were accepted."""
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None where no price is known."""


def usage_by_role(events: Sequence[Event]) -> tuple[UsageRow, ...]:
    """Return a row for each role that was asked, and one for all where there are several."""
    asked = [e for e in events if isinstance(e, Asked)]
    roles = sorted({event.role for event in asked})
    rows = [_row(role, events, {role}) for role in roles]
    return (*rows, _row("all", events, set(roles))) if len(rows) > 1 else tuple(rows)


def _row(name: str, events: Sequence[Event], roles: set[str]) -> UsageRow:
    answered = [e for e in events if isinstance(e, Answered) and e.role in roles]
    failed = [e for e in events if isinstance(e, ModelFailed) and e.role in roles]
    accepted = {
        e.proposal for e in events if isinstance(e, Judged) and e.verdict.kind is VerdictKind.ACCEPTED
    }
    changes = {event.proposal for event in answered if event.proposal}
    paid: list[Answered | ModelFailed] = [*answered, *failed]
    costs = [event.cost_usd for event in paid if event.requests or event.input_tokens]
    known = [cost for cost in costs if cost is not None]
    return UsageRow(
        role=name,
        models=", ".join(sorted({event.model for event in answered})),
        asked=len({e.request for e in events if isinstance(e, Asked) and e.role in roles}),
        answered=len(answered),
        failed=len({event.request for event in failed}),
        changes=len(changes),
        won=len(changes & accepted),
        input_tokens=sum(event.input_tokens for event in paid),
        output_tokens=sum(event.output_tokens for event in paid),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )
