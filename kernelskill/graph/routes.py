"""Where a round goes next, by name."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import get_runtime
from langgraph.types import Send

from kernelskill.agents.coordinator import route
from kernelskill.graph.context import RoundContext
from kernelskill.graph.state import RoundState, SpecialistTask


def to_specialists(state: RoundState) -> list[Send] | Literal["policy", "consult"]:
    """Send every base to every specialist that the coordinator routes to."""
    context = get_runtime(RoundContext).context
    sends = []
    for base in state["bases"]:
        for each in route(context.diagnosis(base).bottlenecks, context.library.all()):
            task: SpecialistTask = {"round": state["round"], "specialist": each.specialist, "base": base}
            sends.append(Send(each.specialist, task))
    return sends or ("policy" if context.model is None else "consult")


def after_combiner(state: RoundState) -> Literal["evaluator", "experience"]:
    """Evaluate combinations where there are any, else learn."""
    return "evaluator" if state["pending"] else "experience"


def after_consult(state: RoundState) -> Literal["policy", "combiner"]:
    """Rank what a model offered; where it offers nothing more, go on to what was accepted."""
    return "policy" if state["fresh"] else "combiner"
