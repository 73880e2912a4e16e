"""The graph of one round, as a table.

profiler -> coordinator -> (each specialist, side by side) -> policy -> parameters -> evaluator -> verifier
         -> combiner -> evaluator again, or experience -> end

With a model the node `consult` stands before every slate: behind the specialists, and behind the
verifier, from where it leads back to the policy or on to the combiner.
"""

from __future__ import annotations

from functools import partial

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from kernelskill.graph import nodes, routes
from kernelskill.graph.consulting import consult
from kernelskill.graph.context import RoundContext
from kernelskill.graph.state import RoundState

RoundGraph = CompiledStateGraph[RoundState, RoundContext, RoundState, RoundState]


def build_round(
    specialists: tuple[str, ...], checkpointer: BaseCheckpointSaver[str] | None, *, with_model: bool = False
) -> RoundGraph:
    """Return the compiled graph.

    Args:
        specialists: Their names; each becomes a node.
        checkpointer: Keeps the position inside a round; None for none.
        with_model: Whether a model is asked.
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

    before_slate, after_verdict = ("consult", "consult") if with_model else ("policy", "combiner")
    if with_model:
        graph.add_node("consult", consult)
        graph.add_conditional_edges("consult", routes.after_consult, ["policy", "combiner"])
    graph.add_edge(START, "profiler")
    graph.add_edge("profiler", "coordinator")
    graph.add_conditional_edges("coordinator", routes.to_specialists, [*specialists, before_slate])
    for name in specialists:
        graph.add_edge(name, before_slate)
    graph.add_edge("policy", "parameters")
    graph.add_edge("parameters", "evaluator")
    graph.add_edge("evaluator", "verifier")
    graph.add_edge("verifier", after_verdict)
    graph.add_conditional_edges("combiner", routes.after_combiner, ["evaluator", "experience"])
    graph.add_edge("experience", END)
    return graph.compile(checkpointer=checkpointer)
