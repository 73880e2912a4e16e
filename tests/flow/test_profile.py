"""`kernelskill profile` as a process: a kernel, a report, two side by side, and wrong use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flow.small_task import KERNEL, kernelskill, optimised, write_task

pytestmark = pytest.mark.slow
GOLDEN = Path(__file__).parents[1] / "golden" / "ncu"


def test_a_kernel_is_diagnosed_and_compared_with_a_rewrite(tmp_path: Path) -> None:
    write_task(tmp_path)
    (tmp_path / "faster.cu").write_text(KERNEL.replace("0.5 * a", "0.5f * a"))
    said = optimised("profile", "kernel.cu", "-t", "test.py", "--device", "emulated", cwd=tmp_path).stdout
    assert "memory trace of the emulated device; times are estimates" in said
    assert "small grid in means" in said
    assert "of the roof" in said
    assert "kernel.cu:8" in said
    told = optimised(
        "profile", "faster.cu", "-t", "test.py", "--device", "emulated", "--json", cwd=tmp_path
    ).stdout
    (tmp_path / "faster.json").write_text(told)
    both = [
        "profile",
        "--compare",
        "kernel.cu",
        "faster.json",
        "-t",
        "test.py",
        "--device",
        "emulated",
        "--json",
    ]
    (compared,) = json.loads(optimised(*both, cwd=tmp_path).stdout)
    doubles = {row["name"]: (row["before"], row["after"]) for row in compared["instructions"]}
    assert doubles["all"][0] > doubles["all"][1] > 0
    assert doubles["fp64"][0] > 0 == doubles["fp64"][1]
    registers = next(f for f in compared["figures"] if f["name"] == "registers")
    assert registers["before"] > 0
    assert registers["ratio"] == pytest.approx(registers["after"] / registers["before"])


def test_a_report_needs_no_gpu_and_no_test(tmp_path: Path) -> None:
    said = optimised("profile", "--import", GOLDEN / "patterns_base_units.csv", cwd=tmp_path).stdout
    assert "matmul_uncoalesced: 58%" in said
    assert said.index("1. coalescing load in matmul_uncoalesced") < said.index("2. ")
    table = optimised(
        "profile",
        "--compare",
        GOLDEN / "patterns_details.csv",
        GOLDEN / "patterns_base_units.csv",
        cwd=tmp_path,
    ).stdout
    assert "load_bytes_per_sector" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of KERNEL"),
        (["kernel.cu"], "a kernel needs its test"),
        (["kernel.cu", "-t", "test.py", "--depth", "deep"], "--depth is 'deep'"),
        (["--import", "none.csv"], "cannot read 'none.csv'"),
        (["--import", "kernel.cu"], "holds no profiled kernel"),
        (["--compare", "a.json", "b.json"], "'a.json' is no profile"),
        (["--compare", "a.json", "kernel.cu", "--sass"], "--sass needs the machine code of two kernels"),
        (["kernel.cu", "-t", "test.py", "--sass"], "--sass needs the machine code of two kernels"),
    ],
)
def test_wrong_use_is_one_line_and_a_remedy(arguments: list[str], message: str, tmp_path: Path) -> None:
    write_task(tmp_path)
    done = kernelskill("profile", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_a_wrong_kernel_has_no_profile(tmp_path: Path) -> None:
    write_task(tmp_path, KERNEL.replace("0.5 *", "0.25 *"))
    done = kernelskill("profile", "kernel.cu", "-t", "test.py", "--device", "emulated", cwd=tmp_path)
    assert done.returncode == 2
    assert "the kernel ends with incorrect" in done.stderr


@pytest.mark.parametrize(
    ("device", "said"),
    [("emulated:l4", "its times are estimates"), ("spool:.", "on the machine that has the GPU")],
)
def test_ceilings_are_measured_on_a_gpu_of_this_machine_alone(device: str, said: str, tmp_path: Path) -> None:
    done = kernelskill("ceilings", "--device", device, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "ceilings cannot be measured" in done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 2
