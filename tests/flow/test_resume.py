"""Runs that are killed, interrupted, moved or starved of space, and how they go on."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.flow.processes import adopt_orphans, kill, no_descendants_left
from tests.flow.small_task import (
    COMMAND,
    environment,
    evaluation_files,
    kernelskill,
    kinds,
    of_kind,
    optimised,
    outcome,
    write_task,
)

pytestmark = pytest.mark.slow
KILLS = 10


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task and one undisturbed run in `out`, with an experience pool of its own."""
    adopt_orphans()
    folder = tmp_path_factory.mktemp("resume")
    write_task(folder)
    run = kernelskill(
        "run", "kernel.cu", "-t", "test.py", "-q", "--out", "out", cwd=folder, env=own_pool(folder / "pool")
    )
    assert run.returncode == 0, run.stderr
    return folder


def own_pool(folder: Path) -> dict[str, str]:
    return environment(XDG_DATA_HOME=str(folder))


def start(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None, errors: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--json"],
        cwd=cwd,
        env=env or environment(),
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        start_new_session=True,
    )


def read_until(process: subprocess.Popen[str], kind: str) -> None:
    """Read events up to one of a kind."""
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["kind"] == kind:
            return
    raise AssertionError(f"no {kind} came")


def new_run(work: Path, name: str) -> tuple[Path, list[object]]:
    """Prepare a run that draws the seeds of the undisturbed one; returns its folder and command."""
    folder = work / name
    folder.mkdir()
    shutil.copy(work / "out" / "seeds.json", folder / "seeds.json")
    return folder, ["run", "kernel.cu", "-t", "test.py", "--out", name]


def killed_until_finished(work: Path, name: str, chance: random.Random, kills: int) -> int:
    """Kill a run at random moments, resume it, and let it finish in the end; returns how often it was killed."""
    folder, begin = new_run(work, name)
    env = own_pool(work / f"pool-{name}")
    known: dict[str, tuple[int, bytes]] = {}
    for count in range(kills):
        begun = (folder / "events.jsonl").exists() and b"\n" in (folder / "events.jsonl").read_bytes()
        process = start(*(["resume", name] if begun else begin), cwd=work, env=env)
        assert process.stdout is not None
        # Some die while they load, the others a moment after one of the next few events.
        lines = 0 if count % 5 == 4 else chance.randint(1, 5)
        for _ in range(lines):
            if not process.stdout.readline():
                break
        time.sleep(chance.uniform(0.0, 0.7) if lines else chance.uniform(0.3, 4.0))
        ended = process.poll() is not None
        kill(process)
        no_descendants_left()
        files = evaluation_files(folder)
        assert {file: files[file] for file in known} == known, "a finished evaluation was done again"
        known = files
        if ended:
            return count
    done = kernelskill("resume", name, "-q", cwd=work, env=env)
    assert done.returncode == 0, done.stderr
    files = evaluation_files(folder)
    assert {file: files[file] for file in known} == known, "a finished evaluation was done again"
    return kills


def assert_like_the_undisturbed(work: Path, name: str) -> None:
    assert outcome(work / name) == outcome(work / "out")
    assert set(evaluation_files(work / name)) == set(evaluation_files(work / "out"))
    keys = [event.evaluation for event in of_kind(work / name, "evaluated")]
    assert len(keys) == len(set(keys))
    log = (work / name / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in log] == list(range(len(log)))
    for file in ("result/kernel.cu", "result/reproducer.cu"):
        assert (work / name / file).read_bytes() == (work / "out" / file).read_bytes()


def test_a_run_killed_many_times_ends_like_one_that_was_not(work: Path) -> None:
    killed = killed_until_finished(work, "killed", random.Random(1), KILLS)
    assert killed >= 3
    assert_like_the_undisturbed(work, "killed")
    assert not list((work / "killed").rglob(".*.*.*")), "half-written files stay behind"


def test_ctrl_c_stops_after_the_evaluation_with_a_report_and_says_how_to_go_on(work: Path) -> None:
    folder, begin = new_run(work, "interrupted")
    env = own_pool(work / "pool-interrupted")
    process = start(*begin, cwd=work, env=env, errors=subprocess.PIPE)
    read_until(process, "evaluated")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == last["exit_code"] == 130
    assert last["remedy"] == "kernelskill resume interrupted"
    assert "stopping after this evaluation" in errors
    assert kinds(folder)[-1] == "interrupted"
    assert "kernelskill resume" in (folder / "report.md").read_text()
    no_descendants_left()
    done = kernelskill("resume", "interrupted", cwd=work, env=env)
    assert done.returncode == 0, done.stderr
    assert "resumed on NVIDIA H200" in done.stdout
    assert_like_the_undisturbed(work, "interrupted")
    assert "was interrupted" not in (folder / "report.md").read_text()


