"""The process that calls a launcher itself, on the stand-in driver: between samples it resets what replays reset."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.backends.cuda.prepared import worker_environment
from kernelskill.isolation.child import Child, Limits

N = 1000
LAUNCHER = """
#include <cstdlib>
extern "C" void kernelskill_entry(float* y, int n) { for (int i = 0; i < n; ++i) y[i] += 1; }
extern "C" void kernelskill_call(void* function, unsigned char* slots, long long* result) {
  ((void (*)(float*, int))function)(*(float**)slots, *(int*)(slots + 32));
  *result = 0;
}
"""


@pytest.fixture
def direct(fake_driver: Path, tmp_path: Path) -> Iterator[Child]:
    (tmp_path / "launcher.cpp").write_text(LAUNCHER)
    subprocess.run(["g++", "-shared", "-fPIC", "launcher.cpp", "-o", "launcher.so"], cwd=tmp_path, check=True)
    command = [sys.executable, "-P", "-m", "kernelskill.backends.cuda.direct_worker"]
    child = Child.start(
        [*command, "--library", str(tmp_path / "launcher.so")],
        cwd=tmp_path,
        limits=Limits(wall_s=60),
        env=worker_environment(tmp_path),
    )
    yield child
    child.close()


def ask(child: Child, do: str, **fields: object) -> dict[str, Any]:
    answer = child.call({"do": do, **fields}, timeout_s=60)
    assert "ok" in answer, answer
    found: dict[str, Any] = answer["ok"]
    return found


def load(child: Child) -> None:
    arguments = [{"buffer": "y", "offset": 0}, {"hex": N.to_bytes(4, "little").hex()}]
    ask(child, "load", buffers={"y": 4 * N}, arguments=arguments, returns="void", guard_bytes=4096, salt=0)
    ask(child, "fill", contents={}, poison=0)


def test_every_sample_starts_from_the_last_fill_without_what_was_set_aside_in_the_l2(
    direct: Child, fake_driver: Path, tmp_path: Path
) -> None:
    load(direct)
    ask(direct, "time", samples=1, flush_l2=True)
    before = fake_driver.read_text().count("reset persisting")
    for flush in (True, False):
        found = ask(direct, "time", samples=5, flush_l2=flush)
        assert len(found["events_ms"]) == len(found["walls_ms"]) == 5
        ask(direct, "read", buffer="y", destination=str(tmp_path / "y"))
        assert np.array_equal(np.fromfile(tmp_path / "y", np.float32), np.ones(N, np.float32))
    assert fake_driver.read_text().count("reset persisting") - before == 10
    assert ask(direct, "damaged_guards") == {"damaged": []}
