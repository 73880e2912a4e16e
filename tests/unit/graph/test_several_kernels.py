"""Launchers of several kernels: the best changes of each are found in one round and evaluated together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.runtime import Runtime

from kernelskill.errors import RunInterrupted
from kernelskill.graph import nodes
from kernelskill.graph.shortlist import going_on, set_apart
from kernelskill.schema.event import Evaluated, Judged
from tests.unit.graph.shop import best_source, of_kind

TWO_KERNELS = """\
// scripted: right ms=1.0
__global__ void k(const float *x, float *y, int n) { /* plain */ }
__global__ void h(float *y, int n) { /* simple */ }
extern "C" void scale(const float *x, float *y, int n) { k<<<1, 128>>>(x, y, n); h<<<1, 128>>>(y, n); }
"""


def two_kernels(shop: Callable[..., Any], **settings: Any) -> Any:
    made = shop(source=TWO_KERNELS, points=0, rounds=1, **settings)
    for name, factor in (("a", "0.4"), ("b", "0.39"), ("c", "0.5")):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", factor, kernel="k")
    for name, factor in (("d", "0.9"), ("e", "0.8")):
        made.skill(f"compute/{name}", "/* simple */", f"/* {name} */", factor, kernel="h")
    return made


def test_the_best_changes_of_two_kernels_are_evaluated_together(shop: Callable[..., Any]) -> None:
    made = two_kernels(shop, slate=5, budget_s=1000.0)
    context = made.run(made.context())
    full = [event.label for event in of_kind(context, Evaluated) if event.depth == "search"]
    # What is best for the second kernel brings too little beside the best to be evaluated alone.
    assert full == ["b at k//* b */", "a at k//* a */", "e at h//* e */"]
    (together,) = [event for event in of_kind(context, Judged) if event.combined]
    assert together.speedup_to_original == pytest.approx(1 / (0.39 * 0.8), rel=0.02)
    assert "/* b */" in best_source(context)
    assert "/* e */" in best_source(context)


def test_what_was_found_together_is_evaluated_though_the_time_is_over(shop: Callable[..., Any]) -> None:
    made = two_kernels(shop, slate=5, budget_s=1000.0)
    with pytest.raises(RunInterrupted):
        made.run(made.context(stop_at=Judged))
    context = made.context()
    accepted = [j.proposal for j in of_kind(context, Judged) if j.verdict.kind.value == "accepted"]
    state = {"round": 1, "bases": [context.task.original], "accepted": accepted, "combining": False}
    spent = context.budget.model_copy(update={"device_seconds": 0.001})
    context.budget = context.budget.model_copy(update={"seconds": 0.0})
    assert nodes.combiner(state, Runtime(context=context))["pending"] == []
    context.budget = spent
    (pending,) = nodes.combiner(state, Runtime(context=context))["pending"]
    assert context.proposal(pending).kernels == {"h"}
    assert context.proposal(pending).origin == "combined"
    made.run(context)
    assert "/* b */" in best_source(context)
    assert "/* e */" in best_source(context)


def test_who_is_best_elsewhere_is_of_another_kernel_and_shares_none(shop: Callable[..., Any]) -> None:
    made = two_kernels(shop, slate=5, budget_s=1000.0)
    context = made.run(made.context())
    a, b, e = [context.proposal(e.proposal) for e in of_kind(context, Evaluated) if e.depth == "search"][:3]
    assert [p.kernels for p in (a, b)] == [{"k"}, {"k"}]
    assert set_apart(a, [(0.3, b), (0.01, e), (0.2, e)]) == [e]
    assert set_apart(a, [(0.3, b), (0.01, e)]) == []
    unknown = e.model_copy(update={"steps": (), "kernel": ""})
    assert set_apart(a, [(0.3, unknown)]) == []
    assert set_apart(unknown, [(0.3, a)]) == []
    assert going_on([(0.9, a), (0.89, b), (0.3, e)]) == [a, b]
