"""A program that is killed while it asks loses what was under way, and nothing that was answered."""

import json
import subprocess
import sys
import time
from pathlib import Path

from kernelskill.llm.base import ModelAnswer
from kernelskill.llm.budget import ModelLimits
from kernelskill.llm.models import open_budgeted
from tests.flow.small_task import environment
from tests.llm.asking import Server, request

ASKING = """
import sys
from pathlib import Path
from kernelskill.llm.models import open_model
from kernelskill.llm.base import ModelRequest

model = open_model(sys.argv[1], folder=Path(sys.argv[2]))
model.ask([ModelRequest.model_validate_json(line) for line in sys.stdin])
"""


def test_answers_that_came_before_a_kill_are_not_paid_for_again(server: Server, tmp_path: Path) -> None:
    scenario = server.scenario("ok=0.3")
    spec = f"openai:m@{scenario}/v1"
    requests = [request(str(number)) for number in range(8)]
    process = subprocess.Popen(
        [sys.executable, "-c", ASKING, spec, str(tmp_path)],
        stdin=subprocess.PIPE,
        env=environment(KERNELSKILL_MODEL_PARALLEL="1"),
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write("".join(f"{asked.model_dump_json()}\n" for asked in requests))
    process.stdin.close()
    kept = tmp_path / "answers.jsonl"
    deadline = time.monotonic() + 60
    while not kept.is_file() or kept.read_text().count("\n") < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    answered = len(kept.read_text().splitlines())
    sent = len(server.log(scenario)["requests"])
    assert 3 <= answered < 8

    model = open_budgeted(spec, ModelLimits(), folder=tmp_path)
    assert model is not None
    assert model.usage().requests == answered
    replies = model.ask(requests)
    assert [reply.text for reply in replies if isinstance(reply, ModelAnswer)] == [
        f"You said: {number}" for number in range(8)
    ]
    assert len(server.log(scenario)["requests"]) - sent == 8 - answered
    assert model.usage().requests == 8
    assert all(json.loads(line)["answer"] for line in kept.read_text().splitlines())
