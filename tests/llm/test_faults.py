"""Every fault of a server ends in an answer after retries, or in one clear line."""

import itertools
import socket
import time
from typing import Any

import pytest

from kernelskill.errors import UsageError
from kernelskill.llm.base import ModelAnswer, ModelFailure, Reply
from kernelskill.llm.keys import Key
from kernelskill.llm.models import open_model
from tests.llm.asking import QUICK, Server, model_at, request

SCHEMA = {
    "type": "object",
    "properties": {"echo": {"type": "string"}},
    "required": ["echo"],
    "additionalProperties": False,
}


def ask(scenario: str, **fields: Any) -> Reply:
    return model_at(scenario).ask([request(**fields)])[0]


@pytest.mark.parametrize(
    ("behaviours", "requests"),
    [
        ("rate,ok", 2),
        ("rate=100ms,rate,ok", 3),
        ("500,ok", 2),
        ("503,html502,ok", 3),
        ("cut,ok", 2),
        ("cutchunk,ok", 2),
        ("hangup,ok", 2),
        ("stall=1.5,ok", 2),
        ("silent=1.5,ok", 2),
        ("badjson,ok", 2),
        ("notjson,ok", 2),
        ("strange,ok", 2),
        ("empty,ok", 2),
        ("blank,ok", 2),
        ("nothing,ok", 2),
        ("midway=busy,ok", 2),
        ("slow=0.3", 1),
        ("no-broken-stream", 3),
        ("no-stream", 2),
        ("no-stream-silent", 3),
        ("no-usage", 2),
        ("no-limit", 2),
        ("no-long", 2),
        ("no-room", 2),
        ("no-room-old", 2),
    ],
)
def test_what_passes_is_tried_again(server: Server, behaviours: str, requests: int) -> None:
    scenario = server.scenario(*behaviours.split(","))
    reply = ask(scenario)
    assert isinstance(reply, ModelAnswer), reply
    assert reply.text == "You said: hello"
    assert not reply.truncated
    assert reply.usage.requests == requests == len(server.log(scenario)["requests"])
    assert reply.usage.input_tokens > 0


@pytest.mark.parametrize(
    ("behaviour", "kind", "says", "requests"),
    [
        ("rate", "server", "limits the rate of requests (429): Rate limit reached after 6 attempts", 6),
        ("rate=9999", "server", "Rate limit reached; it asks to wait 9999 s", 1),
        ("500", "server", "failed (500): internal error after 6 attempts", 6),
        ("html502", "server", "failed (502): 502 Bad Gateway", 6),
        ("cut", "unreachable", "broke off in the middle of an answer", 6),
        ("hangup", "unreachable", "cannot be reached", 3),
        ("drip=5", "unreachable", "did not answer in time", 3),
        ("badjson", "malformed", "sent invalid JSON", 6),
        ("empty", "malformed", "sent an empty answer", 6),
        ("strange", "malformed", "sent an empty answer", 6),
        ("think", "malformed", "used its whole limit of output tokens", 1),
        ("thinking=cut", "malformed", "used its whole limit of output tokens", 1),
        ("html", "unreachable", "sent a web page instead of an answer", 1),
        ("html404", "unreachable", "has no chat completions at this address (404)", 1),
        ("redirect", "unreachable", "redirects (307)", 1),
        ("context", "context_overflow", "cannot take so long a request (400)", 1),
        ("no-room-at-all", "context_overflow", "cannot take so long a request (400)", 1),
        ("context-llama", "context_overflow", "cannot take so long a request (400)", 1),
        ("midway=context", "context_overflow", "prompt is too long", 1),
        ("refusal", "refusal", "declined to answer: I will not do that.", 1),
        ("filter", "refusal", "its content filter stopped it", 1),
        ("policy", "refusal", "declined to answer (400)", 1),
        ("badkey", "bad_key", "does not accept the key (401)", 1),
        ("html403", "bad_key", "does not accept the key (403): Blocked", 1),
        ("quota", "bad_key", "wants payment (429)", 1),
        ("payment", "bad_key", "wants payment (402)", 1),
        ("nomodel", "unknown_model", "has no such model (404)", 1),
        ("nomodel-ollama", "unknown_model", "has no such model (404)", 1),
        ("nomodel-400", "unknown_model", "has no such model (400)", 1),
        ("teapot", "server", "refused the request (418): short and stout", 2),
    ],
)
def test_what_does_not_pass_is_one_clear_line(
    server: Server, behaviour: str, kind: str, says: str, requests: int
) -> None:
    scenario = server.scenario(behaviour)
    reply = ask(scenario)
    assert isinstance(reply, ModelFailure), reply
    assert reply.kind == kind
    assert says in reply.message
    assert reply.message.startswith("m at 127.0.0.1 ")
    assert reply.remedy
    assert "\n" not in reply.message + reply.remedy
    assert len(server.log(scenario)["requests"]) == requests == reply.usage.requests


