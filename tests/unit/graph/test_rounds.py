"""Rounds on the scripted device: parameter searches, chains and what is learned of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernelskill.errors import RunInterrupted
from kernelskill.graph import outcomes
from kernelskill.graph.context import SEARCHES, SLATES
from kernelskill.graph.forecasting import forecast_gains
from kernelskill.graph.searching import allowance
from kernelskill.report.predictions import prediction_rows
from kernelskill.runs import fold
from kernelskill.schema.event import Evaluated, Judged, Observed, Proposed, Ranked, Searched
from kernelskill.schema.proposal import Slate
from kernelskill.schema.search import ParameterSearch
from kernelskill.session import rounds
from tests.unit.graph.shop import best_source, of_kind

WIDTHS = {"8": 1.1, "4": 0.9, "2": 0.5, "1": 0.8}
BLOCKS = 'parameters:\n  - {name: width, values: ["2048", "4096"]}'
PARAMETERS = 'parameters:\n  - {name: width, values: ["8", "4", "2", "1"]}'


def test_a_place_is_offered_once_and_its_best_value_found(shop: Callable[..., Any]) -> None:
    made = shop(slate=1)
    made.skill("compute/widen", "/* plain */", "/* wide */", WIDTHS, fields=PARAMETERS)
    context = made.run(made.context())
    (proposed,) = of_kind(context, Proposed)
    assert proposed.labels == ("widen(width=8) at k//* wide */",)
    (searched,) = of_kind(context, Searched)
    assert (searched.points, searched.timed, searched.labels) == (4, 4, ("widen(width=2) at k//* wide */",))
    evaluated = of_kind(context, Evaluated)
    assert [event.depth for event in evaluated] == ["cheap"] * 4 + ["search"]
    (judged,) = of_kind(context, Judged)
    assert judged.label == "widen(width=2) at k//* wide */"
    assert "ms=0.5" in best_source(context)
    assert context.spend().device_seconds >= sum(event.seconds for event in evaluated) > 0


def test_every_point_teaches_and_the_family_by_its_best_one(shop: Callable[..., Any]) -> None:
    made = shop(slate=1)
    made.skill("compute/widen", "/* plain */", "/* wide */", WIDTHS, fields=PARAMETERS)
    context = made.run(made.context())
    assert context.pool is not None
    rows = context.pool.experiences()
    (searched,) = of_kind(context, Searched)
    points = [row for row in rows if row.slate == searched.slate]
    (family,) = [row for row in rows if row.slate != searched.slate]
    assert {dict(row.steps[0].parameters)["width"] for row in points} == set(WIDTHS)
    best = max(points, key=lambda row: row.log_speedup or -9.0)
    assert family.steps == best.steps
    assert family.features == best.features
    assert family.log_speedup == best.log_speedup == pytest.approx(0.69, abs=0.02)
    assert family.proposal == searched.family
    slate = context.pool.slate(searched.slate)
    assert slate is not None
    assert slate.family == searched.family
    assert len(slate.ranked) == 4
    assert all(row.chosen and len(row.features) == len(slate.feature_names) for row in slate.ranked)


def test_what_skills_predict_is_compared_once_the_result_has_a_profile(shop: Callable[..., Any]) -> None:
    fields = (
        "predicts:\n  - {metric: a, direction: same}\n  - {metric: a.sum, direction: down}\n"
        "  - {metric: registers, direction: up}"
    )
    made = shop(slate=1, rounds=2)
    made.skill("compute/faster", "/* plain */", "/* fast */", 0.5, fields=fields)
    context = made.run(made.context())
    (judged,) = of_kind(context, Judged)
    (observed,) = of_kind(context, Observed)
    assert (observed.proposal, observed.candidate) == (judged.proposal, judged.candidate)
    assert observed.base == context.task.original
    first, second, third = observed.outcomes
    assert (first.metric, first.skill, first.before, first.after, first.held) == (
        "a", "compute/faster", 1.0, 1.0, True,
    )  # fmt: skip
    assert (second.before, second.held) == (None, None)
    assert third.held is False
    rows = prediction_rows(context.log.events)
    assert [(row.metric, row.held, row.observed) for row in rows] == [
        ("a", 1, 1), ("a.sum", 0, 0), ("registers", 0, 1),
    ]  # fmt: skip
    assert context.pool is not None
    kept = context.pool.foretold()
    assert {(one.outcome.metric, one.outcome.held) for one in kept} == {
        ("a", True), ("a.sum", None), ("registers", False),
    }  # fmt: skip


def test_a_second_round_tries_only_what_is_left(shop: Callable[..., Any]) -> None:
    made = shop(slate=1, points=2, rounds=3, patience=3)
    flat = {width: 1.0 + 0.001 * place for place, width in enumerate(WIDTHS)}
    made.skill("compute/widen", "/* plain */", "/* wide */", flat, fields=PARAMETERS)
    context = made.run(made.context())
    cheap = [event for event in of_kind(context, Evaluated) if event.depth == "cheap"]
    assert len({event.candidate for event in cheap}) == len(cheap) == 4
    assert [event.round for event in cheap] == [1, 1, 2, 2]


def test_without_a_search_the_first_value_stands(shop: Callable[..., Any]) -> None:
    made = shop(slate=1, points=0)
    made.skill("compute/widen", "/* plain */", "/* wide */", WIDTHS, fields=PARAMETERS)
    context = made.run(made.context())
    assert not of_kind(context, Searched)
    assert [event.label for event in of_kind(context, Judged)] == ["widen(width=8) at k//* wide */"]


def test_what_the_hardware_rules_out_is_not_offered_again(shop: Callable[..., Any]) -> None:
    made = shop(slate=1, rounds=3, patience=3)
    made.skill("compute/widen", "k<<<1, 128>>>", "k<<<1, {width}>>>", fields=BLOCKS)
    context = made.run(made.context())
    (searched,) = of_kind(context, Searched)
    assert (searched.points, searched.timed, searched.pruned) == (2, 0, 2)
    assert [len(event.proposals) for event in of_kind(context, Proposed)] == [1, 0]
    assert not of_kind(context, Evaluated)


def test_a_small_budget_is_left_to_the_full_stage(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, points=6)
    for name in ("a", "b"):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", WIDTHS, fields=PARAMETERS)
    context = made.context()
    assert allowance(made.run(context), 1) == 6
    searches = of_kind(context, Searched)
    assert [event.timed for event in searches] == [4, 2]
    cost = outcomes.device_seconds(context.member(made.task.original).evaluation)
    for budget, points in ((1000.0, 6), (4.5 * cost, 4), (0.5 * cost, 0)):
        context.budget = context.budget.model_copy(update={"device_seconds": budget})
        assert allowance(context, 1) == points


def test_a_search_that_was_stopped_goes_on_where_it_was(shop: Callable[..., Any]) -> None:
    made = shop(slate=1)
    made.skill("compute/widen", "/* plain */", "/* wide */", WIDTHS, fields=PARAMETERS)
    whole = made.run(made.context("whole"))
    for _ in range(4):
        with pytest.raises(RunInterrupted):
            made.run(made.context("cut", stop_at=Evaluated))
    done = made.run(made.context("cut"))
    keys = [event.evaluation for event in of_kind(done, Evaluated)]
    assert keys == [event.evaluation for event in of_kind(whole, Evaluated)]
    slate = of_kind(done, Searched)[0].slate
    found = [c.run.get(SEARCHES, slate, ParameterSearch) for c in (done, whole)]
    assert [t.steps for t in found[0].trials] == [t.steps for t in found[1].trials]


def ladder(made: Any, *, named: bool = True, last: str = "", last_ms: Any = 0.4) -> None:
    """Three rungs of which the first gains nothing and the second loses."""
    upwards = ["enables: [memory/tile]", "enables: [compute/widen]"] if named else ["", ""]
    made.skill("memory/swap", "/* plain */", "/* swapped */", fields=upwards[0])
    made.skill("memory/tile", "/* swapped */", "/* tiled */", 1.2, fields=upwards[1])
    made.skill("compute/widen", "/* tiled */", "/* wide */", last_ms, fields=last)


def test_a_ladder_of_rungs_that_gain_nothing_is_climbed_as_one_chain(shop: Callable[..., Any]) -> None:
    made = shop(slate=3)
    ladder(made)
    context = made.run(made.context())
    labels = [label for event in of_kind(context, Proposed) for label in event.labels]
    assert [label.count(" + ") for label in sorted(labels)] == [0, 1, 2]
    assert "/* wide */" in best_source(context)
    assert context.member(fold(context.log.events).best).speedup == pytest.approx(2.5, rel=0.05)


def test_without_the_names_nothing_is_chained_and_the_ladder_ends_at_the_lossy_rung(
    shop: Callable[..., Any],
) -> None:
    made = shop(slate=3, rounds=3)
    ladder(made, named=False)
    context = made.run(made.context())
    assert fold(context.log.events).best == made.task.original


def test_the_upper_end_of_a_chain_may_name_the_lower(shop: Callable[..., Any]) -> None:
    made = shop(slate=3)
    made.skill("memory/swap", "/* plain */", "/* swapped */")
    made.skill("compute/widen", "/* swapped */", "/* wide */", 0.5, fields="after: [memory/swap]")
    context = made.run(made.context())
    assert "/* wide */" in best_source(context)


def test_the_values_of_a_chain_are_searched_together(shop: Callable[..., Any]) -> None:
    made = shop(slate=3)
    ladder(made, last=PARAMETERS, last_ms=WIDTHS)
    context = made.run(made.context())
    assert "ms=0.5" in best_source(context)
    chain = next(event for event in of_kind(context, Searched) if event.label.count(" + ") == 2)
    assert chain.points == 4


def test_of_limited_device_time_the_best_alone_get_a_full_evaluation(shop: Callable[..., Any]) -> None:
    made = shop(slate=4, points=0, budget_s=1000.0)
    for name, ms in (("a", 0.9), ("b", 0.3), ("c", 1.4), ("d", 0.31)):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms)
    context = made.run(made.context())
    evaluated = of_kind(context, Evaluated)
    assert [event.depth for event in evaluated] == ["cheap"] * 4 + ["search"] * 2
    judged = {event.label[:1]: event for event in of_kind(context, Judged)}
    assert {name: event.verdict.kind.value for name, event in judged.items()} == {
        "a": "passed_over",
        "b": "accepted",
        "c": "slower",
        "d": "accepted",
    }
    assert "others of the round brought more" in judged["a"].verdict.reason
    assert judged["a"].speedup_to_original is None
    assert "ms=0.3" in best_source(context)
    assert len(context.run.get(SLATES, of_kind(context, Ranked)[0].slate, Slate).ranked) == 4
    assert context.pool is not None
    assert {row.verdict.value for row in context.pool.experiences()} == {"accepted", "slower", "passed_over"}


def test_forecasts_choose_what_the_device_looks_at(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=0, budget_s=1000.0, forecasts=8, rounds=1)
    for name, ms in (("a", 0.95), ("b", 0.99), ("c", 0.1), ("d", 2.0), ("unknown", 0.4)):
        # What the skills' authors expect is wrong on purpose: the best one is thought to bring least.
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms, prior=1.0 if ms > 0.9 else 0.5)
    context = made.run(made.context())
    looked = [event.label[:1] for event in of_kind(context, Evaluated)]
    assert looked[0] == "c"
    assert "d" not in looked
    slate = context.run.get(SLATES, of_kind(context, Ranked)[0].slate, Slate)
    told = {row.steps[0].skill: row.forecast for row in slate.ranked}
    assert told["compute/c"] == pytest.approx(2.3026, abs=1e-3)
    assert told["compute/unknown"] is None
    assert "ms=0.1" in best_source(context)


def test_nobody_gets_a_place_whose_forecast_was_not_asked_for(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, points=0, budget_s=1000.0, forecasts=2, rounds=1)
    for name, prior, ms in (("a", 1.0, 0.99), ("b", 0.99, 0.98), ("c", 0.9, 0.97), ("d", 0.85, 0.1)):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms, prior=prior)
    context = made.run(made.context())
    slate = context.run.get(SLATES, of_kind(context, Ranked)[0].slate, Slate)
    assert all(row.forecast is not None for row in slate.ranked if row.chosen)
    assert of_kind(context, Evaluated)[0].label.startswith("d")


def test_a_family_that_begins_badly_is_begun_where_its_forecast_is_good(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, points=4, budget_s=1000.0, forecasts=8, rounds=1)
    widths = {"256": 1.6, "128": 1.5, "64": 1.4, "32": 1.3, "16": 0.9, "8": 0.8, "4": 0.5, "2": 0.2}
    fields = f"parameters:\n  - {{name: width, values: {[*widths]}}}".replace("'", '"')
    made.skill("compute/widen", "/* plain */", "/* wide */", widths, fields=fields)
    made.skill("compute/other", "/* plain */", "/* other */", 0.95)
    context = made.run(made.context())
    assert of_kind(context, Evaluated)[0].label == "widen(width=2) at k//* wide */"
    assert "ms=0.2" in best_source(context)
    chosen = [context.proposal(p) for p in of_kind(context, Ranked)[0].chosen]
    assert [len(p.choices[0].values) for p in chosen if p.choices] == [8]


def test_points_that_spill_are_not_what_forecasts_lead_to(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, points=0, budget_s=1000.0, forecasts=4, rounds=1)
    made.skill("compute/a", "/* plain */", "/* a */", 0.5)
    made.skill("compute/b", "/* plain */", "/* b spills */", 0.4)
    context = made.run(made.context())
    clean, spilling = [context.proposal(event.proposal) for event in of_kind(context, Evaluated)][:2]
    if "spills" in clean.candidate.source:
        clean, spilling = spilling, clean
    assert forecast_gains(context, [clean, spilling]).keys() == {clean.id, spilling.id}
    assert forecast_gains(context, [clean, spilling], spills=False).keys() == {clean.id}


def test_nothing_is_forecast_when_the_time_is_over_or_the_user_stops(shop: Callable[..., Any]) -> None:
    made = shop(slate=2, points=0, budget_s=1000.0, forecasts=4, rounds=1)
    made.skill("compute/a", "/* plain */", "/* a */", 0.5)
    context = made.run(made.context())
    proposals = [context.proposal(event.proposal) for event in of_kind(context, Evaluated)]
    assert forecast_gains(context, proposals)
    context.budget = context.budget.model_copy(update={"seconds": 0.0})
    assert not forecast_gains(context, proposals)
    context.budget = context.budget.model_copy(update={"seconds": None})
    context.stop.is_set = True
    assert not forecast_gains(context, proposals)


def test_nothing_is_forecast_without_a_limit_of_device_time(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=0, forecasts=8, rounds=1)
    made.skill("compute/a", "/* plain */", "/* a */", 0.5)
    made.skill("compute/b", "/* plain */", "/* b */", 0.6)
    context = made.run(made.context())
    assert not getattr(context.evaluator, "asked", [])


def test_the_points_of_a_family_are_tried_in_the_order_of_their_forecasts(shop: Callable[..., Any]) -> None:
    made = shop(slate=1, points=6, budget_s=1000.0, forecasts=12, rounds=1)
    made.skill("compute/widen", "/* plain */", "/* wide */", WIDTHS, fields=PARAMETERS)
    context = made.run(made.context())
    search = context.run.get(SEARCHES, of_kind(context, Searched)[0].slate, ParameterSearch)
    order = [dict(trial.steps[0].parameters)["width"] for trial in search.trials]
    assert order == ["8", "2", "1", "4"]


def test_a_point_far_down_that_a_forecast_leads_to_is_tried_early_and_learned_from(
    shop: Callable[..., Any],
) -> None:
    made = shop(slate=1, points=6, budget_s=1000.0, forecasts=12, rounds=1)
    widths = {str(n): 0.9 for n in range(59)} | {"59": 0.2}
    fields = f"parameters:\n  - {{name: width, values: {[*widths]}}}".replace("'", '"')
    made.skill("compute/widen", "/* plain */", "/* wide */", widths, fields=fields)
    context = made.run(made.context())
    search = context.run.get(SEARCHES, of_kind(context, Searched)[0].slate, ParameterSearch)
    assert [trial.steps[0].parameters for trial in search.trials][:2] == [
        (("width", "0"),),
        (("width", "59"),),
    ]
    assert context.pool is not None
    best = [row for row in context.pool.experiences() if row.steps[0].parameters == (("width", "59"),)]
    assert {row.slate for row in best} == {search.slate, of_kind(context, Ranked)[0].slate}


def test_the_best_of_a_brief_look_is_evaluated_though_the_budget_is_spent(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=0, budget_s=1000.0)
    for name, ms in (("a", 0.9), ("b", 0.3), ("c", 0.31)):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms)
    first = made.context()
    rounds.establish(first, made.original)
    first.budget = first.budget.model_copy(update={"device_seconds": 1e-6})
    rounds.run_rounds(first)
    evaluated = of_kind(first, Evaluated)
    assert [event.depth for event in evaluated] == ["cheap", "search"]


def test_what_had_its_brief_look_before_the_budget_was_spent_is_evaluated(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=0, budget_s=1000.0, rounds=1)
    for name, ms in (("a", 0.9), ("b", 0.3), ("c", 0.5)):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms)
    for _ in range(2):
        with pytest.raises(RunInterrupted):
            made.run(made.context(stop_at=Evaluated))
    last = made.context()
    last.budget = last.budget.model_copy(update={"device_seconds": 1e-6})
    rounds.run_rounds(last)
    evaluated = of_kind(last, Evaluated)
    assert [event.depth for event in evaluated] == ["cheap", "cheap", "search"]
    assert "ms=0.3" in best_source(last) or "ms=0.5" in best_source(last)


def test_a_round_with_a_brief_look_goes_on_where_it_was_stopped(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=0, budget_s=1000.0)
    for name, ms in (("a", 0.9), ("b", 0.3), ("c", 0.31)):
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", ms)
    whole = made.run(made.context("whole"))
    for _ in range(4):
        with pytest.raises(RunInterrupted):
            made.run(made.context("cut", stop_at=Evaluated))
    done = made.run(made.context("cut"))
    seen = [[(e.candidate, e.depth) for e in of_kind(c, Evaluated)] for c in (whole, done)]
    assert seen[0] == seen[1]


def test_of_limited_device_time_only_the_best_families_are_searched(shop: Callable[..., Any]) -> None:
    made = shop(slate=3, points=6, budget_s=1000.0)
    for name, prior, first in (("a", 0.3, 1.1), ("b", 0.2, 0.6), ("c", 0.1, 0.9)):
        values = {**WIDTHS, "8": first}
        made.skill(f"compute/{name}", "/* plain */", f"/* {name} */", values, fields=PARAMETERS, prior=prior)
    context = made.run(made.context())
    (searched,) = of_kind(context, Searched)
    assert searched.label.startswith("b(")
    assert searched.timed == 4
    assert "ms=0.5" in best_source(context)
    assert len(of_kind(context, Judged)) == 3
