"""Limits hold for every attempt at a real server, those tried again included."""

import pytest

from kernelskill.llm.base import ModelAnswer, ModelFailure
from kernelskill.llm.budget import Leash, ModelBudget, ModelLimits
from kernelskill.llm.openai_client import OpenAIModel
from tests.llm.asking import QUICK, Server, model_at, request


def budgeted(scenario: str, limits: ModelLimits, *, parallel: int = 4) -> ModelBudget:
    leash = Leash()
    patience = QUICK.model_copy(update={"parallel": parallel})
    model: OpenAIModel = model_at(scenario, patience=patience, again=leash)
    leash.budget = ModelBudget(model, limits)
    return leash.budget


def test_attempts_count_as_requests(server: Server) -> None:
    scenario = server.scenario("rate")
    budget = budgeted(scenario, ModelLimits(requests=3))
    (reply,) = budget.ask([request()])
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "budget"
    assert "limits the rate of requests" in reply.message
    assert "another attempt would pass the model's budget of 3 requests" in reply.message
    assert reply.remedy
    assert len(server.log(scenario)["requests"]) == 3 == budget.usage().requests
    assert budget.exhausted


@pytest.mark.parametrize("parallel", [1, 4])
def test_requests_side_by_side_do_not_pass_a_limit_together(server: Server, parallel: int) -> None:
    scenario = server.scenario("500", "ok", "500", "500", "ok", "500", "ok")
    budget = budgeted(scenario, ModelLimits(requests=6), parallel=parallel)
    replies = budget.ask([request(str(number)) for number in range(5)])
    assert len(replies) == 5
    assert len(server.log(scenario)["requests"]) == budget.usage().requests <= 6
    assert any(isinstance(reply, ModelAnswer) for reply in replies)


def test_cut_answers_count_as_tokens(server: Server) -> None:
    scenario = server.scenario("cut")
    one = request("a long question " * 20, max_output_tokens=50)
    most = ModelBudget(model_at(scenario), ModelLimits()).estimate(one).tokens
    budget = budgeted(scenario, ModelLimits(tokens=2 * most))
    (reply,) = budget.ask([one])
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "budget"
    assert 0 < budget.usage().tokens <= 2 * most
    assert budget.usage().estimated
    assert 1 < len(server.log(scenario)["requests"]) < 6


def test_finding_the_form_that_a_server_takes_counts_too(server: Server) -> None:
    scenario = server.scenario("no-format")
    budget = budgeted(scenario, ModelLimits(requests=2))
    (reply,) = budget.ask([request(answer_schema={"type": "object"})])
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "budget"
    assert len(server.log(scenario)["requests"]) == 2
