"""The graph of one round, as a table.

profiler -> coordinator -> (each specialist, side by side) -> policy -> parameters -> evaluator -> verifier
         -> combiner -> evaluator again, or experience -> end
"""

from __future__ import annotations

from functools import partial

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from kernelskill.graph import nodes, routes
from kernelskill.graph.context import RoundContext
from kernelskill.graph.state import RoundState

RoundGraph = CompiledStateGraph[RoundState, RoundContext, RoundState, RoundState]


def build_round(specialists: tuple[str, ...], checkpointer: BaseCheckpointSaver[str] | None) -> RoundGraph:
    """Return the compiled graph.

    Args:
        specialists: Their names; each becomes a node.
        checkpointer: Keeps the position inside a round; None for none.
    """
    graph = StateGraph(RoundState, context_schema=RoundContext)
    graph.add_node("profiler", nodes.profiler)
    graph.add_node("coordinator", nodes.coordinator)
    for name in specialists:
        graph.add_node(name, partial(nodes.specialist, name))
    graph.add_node("policy", nodes.policy)
    graph.add_node("parameters", nodes.parameters)
    graph.add_node("evaluator", nodes.evaluator)
    graph.add_node("verifier", nodes.verifier)
    graph.add_node("combiner", nodes.combiner)
    graph.add_node("experience", nodes.experience)

    graph.add_edge(START, "profiler")
    graph.add_edge("profiler", "coordinator")
    graph.add_conditional_edges("coordinator", routes.to_specialists, [*specialists, "policy"])
    for name in specialists:
        graph.add_edge(name, "policy")
    graph.add_edge("policy", "parameters")
    graph.add_edge("parameters", "evaluator")
    graph.add_edge("evaluator", "verifier")
    graph.add_edge("verifier", "combiner")
    graph.add_conditional_edges("combiner", routes.after_combiner, ["evaluator", "experience"])
    graph.add_edge("experience", END)
    return graph.compile(checkpointer=checkpointer)
