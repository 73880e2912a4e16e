"""The proposals of a round as they were shown: names for them, and what became of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import exp

from kernelskill.errors import UnknownNameError, UsageError
from kernelskill.graph.context import SLATES, RoundContext
from kernelskill.report import figures
from kernelskill.schema.event import Judged, Ranked, Searched
from kernelskill.schema.proposal import Slate
from kernelskill.session.records import ShownProposal
from kernelskill.session.tree import tree

_NAME = re.compile(r"p?(\d+)\.(\d+)")
_SHORT_NAME = re.compile(r"p?(\d+)")


@dataclass(frozen=True)
class NamedProposal:
    """A proposal with its place in the records."""

    shown: ShownProposal
    slate: str
    identity: str


def shown_in(context: RoundContext, number: int | None = None) -> list[NamedProposal]:
    """Return the proposals of a round, the best first.

    Args:
        context: The run.
        number: The round; the last one that has a slate by default.

    Raises:
        UsageError: There is none.
    """
    ranked = [e for e in context.log.events if isinstance(e, Ranked)]
    wanted = number if number is not None else max((e.round for e in ranked), default=0)
    slates = [e.slate for e in ranked if e.round == wanted]
    if not slates:
        where = f"round {number} has no proposals" if number is not None else "nothing was proposed yet"
        raise UsageError(where, remedy="run a round first: step")
    judged = {e.proposal: e for e in context.log.events if isinstance(e, Judged)}
    # Of a family whose parameters were searched, a point with other values was judged in its place.
    for search in (e for e in context.log.events if isinstance(e, Searched)):
        points = [judged[kept] for kept in search.kept if kept in judged]
        if points:
            judged.setdefault(search.family, max(points, key=lambda e: e.verdict.speedup or 0.0))
    numbers = {node.digest: node.number for node in tree(context)}
    found: list[NamedProposal] = []
    # What an earlier slate had no place for stands in the later ones again, beside late answers: it keeps its name.
    rows = {
        row.proposal: (slate, row) for slate in slates for row in context.run.get(SLATES, slate, Slate).ranked
    }
    for slate, row in rows.values():
        proposal, event = context.proposal(row.proposal), judged.get(row.proposal)
        digest = event.candidate if event else proposal.candidate.digest
        shown = ShownProposal(
            name=f"p{wanted}.{len(found) + 1}",
            label=proposal.label,
            specialist=proposal.specialist,
            mean=exp(row.mean),
            chosen=row.chosen,
            outcome=_outcome(event) if event else ("searched" if row.chosen else ""),
            number=numbers.get(digest),
            skills=tuple(dict.fromkeys(step.skill for step in proposal.steps)),
        )
        found.append(NamedProposal(shown, slate, row.proposal))
    return found


def find_proposal(context: RoundContext, name: str) -> NamedProposal:
    """Return a proposal by its name, for example `p2.1`; without the round one of the last.

    Raises:
        UnknownNameError: None is called so.
    """
    wanted = name.strip().lower()
    match = _NAME.fullmatch(wanted)
    short = _SHORT_NAME.fullmatch(wanted)
    known: list[NamedProposal] = []
    if match or short:
        known = shown_in(context, int(match[1]) if match else None)
        place = int(match[2]) if match else int(short[1]) if short else 0
        if 0 < place <= len(known):
            return known[place - 1]
    span = f"{known[0].shown.name} to {known[-1].shown.name}" if known else "for example p1.2"
    raise UnknownNameError(f"no proposal is called {name!r}", remedy=f"proposals are called {span}")


def _outcome(event: Judged) -> str:
    verdict = event.verdict
    if verdict.speedup is None:
        return f"{verdict.kind.value}: {verdict.reason}"
    return f"{verdict.kind.value}, {figures.speedup(verdict.speedup, verdict.evidence)} over its base"
