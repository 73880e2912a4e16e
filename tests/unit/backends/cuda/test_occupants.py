"""A GPU that somebody else works on is refused by name; clocks are read with what holds them down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.backends.cuda.clocks import parse_clocks
from kernelskill.backends.cuda.occupants import Occupant, becomes_idle, parse_occupants
from kernelskill.schema.device import ClockState

SMI = """\
#!/bin/sh
case "$*" in
  *utilization.gpu*) read percent rest < "$0.use"; echo "$percent"; echo "$rest" > "$0.use" ;;
  *compute-apps*) cat "$0.apps" ;;
  *) exit 6 ;;
esac
"""
ASK = """
from kernelskill.backends.cuda.occupants import {function}
from kernelskill.errors import DeviceUnavailable
try:
    {function}("cuda:0 (H200)", "GPU-1", within_s=0.6)
    print("free")
except DeviceUnavailable as error:
    print(error.exit_code, error.message, "|", error.remedy)
"""


@pytest.fixture
def ask(tmp_path: Path):
    """Ask with a stand-in for nvidia-smi on the path, which answers utilizations in turn."""

    def run(used: str, apps: str = "", function: str = "require_idle", **more: str) -> str:
        program = tmp_path / "nvidia-smi"
        program.write_text(SMI)
        program.chmod(0o755)
        (tmp_path / "nvidia-smi.use").write_text(used + "\n")
        (tmp_path / "nvidia-smi.apps").write_text(apps)
        environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **more}
        return subprocess.run(
            [sys.executable, "-c", ASK.format(function=function)],
            env=environment, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip

    return run


def test_a_busy_gpu_is_refused_with_the_names_of_what_runs_there(ask) -> None:
    said = ask("97 98 99 97", "4711, /opt/train/train.py\n4712, python\n")
    assert said.startswith("3 cuda:0 (H200) is busy: train.py (process 4711), python (process 4712) |")
    assert "another GPU" in said
    assert "KERNELSKILL_ACCEPT_BUSY_GPU=1" in said


def test_a_busy_gpu_may_be_accepted(ask) -> None:
    assert ask("97 98 99 97", KERNELSKILL_ACCEPT_BUSY_GPU="1") == "free"


def test_a_process_without_a_name_is_said_to_have_none(ask) -> None:
    assert "a process that nvidia-smi does not name" in ask("80 80 80 80")


@pytest.mark.parametrize("used", ["0", "3", "95 0", "[N/A]", "[Not Supported]"])
def test_a_gpu_that_is_idle_becomes_so_or_does_not_tell_is_taken(ask, used: str) -> None:
    assert ask(used, "4711, idle\n") == "free"


def test_after_a_hang_the_gpu_must_be_seen_free(ask) -> None:
    assert ask("100 0", function="require_free_again") == "free"
    said = ask("100 100 100 100", function="require_free_again")
    assert "still works 0.6 s after a kernel that hung was ended" in said


def test_without_nvidia_smi_nothing_is_refused() -> None:
    assert becomes_idle(lambda: None, within_s=0.0, clock=lambda: 0.0)


def test_processes_are_read_a_line_each() -> None:
    found = parse_occupants("12, /a b/c, d\n[N/A], x\n\n13,\n")
    assert found == (Occupant(pid=12, name="/a b/c, d"), Occupant(pid=13, name="unknown"))
    assert str(found[0]) == "c, d (process 12)"


@pytest.mark.parametrize(
    ("clock", "reasons", "state"),
    [
        ("1980", "0x0000000000000000", ClockState(sm_mhz=1980)),
        ("345", "0x0000000000000001", ClockState(sm_mhz=345)),
        ("1410", "0x0000000000000004", ClockState(sm_mhz=1410, slowed_by=("its power limit",))),
        ("900", "0x0000000000000068", ClockState(sm_mhz=900, slowed_by=("the hardware", "its temperature"))),
        ("", "", ClockState()),
        ("[N/A]", "Active", ClockState()),
    ],
)
def test_clocks_and_what_slows_them(clock: str, reasons: str, state: ClockState) -> None:
    assert parse_clocks(clock, reasons) == state
