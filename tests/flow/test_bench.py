"""A bench over a suite of tiny tasks, one of them broken."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.flow.processes import adopt_orphans, kill, no_descendants_left, until
from tests.flow.small_task import COMMAND, KERNEL, TEST, environment, kernelskill, kinds, write_task

pytestmark = pytest.mark.slow
PLAIN = """\
__global__ void negate(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = -x[i];
}
extern "C" void negated(const float *x, float *y, int n) { negate<<<(n + 255) / 256, 256>>>(x, y, n); }
"""
PLAIN_TEST = """\
import numpy as np
CASES = [dict(n=1), dict(n=1000), dict(n=50_000, time=True)]
def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}
def reference(x):
    return {"y": -x}
"""
OPTIONS = ["--device", "emulated", "--rounds", "1", "--no-learn", "--out", "out"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of three tasks; the bench was killed in the first one, and then went on to its end."""
    adopt_orphans()
    folder = tmp_path_factory.mktemp("bench")
    write_task(folder / "suite" / "broken", KERNEL.replace("0.5 *", "0.6 *"), settings="")
    write_task(folder / "suite" / "means", KERNEL, TEST, settings="")
    write_task(folder / "suite" / "negate", PLAIN, PLAIN_TEST, settings="")
    (folder / "kernelskill.toml").write_text("[run]\nslate = 2\npoints = 2\n")
    process = subprocess.Popen(
        [*COMMAND, "bench", "suite", *OPTIONS],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    events = folder / "out" / "means" / "events.jsonl"
    until(lambda: events.exists() and '"round_started"' in events.read_text(), 120)
    kill(process)
    no_descendants_left()
    done = kernelskill("bench", "suite", *OPTIONS, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    (folder / "stdout.txt").write_text(done.stdout)
    return folder


def results(work: Path) -> dict[str, dict[str, object]]:
    return {row["task"]: row for row in json.loads((work / "out" / "results.json").read_text())["rows"]}


def test_the_table_has_a_row_for_every_task(work: Path) -> None:
    text = (work / "stdout.txt").read_text()
    table = text[text.index("outcome") :]
    for task, word in (("broken", "failed"), ("means", "improved"), ("negate", "no gain")):
        assert any(line.startswith(task) and word in line for line in table.splitlines()), text
    assert "1 of 3 improved; geometric mean over all: estimated" in " ".join(text.split())
    assert "incorrect" in text
    assert "\x1b" not in text


def test_the_results_carry_their_conditions(work: Path) -> None:
    found = json.loads((work / "out" / "results.json").read_text())
    assert found["conditions"]["gpu"] == "NVIDIA H200"
    assert found["conditions"]["evidence"] == "estimated"
    assert found["config"]["rounds"] == 1
    rows = results(work)
    assert rows["means"]["outcome"] == "improved"
    assert rows["means"]["cases"]
    assert rows["negate"]["outcome"] == "no gain"
    assert rows["negate"]["best_try"]
    assert rows["broken"]["speedup"] == 1.0
    assert "incorrect" in str(rows["broken"]["reason"])


def test_a_killed_bench_took_up_the_run_under_way(work: Path) -> None:
    told = kinds(work / "out" / "means")
    assert told.count("run_started") == told.count("run_resumed") == told.count("run_finished") == 1


def test_a_finished_bench_runs_nothing_again(work: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (work / "out").rglob("*") if path.is_file()}
    done = kernelskill("bench", "suite", *OPTIONS, "--json", cwd=work)
    assert done.returncode == 1
    assert {row["task"] for row in json.loads(done.stdout)["rows"]} == {"broken", "means", "negate"}
    assert {path: path.stat().st_mtime_ns for path in (work / "out").rglob("*") if path.is_file()} == before


def test_one_task_alone(work: Path) -> None:
    options = [*OPTIONS[:-1], "one"]
    done = kernelskill("bench", "suite", *options, "--only", "negate", "--json", cwd=work)
    assert done.returncode == 0, done.stderr
    assert [row["task"] for row in json.loads(done.stdout)["rows"]] == ["negate"]


def test_wrong_use_is_said(work: Path) -> None:
    for arguments, word in (
        (["suite", *OPTIONS, "--only", "negat"], "negate"),
        (["suite", *OPTIONS, "--seed", "7"], "'out' holds a bench with other settings"),
        ([work / "suite" / "means", *OPTIONS], "holds no task folders"),
        (["cores"], "core"),
    ):
        done = kernelskill("bench", *arguments, cwd=work)
        assert done.returncode == 2, done.stdout
        assert word in done.stderr
        assert "Traceback" not in done.stderr