@pytest.mark.parametrize(
    ("behaviour", "form"),
    [
        ("ok", "json_schema"),
        ("no-schema", "json_object"),
        ("no-format", None),
        ("no-format-silent", None),
    ],
)
def test_structured_answers_fall_back_and_the_server_is_remembered(
    server: Server, behaviour: str, form: str | None
) -> None:
    scenario = server.scenario(behaviour)
    model = model_at(scenario)
    (first,) = model.ask([request(answer_schema=SCHEMA)])
    before = len(server.log(scenario)["requests"])
    (second,) = model.ask([request("again", answer_schema=SCHEMA)])
    log = server.log(scenario)["requests"]
    assert isinstance(first, ModelAnswer)
    assert isinstance(second, ModelAnswer)
    assert len(log) == before + 1
    last = log[-1]["body"]
    assert last.get("response_format", {}).get("type") == form
    prompt = last["messages"][-1]["content"]
    assert ("must fit this JSON schema" in prompt) == (form != "json_schema")
    assert ('"echo"' in prompt) == (form != "json_schema")


def test_a_server_that_dies_of_schemas_is_asked_in_words(server: Server) -> None:
    scenario = server.scenario("no-format-500")
    model = model_at(scenario)
    for text in ("one", "two", "three"):
        (reply,) = model.ask([request(text, answer_schema=SCHEMA)])
        assert isinstance(reply, ModelAnswer)
    assert "response_format" not in server.log(scenario)["requests"][-1]["body"]
    assert reply.usage.requests == 1


def test_a_single_failure_does_not_cost_the_schema(server: Server) -> None:
    scenario = server.scenario("500,ok")
    (reply,) = model_at(scenario).ask([request(answer_schema=SCHEMA)])
    assert isinstance(reply, ModelAnswer)
    assert server.log(scenario)["requests"][-1]["body"]["response_format"]["type"] == "json_schema"


def test_only_closed_schemas_are_called_strict(server: Server) -> None:
    open_schema = {"type": "object", "properties": {"echo": {"type": "string"}}}
    for schema, strict in ((SCHEMA, True), (open_schema, False)):
        scenario = server.scenario("ok")
        ask(scenario, answer_schema=schema)
        sent = server.log(scenario)["requests"][0]["body"]["response_format"]["json_schema"]
        assert sent["strict"] is strict
        assert sent["schema"] == schema


def test_temperature_and_system_messages_are_left_out_where_they_are_refused(server: Server) -> None:
    scenario = server.scenario("no-temperature")
    assert isinstance(ask(scenario, temperature=0.2), ModelAnswer)
    scenario = server.scenario("no-system")
    asked = request("hello")
    system = asked.messages[0].model_copy(update={"role": "system", "text": "Be short."})
    (reply,) = model_at(scenario).ask([asked.model_copy(update={"messages": (system, *asked.messages)})])
    assert isinstance(reply, ModelAnswer)
    (message,) = server.log(scenario)["requests"][-1]["body"]["messages"]
    assert message == {"role": "user", "content": "Be short.\n\nhello"}


@pytest.mark.parametrize(("header", "least"), [("1", 0.95), ("700ms", 0.65), ("date", 0.5)])
def test_retry_after_is_waited_for_by_all_requests(server: Server, header: str, least: float) -> None:
    scenario = server.scenario(f"rate={header}", "ok")
    model = model_at(scenario)
    assert all(isinstance(reply, ModelAnswer) for reply in model.ask([request("a")]))
    first, second = (row["at"] for row in server.log(scenario)["requests"])
    assert least <= second - first < 3.5


def test_waits_grow_and_differ(server: Server) -> None:
    scenario = server.scenario("500")
    patience = QUICK.model_copy(update={"first_wait_s": 0.1, "longest_wait_s": 0.4, "attempts": 5})
    model_at(scenario, patience=patience).ask([request()])
    times = [row["at"] for row in server.log(scenario)["requests"]]
    waits = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(waits) == 4
    for wait, (least, most) in zip(waits, [(0.05, 0.1), (0.1, 0.2), (0.2, 0.4), (0.2, 0.4)], strict=True):
        assert least <= wait < most + 0.4


