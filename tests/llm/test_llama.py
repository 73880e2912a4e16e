"""A real llama.cpp server: streamed answers, answers held to a schema, a prompt that is too long."""

import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.llm.base import ModelAnswer, ModelFailure
from kernelskill.llm.models import open_model
from kernelskill.llm.outlook import look_at_model
from tests.llm.asking import request

pytestmark = [
    pytest.mark.slow,
    # Elsewhere both belong to the `dev` extra: without them this fails rather than being skipped unseen.
    pytest.mark.skipif(platform.machine() != "x86_64", reason="xllamacpp has wheels for x86-64 alone"),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "skill": {"enum": ["unroll", "tile"]},
        "exact": {"type": "boolean"},
        "factors": {"type": "array", "items": {"enum": [2, 4, 8]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["skill", "exact", "factors"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("llama")
    program = Path(__file__).with_name("llama_server.py")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(program), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        address = next((line.strip() for line in process.stdout if line.startswith("http")), "")
        assert address, (folder / "log").read_text()
        yield f"openai:tiny@{address}/v1"
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def test_answers_fit_the_schema(llama: str) -> None:
    model = open_model(llama)
    assert model is not None
    replies = model.ask([request(answer_schema=SCHEMA, sample=number) for number in range(3)])
    for reply in replies:
        assert isinstance(reply, ModelAnswer), reply
        answer = json.loads(reply.text)
        assert answer["skill"] in ("unroll", "tile")
        assert isinstance(answer["exact"], bool)
        assert 1 <= len(answer["factors"]) <= 3
        assert reply.usage.requests == 1
        assert not reply.usage.estimated
        assert reply.usage.input_tokens > 5
        assert reply.usage.cost_usd == 0.0


def test_free_text_is_cut_at_its_limit(llama: str) -> None:
    model = open_model(llama)
    assert model is not None
    (reply,) = model.ask([request("Say something.", max_output_tokens=24, temperature=0.0)])
    assert isinstance(reply, ModelAnswer), reply
    assert reply.truncated
    assert reply.usage.output_tokens == 24


def test_a_prompt_that_does_not_fit_is_one_clear_line(llama: str) -> None:
    model = open_model(llama)
    assert model is not None
    (reply,) = model.ask([request("x = x + 1;\n" * 200)])
    assert isinstance(reply, ModelFailure)
    assert reply.kind == "context_overflow"
    assert reply.usage.requests == 1


def test_doctor_finds_the_model(llama: str) -> None:
    assert look_at_model(llama).usable
