"""A key that is planted in the environment comes out nowhere, whatever a server does with it."""

import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelskill.isolation.child import Limits, clean_environment, run_child
from kernelskill.llm.outlook import look_at_key, look_at_model
from tests.flow.small_task import TEST, environment, of_kind, program, write_task
from tests.llm.asking import Server

SECRET = "sk-plant3d-7f3a9c1e5b8d2046x9z1q"
VARIABLES = ("OPENAI_API_KEY", "KERNELSKILL_API_KEY")
SHORT = """\
[run]
device = "emulated"
rounds = 1
slate = 1
points = 0
trials = 1
confirm = false
"""
WATCHFUL = """
import os
for name, value in os.environ.items():
    if "plant3d" in value:
        raise RuntimeError("the test can see " + name)
"""


def pieces() -> Iterator[bytes]:
    for start in range(len(SECRET) - 7):
        yield SECRET[start : start + 8].encode()


def traces(folder: Path, *, since: float = 0.0) -> list[str]:
    """Files below a folder, written since then, that hold a piece of the key."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_mtime >= since:
            data = path.read_bytes()
            found += [f"{path}: {piece!r}" for piece in pieces() if piece in data]
    return found


def own_places(folder: Path) -> dict[str, str]:
    names = ("data", "config", "state")
    for name in names:
        (folder / name).mkdir(parents=True)
    return {f"XDG_{name.upper()}_HOME": str(folder / name) for name in names}


@pytest.mark.slow
def test_a_whole_run_leaves_no_trace_of_the_key(server: Server, tmp_path: Path) -> None:
    scenario = server.scenario("leak=500", "echo", "leakstream", "echo", "leak=418", "echo")
    write_task(tmp_path / "task", test=TEST + WATCHFUL, settings=SHORT)
    places = own_places(tmp_path / "home")
    env = environment(**places, OPENAI_API_KEY=SECRET, OPENAI_LOG="debug", KERNELSKILL_MODEL_ATTEMPTS="1")
    started = time.time() - 1
    done = program(
        *("run", "kernel.cu", "--tests", "test.py", "--out", "run"),
        *("--model", f"openai:m@{scenario}/v1", "--samples", "2", "--repairs", "1"),
        cwd=tmp_path / "task",
        env=env,
    )
    assert done.returncode in (0, 5), done.stdout + done.stderr
    asked = server.log(scenario)["requests"]
    assert len(asked) >= 4
    assert {row["authorization"] for row in asked} == {f"Bearer {SECRET}"}
    assert of_kind(tmp_path / "task" / "run", "model_failed")
    assert of_kind(tmp_path / "task" / "run", "answered")
    (tmp_path / "out").write_text(done.stdout + done.stderr)
    assert traces(tmp_path) == []
    assert traces(Path(os.environ["XDG_CACHE_HOME"]), since=started) == []
    for base in (tmp_path / "home").rglob("*.sqlite"):
        assert SECRET not in "\n".join(sqlite3.connect(base).iterdump())


def test_an_error_before_the_run_does_not_show_the_key(tmp_path: Path) -> None:
    write_task(tmp_path)
    done = program(
        *("run", "kernel.cu", "--tests", "test.py", "--model", "openai:m@http://a.example/v1"),
        cwd=tmp_path,
        env=environment(OPENAI_API_KEY=SECRET),
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert not any(piece.decode() in done.stdout + done.stderr for piece in pieces())


def test_children_do_not_inherit_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, "ANTHROPIC_API_KEY", "HF_TOKEN", "HTTPS_PROXY"):
        monkeypatch.setenv(name, SECRET)
    assert SECRET not in clean_environment().values()
    code = "import os; print(dict(os.environ))"
    done = run_child([sys.executable, "-c", code], limits=Limits(wall_s=20), cwd=tmp_path)
    assert done.returncode == 0
    assert SECRET not in done.stdout
    assert SECRET in os.environ.values()


def test_doctor_tells_where_the_key_is_and_not_the_key(server: Server, tmp_path: Path) -> None:
    model = f"openai:gpt-large@{server.scenario('ok')}/v1"
    env = environment(OPENAI_API_KEY=SECRET, KERNELSKILL_MODEL=model)
    done = program("doctor", cwd=tmp_path, env=env)
    assert "from OPENAI_API_KEY" in done.stdout
    assert "gpt-large at 127.0.0.1, which has it" in done.stdout
    assert not any(piece.decode() in done.stdout + done.stderr for piece in pieces())


@pytest.mark.parametrize(
    ("name", "behaviour", "usable", "says"),
    [
        ("gpt-large", "ok", True, "gpt-large at 127.0.0.1, which has it"),
        ("gpt-huge", "ok", False, "which does not list it"),
        (
            "gpt-large",
            "badkey",
            False,
            "does not accept the key (401): Incorrect API key provided: Bearer [key]",
        ),
        ("gpt-large", "html404", True, "lists no models, so it was not tried"),
    ],
)
def test_a_model_is_looked_at_without_asking_it(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, behaviour: str, usable: bool, says: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    scenario = server.scenario(behaviour)
    found = look_at_model(f"openai:{name}@{scenario}/v1")
    assert says in found.detail
    assert found.usable is usable
    assert found.usable or found.remedy
    assert server.log(scenario)["requests"] == []


def test_a_wrong_key_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    found = look_at_key()
    assert "holds spaces" in found.detail
    assert "two words" not in found.detail + found.remedy
