"""A server of models in its own process, and models that are asked of it."""

import itertools
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelskill.llm.address import Address
from kernelskill.llm.base import Message, ModelRequest
from kernelskill.llm.keys import NO_KEY, Key
from kernelskill.llm.openai_client import Again, OpenAIModel, unlimited
from kernelskill.llm.patience import Patience

QUICK = Patience(first_wait_s=0.02, longest_wait_s=0.1, silence_s=1.0, connect_s=2.0, answer_s=2.0)


class Server:
    """One process; every scenario has a path of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._numbers = itertools.count()

    def scenario(self, *behaviours: str) -> str:
        return f"http://127.0.0.1:{self.port}/{next(self._numbers)}/{','.join(behaviours)}"

    def log(self, scenario: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{scenario}/log") as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@contextmanager
def serving() -> Iterator[Server]:
    """Start the server and stop it."""
    program = Path(__file__).with_name("server.py")
    process = subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Server(int(process.stdout.readline()))
    finally:
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def model_at(
    scenario: str,
    *,
    key: Key = NO_KEY,
    patience: Patience = QUICK,
    name: str = "m",
    again: Again = unlimited,
) -> OpenAIModel:
    return OpenAIModel(Address(model=name, url=f"{scenario}/v1"), key, patience=patience, again=again)


def request(text: str = "hello", **fields: Any) -> ModelRequest:
    return ModelRequest(
        role=fields.pop("role", "memory"), messages=(Message(role="user", text=text),), **fields
    )
