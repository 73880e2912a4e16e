"""The shape of a round's graph."""

from kernelskill.graph.build import build_round
from kernelskill.graph.state import initial_state


def test_the_graph_is_the_picture_of_the_architecture() -> None:
    graph = build_round(("compute", "memory"), None).get_graph()
    edges = {(edge.source, edge.target) for edge in graph.edges}
    for wanted in (
        ("profiler", "coordinator"),
        ("coordinator", "compute"),
        ("coordinator", "memory"),
        ("coordinator", "policy"),
        ("compute", "policy"),
        ("memory", "policy"),
        ("policy", "parameters"),
        ("parameters", "evaluator"),
        ("evaluator", "verifier"),
        ("verifier", "combiner"),
        ("combiner", "evaluator"),
        ("combiner", "experience"),
    ):
        assert wanted in edges
    assert len(graph.nodes) == 2 + 2 + 8


def test_a_round_begins_with_nothing_offered() -> None:
    state = initial_state(3, ["a"])
    assert (state["round"], state["bases"], state["offers"]) == (3, ["a"], [])


def test_with_a_model_it_is_asked_before_every_slate() -> None:
    graph = build_round(("compute", "memory"), None, with_model=True).get_graph()
    edges = {(edge.source, edge.target) for edge in graph.edges}
    for wanted in (
        ("coordinator", "consult"),
        ("compute", "consult"),
        ("memory", "consult"),
        ("consult", "policy"),
        ("consult", "combiner"),
        ("verifier", "consult"),
    ):
        assert wanted in edges
    assert not edges & {("verifier", "combiner"), ("compute", "policy"), ("coordinator", "policy")}
