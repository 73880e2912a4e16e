"""Counters of kernels with one known fault each, captured on an H200: the first diagnosis is a right one."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelskill.backends.cuda.ncu_report import parse_report
from kernelskill.profiling.diagnose import diagnose
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import KernelProfile, Profile

ROOT = Path(__file__).parents[3]
TABLE = tomllib.loads((ROOT / "benchmarks/emulation/patterns/diagnoses.toml").read_text())
ROWS = {
    row.kernel: row for row in parse_report((ROOT / "tests/golden/ncu/patterns_with_folders.csv").read_text())
}


MISSED = {"misaligned_copy": "each warp touches five sectors in place of four, and no rule speaks of that"}


def _cases() -> list[Any]:
    marks = {name: [pytest.mark.xfail(reason=why, strict=True)] for name, why in MISSED.items()}
    return [pytest.param(name, marks=marks.get(name, [])) for name in ROWS]


@pytest.mark.parametrize("name", _cases())
def test_the_first_diagnosis_is_a_right_one(name: str) -> None:
    row = ROWS[name]
    kernel = KernelProfile(
        kernel=name,
        launches=int(row.metrics.get("plan__launches", 1)),
        time_share=1.0,
        grid=row.grid,
        block=row.block,
        metrics=row.metrics,
    )
    conditions = Conditions(device="cuda:0", gpu="NVIDIA H200")
    profile = Profile(candidate="c", case=0, source="ncu", kernels=(kernel,), conditions=conditions)
    found = diagnose(profile, None)
    kinds = [each.kind.value for each in found]
    assert kinds
    assert kinds[0] in TABLE[name]["first"], [each.summary for each in found]
    assert set(TABLE[name].get("must", [])) <= set(kinds)
