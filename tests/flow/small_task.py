"""A task so small that a whole run takes seconds; commands in this process, or the program as one of its own."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from kernelskill.cli.main import run_program
from kernelskill.events import read_events
from kernelskill.schema.event import Event

KERNEL = """\
// Half the sum of every column, in double precision by accident.
__global__ void means(const float *a, float *m, int rows, int cols)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols) {
        m[c] = 0.0f;
        for (int r = 0; r < rows; ++r)
            m[c] += 0.5 * a[r * cols + c];
    }
}

extern "C" void column_means(const float *a, float *m, int rows, int cols)
{
    means<<<(cols + 127) / 128, 128>>>(a, m, rows, cols);
}
"""

TEST = """\
import numpy as np

CASES = [dict(rows=3, cols=5), dict(rows=200, cols=300, time=True)]
TOLERANCE = dict(rtol=1e-4, atol=1e-4)
PROMISE = {"no_alias"}


def make_inputs(rng, rows, cols):
    return {"a": rng.standard_normal((rows, cols), dtype=np.float32), "rows": rows, "cols": cols}


def reference(a):
    return {"m": 0.5 * a.astype(np.float64).sum(axis=0)}
"""

SETTINGS = """\
[run]
device = "emulated"
slate = 3
rounds = 2
points = 2
"""

COMMAND = [sys.executable, "-m", "kernelskill"]


def write_task(
    folder: Path, kernel: str = KERNEL, test: str = TEST, *, name: str = "kernel.cu", settings: str = SETTINGS
) -> tuple[Path, Path]:
    """Write kernel, test and kernelskill.toml; returns the first two."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(kernel.encode())
    (folder / "test.py").write_text(test, encoding="utf-8")
    if settings:
        (folder / "kernelskill.toml").write_text(settings, encoding="utf-8")
    return folder / name, folder / "test.py"


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "100", **changes}


def program(
    *arguments: object, cwd: Path, timeout: float = 900, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end, as a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=env or environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def kernelskill(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end through the program's own entry, in this process: seconds of imports less.

    Where it counts that it is another process (it is killed, its PATH is another, a second one holds the
    folder), take `program`.
    """
    command = [str(argument) for argument in arguments]
    out, errors = io.StringIO(), io.StringIO()
    with _started_in(cwd, env or environment()), redirect_stdout(out), redirect_stderr(errors):
        code = run_program(command)
    return subprocess.CompletedProcess(command, code, out.getvalue(), errors.getvalue())


@contextmanager
def _started_in(cwd: Path, env: dict[str, str]) -> Iterator[None]:
    """Give this process the folder and the environment that another would start with."""
    folder, before = Path.cwd(), dict(os.environ)
    try:
        os.chdir(cwd)
        _become(env)
        yield
    finally:
        os.chdir(folder)
        _become(before)


def _become(env: dict[str, str]) -> None:
    for name in set(os.environ).difference(env):
        del os.environ[name]
    os.environ.update(env)


def optimised(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command and insist that it succeeds."""
    done = kernelskill(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def events(run: Path) -> list[Event]:
    return list(read_events(run / "events.jsonl"))


def kinds(run: Path) -> list[str]:
    return [event.kind for event in events(run)]


def of_kind(run: Path, kind: str) -> list[Any]:
    return [event for event in events(run) if event.kind == kind]


def evaluation_files(run: Path) -> dict[str, tuple[int, bytes]]:
    """Name to modification time and content of every finished evaluation."""
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted((run / "evaluations").glob("*.json"))
    }


def outcome(run: Path) -> dict[str, Any]:
    """What a run found, without times of day, wall time or seeds."""
    return {
        "rounds": [
            (e.result.base, e.result.accepted, e.frontier, e.best) for e in of_kind(run, "round_finished")
        ],
        "judged": {
            (e.round, e.label, e.candidate, e.verdict.kind.value, e.combined) for e in of_kind(run, "judged")
        },
        "best": of_kind(run, "run_finished")[-1].best,
    }


def json_lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        yield json.loads(line)


def section(report: str, title: str) -> str:
    """Return one section of a report."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", report, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1]
