"""A chat without a terminal: commands are piped in, nobody is asked, programs can read what comes out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.flow.processes import descendants, until
from tests.flow.small_task import COMMAND, KERNEL, environment, of_kind, write_task
from tests.flow.test_chat import SETTINGS
from tests.flow.test_model_run import WIN, program

pytestmark = pytest.mark.slow
EXPLANATION = "Jede Spalte wartet auf ihre eigene Summe: größere Gitter helfen."
SCRIPT = {
    "model": "polite",
    "answers": [
        {"role": "memory", "text": WIN},
        {"role": "compute", "text": "NOTHING: no"},
        {"role": "parallelism", "text": "NOTHING: no"},
        {"role": "answer", "text": EXPLANATION},
    ],
}
STAGES = "KERNELSKILL_CHAT_STAGES"


def piped(
    lines: list[str] | bytes, *arguments: str, cwd: Path, **env: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Hold a chat over a pipe; returns how it ended and its lines."""
    script = lines if isinstance(lines, bytes) else ("\n".join(lines) + "\n").encode()
    done = subprocess.run(
        [*COMMAND, "chat", *arguments], input=script, cwd=cwd, env=environment(**env), capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err), out.splitlines()


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("piped")
    write_task(folder, settings=SETTINGS)
    (folder / "script.yaml").write_text(yaml.safe_dump(SCRIPT, allow_unicode=True), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def spoken(work: Path) -> list[dict[str, Any]]:
    """The lines of a chat with a scripted model, from a fresh start to an exported file."""
    script = [
        "step",
        "what limits it?",
        "tree",
        "stop",
        "export fast.cu",
        "!exit 3",
        "export",
        "quit",
        "best",
    ]
    arguments = (
        "kernel.cu",
        "-t",
        "test.py",
        "--no-learn",
        "--out",
        "run",
        "--model",
        "scripted:script.yaml",
    )
    done, lines = piped(script, *arguments, "--json", cwd=work)
    assert done.stderr == ""
    assert done.returncode == 1, [line for line in lines if '"error"' in line]
    return [json.loads(line) for line in lines]


def answers(spoken: list[dict[str, Any]], command: str) -> list[dict[str, Any]]:
    return [line for line in spoken if line["kind"] == "answer" and line["command"] == command]


def test_every_line_is_an_object_and_every_command_has_its_answer(spoken: list[dict[str, Any]]) -> None:
    commands = [line["command"] for line in spoken if line["kind"] == "answer"]
    assert commands == ["step", "say", "tree", "stop", "export", "!", "export", "quit"]
    assert [line["kind"] for line in spoken].count("status") == len(commands)
    assert {"run_started", "baseline_measured", "judged", "round_finished", "run_finished"} <= {
        line["kind"] for line in spoken
    }
    assert spoken[-1]["kind"] == "end"
    assert spoken[-1]["exit_code"] == 1
    assert spoken[-1]["resume"] == "kernelskill chat --resume run"


def test_a_models_change_is_found_and_its_explanation_shown(spoken: list[dict[str, Any]], work: Path) -> None:
    (step,) = answers(spoken, "step")
    assert step["ok"]
    assert step["result"]["head"]["origin"] == "model"
    (said,) = answers(spoken, "say")
    assert said["result"]["kind"] == "answer"
    assert said["result"]["explanation"]["source"] == "model"
    assert said["result"]["explanation"]["lines"] == [EXPLANATION]
    assert "part[threadIdx.y][threadIdx.x]" in (work / "fast.cu").read_text(encoding="utf-8")


def test_borders_answer_safely_and_say_so(spoken: list[dict[str, Any]], work: Path) -> None:
    borders = [(line["border"], line["answer"]) for line in spoken if line["kind"] == "border"]
    assert borders == [("first_run", "yes"), ("write", "no")]
    first, second = answers(spoken, "export")
    assert first["ok"]
    assert not second["ok"]
    assert (work / "kernel.cu").read_text(encoding="utf-8") == KERNEL


def test_plain_lines_errors_and_exit_codes(spoken: list[dict[str, Any]], work: Path) -> None:
    script = (
        "# größer\nrun tow\n/exprot\nshow \\\noriginal\n! printf 'gr\\303\\266\\303\\237er\\n'\n".encode()
    )
    script += b"\xff\xfe\n" + "共有メモリは使わないで\nexport\nbest".encode()
    options = ("--model", "none", "--patience", "2", "--samples", "3", "--yes")
    done, lines = piped(script, "--resume", "run", *options, cwd=work, PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    kept = of_kind(work / "run", "configured")[-1].changes
    assert kept == {"model": "none", "patience": 2, "samples": 3}, "the next resume begins with that"
    text = "\n".join(lines)
    assert "> run tow\n/run: n is 'tow'\n  give a whole number" in text
    assert "did you mean /export or /report?" in text
    assert "Half the sum of every column" in text
    assert "line 7 of the input is no UTF-8" in text
    assert "\\u5171" in text, "what this output cannot show is spelled out"
    assert "größer" in text, "the shell writes for itself"
    assert "kernel.cu" in text
    assert "> best\nhead #" in text
    assert text.rstrip().endswith("kernelskill chat --resume run")
    assert "\x1b" not in done.stdout
    assert "part[threadIdx.y][threadIdx.x]" in (work / "kernel.cu").read_text(encoding="utf-8")
    (work / "kernel.cu").write_text(KERNEL, encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to work on"),
        (["kernel.cu"], "a kernel needs its test"),
        (["nowhere.cu", "-t", "test.py"], "nowhere.cu"),
        (["--resume", "nowhere"], "holds no run"),
        (["--resume", "run", "kernel.cu"], "has its kernel"),
        (["--resume", "run", "--accept-weak-test"], "judged when the run began"),
        (["kernel.cu", "-t", "test.py", "--answer", "file=yes"], "--answer is 'file=yes'"),
        (["kernel.cu", "-t", "test.py", "--model", "gpt"], "gpt"),
        (["kernel.cu", "-t", "test.py", "--out", "run"], "already holds a run"),
    ],
)
def test_a_chat_that_cannot_begin(
    spoken: list[dict[str, Any]], work: Path, arguments: list[str], message: str
) -> None:
    code, out, err = program("chat", *arguments, cwd=work)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 2, "one line and a remedy"


def has_begun(process: subprocess.Popen[bytes]) -> bool:
    """Whether the program has started something, or has ended."""
    return bool(descendants(process.pid)) or process.poll() is not None


@pytest.mark.skipif(STAGES not in os.environ, reason=f"set {STAGES}=1 to stop a chat at many moments")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_chat_that_is_stopped_at_any_moment_goes_on(tmp_path: Path, number: int) -> None:
    write_task(tmp_path, settings=SETTINGS)
    delay, begun = 0.5, False
    while True:
        arguments = (
            ["--resume", "run"] if begun else ["kernel.cu", "-t", "test.py", "--no-learn", "--out", "run"]
        )
        process = subprocess.Popen(
            [*COMMAND, "chat", *arguments], cwd=tmp_path, env=environment(), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b"run 2\nstop\n")
        process.stdin.flush()
        if number == signal.SIGINT:  # before that Python may still read modules, and answers for itself
            until(partial(has_begun, process), 300, "never began")
        time.sleep(delay)
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
        assert b"Traceback" not in err, err.decode()
        assert process.returncode in (0, 130, -number), err.decode()
        events = tmp_path / "run" / "events.jsonl"
        begun = events.exists() and b'"kind":"baseline_measured"' in events.read_bytes()
        if begun and of_kind(tmp_path / "run", "run_finished"):
            break
        delay *= 1.4
    until(lambda: bool(of_kind(tmp_path / "run", "confirmed")), what="never confirmed")