def test_answers_come_in_the_order_asked_and_a_bounded_number_is_under_way(server: Server) -> None:
    scenario = server.scenario("ok=0.2")
    model = model_at(scenario, patience=QUICK.model_copy(update={"parallel": 3}))
    started = time.monotonic()
    replies = model.ask([request(str(number)) for number in range(7)])
    seconds = time.monotonic() - started
    assert [reply.text for reply in replies if isinstance(reply, ModelAnswer)] == [
        f"You said: {number}" for number in range(7)
    ]
    assert server.log(scenario)["most"] == 3
    assert 0.6 <= seconds < 3


def test_the_same_request_is_sent_once(server: Server) -> None:
    scenario = server.scenario("ok")
    replies = model_at(scenario).ask([request("a"), request("a"), request("a", sample=1)])
    assert len(server.log(scenario)["requests"]) == 2
    assert replies[0] == replies[1]


def test_after_a_bad_key_nothing_more_is_sent(server: Server) -> None:
    scenario = server.scenario("badkey")
    model = model_at(scenario, patience=QUICK.model_copy(update={"parallel": 1}))
    replies = model.ask([request(str(number)) for number in range(5)])
    assert {reply.kind for reply in replies if isinstance(reply, ModelFailure)} == {"bad_key"}
    assert len(server.log(scenario)["requests"]) == 1


def test_one_failure_does_not_take_the_others_along(server: Server) -> None:
    scenario = server.scenario("ok", "context", "ok")
    model = model_at(scenario, patience=QUICK.model_copy(update={"parallel": 1}))
    replies = model.ask([request("a"), request("b"), request("c")])
    assert [type(reply) for reply in replies] == [ModelAnswer, ModelFailure, ModelAnswer]


def test_a_wrong_name_gets_the_near_ones(server: Server) -> None:
    scenario = server.scenario("nomodel")
    (reply,) = model_at(scenario, name="gpt-larg").ask([request()])
    assert isinstance(reply, ModelFailure)
    assert reply.remedy == "did you mean gpt-large or gpt-small?"


def test_an_answer_that_reaches_its_limit_says_so(server: Server) -> None:
    reply = ask(server.scenario("long"))
    assert isinstance(reply, ModelAnswer)
    assert reply.truncated


@pytest.mark.parametrize("behaviour", ["thinking=whole", "thinking=begun", "parts"])
def test_thinking_is_no_part_of_the_answer(server: Server, behaviour: str) -> None:
    reply = ask(server.scenario(behaviour))
    assert isinstance(reply, ModelAnswer), reply
    assert reply.text == "int b;"


def test_halves_of_characters_are_joined_or_replaced(server: Server) -> None:
    reply = ask(server.scenario("halves"))
    assert isinstance(reply, ModelAnswer)
    assert reply.text == "a \U0001f680 b \ufffd c"
    assert ModelAnswer.model_validate_json(reply.model_dump_json()) == reply


def test_a_prompt_with_bytes_that_are_no_text_is_sent(server: Server) -> None:
    assert isinstance(ask(server.scenario("ok"), text="int \udcff;"), ModelAnswer)


def test_a_server_on_this_machine_needs_no_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert isinstance(ask(server.scenario("ok")), ModelAnswer)


def test_a_proxy_that_cannot_be_used_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "gopher://proxy.example")
    with pytest.raises(UsageError, match=r"no client for host\.example can be made") as caught:
        open_model("openai:m@https://host.example/v1")
    assert "HTTPS_PROXY" in caught.value.remedy


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    reply = ask(f"http://127.0.0.1:{port}")
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "unreachable"
    assert "cannot be reached ([Errno 111] Connection refused) after 3 attempts" in reply.message


def test_no_such_host() -> None:
    reply = ask("http://no-such-host.invalid")
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "unreachable"
    assert "cannot be reached" in reply.message


@pytest.mark.parametrize(
    "behaviour", ["echo", "badkey", "leak=500", "leak=400", "leak=418", "leakstream", "leak=404"]
)
def test_a_server_that_repeats_the_key_does_not_get_it_written(server: Server, behaviour: str) -> None:
    secret = "sk-planted-0123456789-abcdefghij"
    (reply,) = model_at(server.scenario(behaviour), key=Key(secret, "a test")).ask([request()])
    written = reply.model_dump_json() + repr(reply)
    assert "[key]" in written
    assert not any(secret[i : i + 8] in written for i in range(len(secret) - 7))


def test_the_spelling_leads_to_the_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = server.scenario("ok")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    model = open_model(f"openai:some/model:8b@{scenario}/v1/")
    assert model is not None
    (reply,) = model.ask([request()])
    assert isinstance(reply, ModelAnswer)
    assert reply.model == model.name == "some/model:8b"
    assert reply.usage.cost_usd == 0.0
    (sent,) = server.log(scenario)["requests"]
    assert sent["authorization"] == "Bearer sk-from-the-environment"
    assert sent["body"]["model"] == "some/model:8b"
