"""A run whose evaluations are made by a worker in another process, on one folder."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.flow.processes import adopt_orphans, kill, no_descendants_left, until
from tests.flow.small_task import (
    COMMAND,
    SETTINGS,
    environment,
    evaluation_files,
    kernelskill,
    kinds,
    of_kind,
    optimised,
    outcome,
    program,
    write_task,
)

pytestmark = pytest.mark.slow
SMALL = SETTINGS.replace("slate = 3", "slate = 2").replace("points = 2", "points = 1")
"""Every turn starts two programs; two rounds of two proposals have all kinds of jobs."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task and a run on this machine in `out`."""
    adopt_orphans()
    folder = tmp_path_factory.mktemp("spool")
    write_task(folder, settings=SMALL)
    optimised("run", "kernel.cu", "-t", "test.py", "-q", "--no-learn", "--out", "out", cwd=folder)
    return folder


def start(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def spool_command(work: Path, name: str) -> list[object]:
    (work / name).mkdir()
    shutil.copy(work / "out" / "seeds.json", work / name / "seeds.json")
    return [
        "run", "kernel.cu", "-t", "test.py", "--no-learn", "--device", f"spool:spool {name}", "--out", name,
    ]  # fmt: skip


def found(run: Path) -> object:
    """Verdicts without the keys, which name the device."""
    told = outcome(run)
    return told["best"], told["judged"]


def test_a_worker_killed_in_the_middle_and_its_successor_find_what_a_local_run_finds(work: Path) -> None:
    spool = work / "spool killed"
    client = start(*spool_command(work, "killed"), cwd=work)
    worker = start("worker", spool, "--device", "emulated", cwd=work)
    until(lambda: len(list((spool / "results").glob("*.json"))) >= 3, 120, "the worker answers nothing")
    kill(worker)
    successor = start("worker", spool, "--device", "emulated", cwd=work)
    text, _ = client.communicate(timeout=240)
    successor.send_signal(signal.SIGINT)
    said, _ = successor.communicate(timeout=180)
    assert successor.returncode == 130
    assert "jobs done" in said
    assert client.returncode == 0, text
    assert "Traceback" not in said, said
    no_descendants_left()
    assert found(work / "killed") == found(work / "out")
    finished = of_kind(work / "killed", "run_finished")[0]
    assert finished.evidence == "estimated"
    assert "| device | emulated:h200 |" in (work / "killed" / "report.md").read_text()
    assert (work / "killed/result/kernel.cu").read_bytes() == (work / "out/result/kernel.cu").read_bytes()


def test_a_run_and_a_worker_that_take_turns_come_to_the_same_end(work: Path) -> None:
    begin = spool_command(work, "turns")
    # The first turn is two programs, as it is on two machines; the others go through their own entry.
    first = program(*begin, "--no-wait", cwd=work)
    assert first.returncode == 4, first.stdout + first.stderr
    assert "kernelskill worker" in first.stderr
    for turn in range(40):
        take = kernelskill if turn else program
        worked = take("worker", "spool turns", "--device", "emulated", "--until-empty", cwd=work)
        assert worked.returncode == 0, worked.stdout + worked.stderr
        assert "done" in worked.stdout
        again = kernelskill("resume", "turns", "--no-wait", cwd=work)
        if again.returncode != 4:
            break
        assert turn < 39
    assert again.returncode == 0, again.stdout + again.stderr
    assert found(work / "turns") == found(work / "out")
    assert kinds(work / "turns").count("run_finished") == 1
    keys = [event.evaluation for event in of_kind(work / "turns", "evaluated")]
    assert len(keys) == len(set(keys))
    assert evaluation_files(work / "turns")


def test_a_run_that_waits_says_for_what(work: Path) -> None:
    client = start(*spool_command(work, "waiting"), cwd=work)
    assert client.stdout is not None
    line = ""
    while "wait" not in line:
        line = client.stdout.readline()
        assert line, "the run ended"
    assert "spool waiting" in line or "worker" in line
    client.send_signal(signal.SIGINT)
    client.send_signal(signal.SIGINT)
    kill(client)
    no_descendants_left()
