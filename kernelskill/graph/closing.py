"""End a round before its time: what was evaluated is judged, learned from and kept, and nothing more is tried."""

from __future__ import annotations

from langgraph.runtime import Runtime

from kernelskill.graph import nodes
from kernelskill.graph.context import RoundContext
from kernelskill.graph.state import initial_state
from kernelskill.schema.event import Evaluated, Ranked, RoundStarted


def close_round(context: RoundContext, started: RoundStarted) -> None:
    """Finish a round with what it has; doing so again changes nothing."""
    number = started.round
    runtime = Runtime(context=context)
    state = initial_state(number, [started.base, *started.others])
    judged = {event.proposal for event in context.judgements(number)}
    evaluated = [e for e in context.log.events if isinstance(e, Evaluated) and e.round == number]
    pending = [e.proposal for e in evaluated if e.depth == "search" and e.proposal not in judged]
    state["pending"] = list(dict.fromkeys(pending))
    nodes.verifier(state, runtime)
    slates = [e.slate for e in context.log.events if isinstance(e, Ranked) and e.round == number]
    state["slate"] = slates[-1] if slates else ""
    nodes.experience(state, runtime)