def test_sigterm_stops_like_ctrl_c_and_a_second_signal_at_once(work: Path) -> None:
    _, begin = new_run(work, "terminated")
    process = start(*begin, "--no-learn", cwd=work)
    read_until(process, "ranked")
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1])["exit_code"] == 130
    process = start("resume", "terminated", cwd=work, errors=subprocess.PIPE)
    read_until(process, "run_resumed")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("stopping after this evaluation")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert process.returncode == 130
    no_descendants_left()
    # The folder is given another name before the run goes on.
    (work / "terminated").rename(work / "moved \u00e4nd renamed")
    done = kernelskill("resume", "moved \u00e4nd renamed", "-q", cwd=work)
    assert done.returncode == 0, done.stderr
    log = (work / "moved \u00e4nd renamed" / "events.jsonl").read_text().splitlines()
    assert len({json.loads(line)["run"] for line in log}) == 1
    assert kinds(work / "moved \u00e4nd renamed").count("ranked") == 2


def test_a_finished_run_goes_on_where_more_rounds_are_asked_for(work: Path) -> None:
    shutil.copytree(work / "out", work / "more")
    done = optimised("resume", "more", "--more-rounds", "1", cwd=work)
    assert "round 3" in done.stdout
    assert "round 2" not in done.stdout
    assert [e.result.number for e in of_kind(work / "more", "round_finished")] == [1, 2, 3]
    confirmed = len(of_kind(work / "more", "confirmed"))
    again = optimised("resume", "more", cwd=work)
    assert "round" not in again.stdout.split("finished")[0]
    assert len(of_kind(work / "more", "confirmed")) == confirmed
    assert len(of_kind(work / "more", "run_finished")) == 3


def test_two_processes_do_not_work_on_one_run(work: Path) -> None:
    _, begin = new_run(work, "locked")
    process = start(*begin, "--no-learn", cwd=work)
    read_until(process, "run_started")
    refused = kernelskill("resume", "locked", cwd=work)
    kill(process)
    assert refused.returncode == 2
    assert "another process works on the run in 'locked'" in refused.stderr
    no_descendants_left()
    shutil.rmtree(work / "locked")


def test_a_run_killed_before_its_first_event_can_be_started_again(work: Path) -> None:
    folder, begin = new_run(work, "unborn")
    (folder / "events.jsonl").write_text('{"kind":"run_sta')
    refused = kernelskill("resume", "unborn", cwd=work)
    assert (refused.returncode, "holds no run" in refused.stderr) == (2, True)
    done = kernelskill(*begin, "-q", "--no-learn", "--rounds", "0", cwd=work)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(work: Path) -> None:
    settings = ["-q", "--no-learn", "--device", "replay:out"]
    # Without a pool other candidates are chosen than in the undisturbed run.
    _, begin = new_run(work, "plenty")
    assert kernelskill(*begin, *settings, cwd=work).returncode == 0
    _, begin = new_run(work, "full")
    command = [*COMMAND, *map(str, begin), *settings]
    script = 'ulimit -f 48; exec "$@"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *command],
        cwd=work, env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 6, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 2, done.stderr
    assert lines[0].startswith("kernelskill: cannot ")
    assert "full" in lines[0]
    assert "kernelskill resume full" in lines[1]
    again = kernelskill("resume", "full", "-q", cwd=work)
    assert again.returncode == 0, again.stderr
    assert outcome(work / "full") == outcome(work / "plenty")


def test_a_damaged_evaluation_is_done_again_and_kept_aside(work: Path) -> None:
    shutil.copytree(work / "out", work / "damaged")
    victim = sorted((work / "damaged" / "evaluations").iterdir())[0]
    whole = victim.read_bytes()
    victim.write_bytes(whole[: len(whole) // 2])
    optimised("resume", "damaged", "--more-rounds", "1", "-q", cwd=work)
    (work / "damaged" / "members").rename(work / "damaged" / "gone")
    done = kernelskill("resume", "damaged", cwd=work)
    assert done.returncode == 6
    assert "Traceback" not in done.stderr


@pytest.mark.skipif("KERNELSKILL_MANY_KILLS" not in os.environ, reason="set KERNELSKILL_MANY_KILLS=N to run")
def test_many_more_kills(work: Path) -> None:
    for number in range(int(os.environ["KERNELSKILL_MANY_KILLS"])):
        chance = random.Random(1000 + number)
        killed_until_finished(work, f"killed-{number}", chance, 40)
        assert_like_the_undisturbed(work, f"killed-{number}")
        print(number, file=sys.stderr)
