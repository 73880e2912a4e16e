import threading
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.errors import UsageError
from kernelskill.llm.base import Message, ModelAnswer, ModelFailure, ModelRequest, Pending, Reply, Usage
from kernelskill.llm.budget import ModelBudget, ModelLimits
from kernelskill.llm.prices import FREE, Price

PRICE = Price(input=1.0, output=10.0, date="2026-01-01", source="a test")


def request(text: str = "x", *, role: str = "memory", output: int = 100) -> ModelRequest:
    return ModelRequest(role=role, messages=(Message(role="user", text=text),), max_output_tokens=output)


class Taking:
    """Takes the tokens that it is told to."""

    name = "taking"

    def __init__(self, output_tokens: int = 10, *, fails: bool = False) -> None:
        self.asked = 0
        self.most = 0
        self._output = output_tokens
        self._fails = fails

    def ask(self, requests: Sequence[ModelRequest]) -> tuple[Reply, ...]:
        self.asked += len(requests)
        self.most = max(self.most, len(requests))
        return tuple(self._reply(request) for request in requests)

    def _reply(self, asked: ModelRequest) -> Reply:
        usage = Usage(input_tokens=5, output_tokens=self._output)
        if self._fails:
            return ModelFailure(request=asked.digest, kind="server", message="m", remedy="r", usage=usage)
        return ModelAnswer(request=asked.digest, model=self.name, text="y", usage=usage)


def kinds(replies: Sequence[Reply]) -> list[str]:
    return [reply.kind if isinstance(reply, ModelFailure) else "answer" for reply in replies]


def test_requests_are_counted_and_the_last_is_refused_with_what_to_do() -> None:
    model = Taking()
    budget = ModelBudget(model, ModelLimits(requests=2))
    replies = budget.ask([request("a"), request("b"), request("c")])
    assert kinds(replies) == ["answer", "answer", "budget"]
    assert model.asked == 2
    failure = replies[2]
    assert isinstance(failure, ModelFailure)
    assert "would pass the model's budget of 2 requests" in failure.message
    assert "resume" in failure.remedy
    assert budget.exhausted == "the model's budget of 2 requests"


def test_what_an_answer_can_take_is_set_aside_before_it_is_asked() -> None:
    model = Taking(output_tokens=10)
    budget = ModelBudget(model, ModelLimits(tokens=130))
    assert kinds(budget.ask([request("a"), request("b")])) == ["answer", "answer"]
    assert model.most == 1, "both at once could have passed the limit"
    assert kinds(budget.ask([request("c", output=200)])) == ["budget"]
    assert budget.usage().tokens == 30


def test_money_is_limited_by_price() -> None:
    budget = ModelBudget(Taking(output_tokens=100), ModelLimits(usd=0.003), price=PRICE)
    replies = budget.ask([request("a"), request("b"), request("c"), request("d")])
    assert kinds(replies) == ["answer", "answer", "budget", "budget"]
    assert budget.usage().cost_usd == pytest.approx(2 * (5 + 1000) / 1e6)
    assert "0.003 USD" in budget.exhausted


def test_money_cannot_be_limited_without_a_price() -> None:
    with pytest.raises(UsageError, match="no price is known for 'taking'"):
        ModelBudget(Taking(), ModelLimits(usd=1.0))
    ModelBudget(Taking(), ModelLimits(usd=0.0), price=FREE)


def test_a_request_beyond_what_the_price_covers_is_not_sent_on_a_money_limit() -> None:
    price = PRICE.model_copy(update={"longest_input": 50})
    budget = ModelBudget(Taking(), ModelLimits(usd=100.0), price=price)
    assert kinds(budget.ask([request("x" * 1000)])) == ["budget"]


def test_failures_count_for_what_they_took_and_pending_ones_for_nothing() -> None:
    budget = ModelBudget(Taking(fails=True), ModelLimits(tokens=200))
    assert kinds(budget.ask([request("a")])) == ["server"]
    assert budget.usage().tokens == 15

    class Waiting(Taking):
        def _reply(self, asked: ModelRequest) -> Reply:
            return Pending(request=asked.digest, where="there")

    budget = ModelBudget(Waiting(), ModelLimits(requests=1))
    assert isinstance(budget.ask([request("a")])[0], Pending)
    assert isinstance(budget.ask([request("b")])[0], Pending)
    assert budget.usage().requests == 0


def test_usage_is_kept_by_role() -> None:
    budget = ModelBudget(Taking(), ModelLimits(), price=PRICE)
    budget.ask([request("a", role="memory"), request("b", role="compute"), request("c", role="memory")])
    found = budget.usage_by_role()
    assert list(found) == ["compute", "memory"]
    assert found["memory"].requests == 2
    assert found["memory"].output_tokens == 20
    assert found["memory"].cost_usd == pytest.approx(2 * 105 / 1e6)


def test_an_unknown_price_makes_an_unknown_sum() -> None:
    budget = ModelBudget(Taking(), ModelLimits())
    budget.ask([request("a")])
    assert budget.usage().cost_usd is None


def test_the_estimate_is_of_the_worst() -> None:
    found = ModelBudget(Taking(), ModelLimits(), price=PRICE).estimate(request("x" * 400, output=50))
    assert found.input_tokens >= 100
    assert found.output_tokens == 50
    assert found.estimated
    assert found.cost_usd == pytest.approx((found.input_tokens + 500) / 1e6)


def test_a_model_that_raises_gives_back_what_was_set_aside() -> None:
    class Broken(Taking):
        def _reply(self, asked: ModelRequest) -> Reply:
            raise OSError("disk full")

    budget = ModelBudget(Broken(), ModelLimits(requests=1))
    for _ in range(3):
        with pytest.raises(OSError, match="disk full"):
            budget.ask([request("a")])


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_threads_together_never_pass_a_limit(limit: int, batches: list[int]) -> None:
    model = Taking()
    budget = ModelBudget(model, ModelLimits(requests=limit, tokens=limit * 200))
    found: list[Reply] = []

    def work(number: int, count: int) -> None:
        found.extend(budget.ask([request(f"{number}.{i}") for i in range(count)]))

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(batches)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(found) == sum(batches)
    assert model.asked == min(limit, sum(batches)) == budget.usage().requests
