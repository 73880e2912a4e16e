"""What the commands show: help, doctor, skills, drafts, and output to pipes and narrow terminals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest
import typer

from kernelskill.cli.main import app
from tests.flow.small_task import (
    COMMAND,
    KERNEL,
    TEST,
    environment,
    kernelskill,
    optimised,
    program,
    write_task,
)

HELP = Path(__file__).parents[1] / "golden" / "help"
REGENERATE = "KERNELSKILL_REGENERATE"
RUN = ["run", "kernel.cu", "-t", "test.py", "--no-learn", "--rounds", "1"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task and a run in `out` to replay."""
    folder = tmp_path_factory.mktemp("views")
    write_task(folder, settings="[run]\nslate = 2\npoints = 2\n")
    optimised(*RUN, "-q", "--device", "emulated", "--out", "out", cwd=folder)
    return folder


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


ALL = dict(commands(typer.main.get_command(app), "kernelskill"))


def described(path: str, command: Any) -> str:
    lines = [path, "", (command.help or "").strip(), ""]
    for parameter in command.params:
        names = " ".join([*parameter.opts, *parameter.secondary_opts])
        metavar = "" if parameter.metavar is None else f" {parameter.metavar}"
        lines.append(f"  {names}{metavar}: {parameter.help}")
    lines += [
        f"  {name}: {inner.help.splitlines()[0]}" for name, inner in getattr(command, "commands", {}).items()
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


@pytest.mark.parametrize("path", sorted(ALL))
def test_help_says_what_was_agreed(path: str) -> None:
    file = HELP / f"{path.replace(' ', '-')}.txt"
    text = described(path, ALL[path])
    if os.environ.get(REGENERATE):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, f"regenerate: see {HELP / 'README.md'}"


def test_every_option_has_a_help_text_and_every_command_a_sentence() -> None:
    for path, command in ALL.items():
        assert (command.help or "").strip().split("\n")[0].endswith("."), path
        for parameter in command.params:
            assert parameter.help, f"{path} {parameter.name}"


@pytest.mark.parametrize("columns", ["80", "100"])
def test_help_is_shown_whole(columns: str) -> None:
    script = (
        "import sys\nfrom kernelskill.cli.main import run_program\n"
        "assert all(run_program([*path.split()[1:], '--help']) == 0 for path in sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *ALL],
        env=environment(COLUMNS=columns), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.count("Usage:") == len(ALL)
    assert "\u2026" not in done.stdout, "a text is cut short"
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
    assert "\x1b" not in done.stdout
    assert "Begin with kernelskill doctor" in done.stdout


def test_no_command_at_all_shows_the_help(tmp_path: Path) -> None:
    done = program(cwd=tmp_path)
    assert done.returncode == 2
    assert "Usage" in done.stdout + done.stderr


def test_the_version(tmp_path: Path) -> None:
    assert re.fullmatch(r"kernelskill \d+\.\d+\.\d+\n", program("--version", cwd=tmp_path).stdout)


def test_doctor_finds_what_a_run_needs(tmp_path: Path) -> None:
    done = optimised("doctor", cwd=tmp_path)
    for word in ("nvcc", "g++", "GPU", "Nsight Compute", "skills", "experience", "cache"):
        assert word in done.stdout
    assert done.stdout.endswith("kernelskill can run here\n")
    found = json.loads(optimised("doctor", "--json", cwd=tmp_path).stdout)
    assert found["usable"] is True
    assert all(finding["remedy"] or finding["state"] == "ok" for finding in found["findings"])


def test_doctor_names_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    poor = environment(PATH=str(tmp_path))
    poor.pop("CUDA_HOME", None)
    done = program("doctor", cwd=tmp_path, env=poor)
    assert done.returncode == 3, done.stdout
    assert "apt install g++" in done.stdout
    assert done.stdout.endswith("something needed is missing\n")
    as_json = program("doctor", "--json", cwd=tmp_path, env=poor)
    assert as_json.returncode == 3
    found = json.loads(as_json.stdout)
    assert found["usable"] is False
    assert all(finding["remedy"] for finding in found["findings"] if finding["state"] == "missing")
    write_task(tmp_path)
    run = program(*RUN, "--device", "emulated", cwd=tmp_path, env=poor)
    assert run.returncode == 3, run.stderr
    assert len(run.stderr.splitlines()) == 2


def test_skills_are_listed_and_shown(tmp_path: Path) -> None:
    listed = kernelskill("skills", "list", cwd=tmp_path, env=environment(COLUMNS="80")).stdout
    rows = json.loads(optimised("skills", "list", "--json", cwd=tmp_path).stdout)
    assert len(rows) >= 13
    for row in rows:
        assert row["id"] in listed, "an id is cut short"
    shown = optimised("skills", "show", "unroll", cwd=tmp_path).stdout
    assert shown.startswith("compute/unroll: ")
    for word in ("results", "exact", "parameters", "expected", "record", "When", "Pitfalls"):
        assert word in shown
    one = json.loads(optimised("skills", "show", "compute/unroll", "--json", cwd=tmp_path).stdout)
    # The experience that ships with kernelskill counts: a new installation has been on a GPU before.
    assert one["id"] == "compute/unroll"
    assert one["tried"] >= one["won"] > 0


def test_a_folder_of_own_skills_is_listed_too(tmp_path: Path) -> None:
    done = kernelskill("skills", "list", "--skills", tmp_path / "nothing here", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing here" in done.stderr


@pytest.mark.slow
def test_a_draft_is_completed_and_passes_the_check(tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(KERNEL)
    printed = optimised("init", "kernel.cu", "--stdout", cwd=tmp_path).stdout
    said = optimised("init", "kernel.cu", cwd=tmp_path).stdout
    assert "kernelskill check kernel.cu --tests test.py" in said
    draft = tmp_path / "test.py"
    assert draft.read_text() == printed
    compile(printed, "test.py", "exec")
    refused = kernelskill("init", "kernel.cu", cwd=tmp_path)
    assert (refused.returncode, "--force" in refused.stderr) == (2, True)
    unfinished = kernelskill("check", "kernel.cu", "-t", "test.py", "--device", "emulated", cwd=tmp_path)
    assert unfinished.returncode == 2
    assert "Traceback" not in unfinished.stderr
    draft.write_text(TEST)
    optimised("check", "kernel.cu", "-t", "test.py", "--device", "emulated", "--cheap", cwd=tmp_path)
    done = optimised("check", "kernel.cu", "-t", "test.py", "--device", "emulated", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["evaluation"]["status"] == "passed"


def test_the_completion_script_is_printed(tmp_path: Path) -> None:
    script = environment(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    done = program("--show-completion", "bash", cwd=tmp_path, env=script)
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["doctor"], ["skills", "list"], ["skills", "list", "--json"], ["--help"]]
)
def test_a_reader_that_leaves_is_no_trouble(arguments: list[str], tmp_path: Path) -> None:
    command = subprocess.list2cmdline([*COMMAND, *arguments])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1 >/dev/null"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    # rich ends a program whose reader has gone with 1; what matters is that nothing is said.
    assert done.returncode in (0, 1)


@pytest.mark.slow
def test_a_run_whose_reader_leaves_can_be_resumed(work: Path) -> None:
    command = subprocess.list2cmdline([*COMMAND, *RUN, "--device", "replay:out", "--out", "piped"])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1"],
        cwd=work, env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("column_means on NVIDIA H200")
    optimised("resume", "piped", "-q", cwd=work)


@pytest.mark.slow
@pytest.mark.parametrize("colour", [True, False])
def test_a_narrow_terminal_shows_the_progress(work: Path, colour: bool) -> None:
    env = {k: v for k, v in environment(TERM="xterm-256color").items() if k not in ("COLUMNS", "NO_COLOR")}
    if not colour:
        env["NO_COLOR"] = "1"
    child = pexpect.spawn(
        sys.executable,
        ["-m", "kernelskill", *RUN, "--device", "replay:out", "--out", f"narrow-{colour}"],
        cwd=str(work), env=env, dimensions=(24, 60), timeout=120, encoding="utf-8",
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    raw = child.before or ""
    assert bool(re.search(r"\x1b\[[0-9;]*[1-9][0-9;]*m", re.sub(r"\x1b\[[012]m", "", raw))) == colour
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", raw).replace("\r", "\n")
    assert "round 1" in text
    assert "finished" in text
    # What we laid out keeps to the width; the paths at the end may be longer.
    assert all(len(line) <= 60 for line in text.split("finished")[0].splitlines())
