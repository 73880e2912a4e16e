"""Every kernel of the zoo gets the status that it must get, on an emulated device and on a GPU where there is one."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelskill.evaluation.protocol import CheckRules
from kernelskill.runs import SystemClock
from kernelskill.sweep.zoo import load_zoo
from kernelskill.sweep.zoo_run import ZooKeeper, ZooRecord

pytestmark = pytest.mark.slow
ZOO = load_zoo(Path(__file__).parent)
PROGRAM = Path(__file__).parents[2] / "benchmarks" / "evaluator" / "zoo.py"
RULES = CheckRules(least_timeout_s=3.0)


def cases():
    for kernel in ZOO.kernels:
        yield pytest.param("emulated", kernel, id=f"emulated-{kernel.name}")
    for kernel in ZOO.kernels:
        yield pytest.param("cuda:0", kernel, id=f"cuda-{kernel.name}", marks=pytest.mark.gpu)


@pytest.fixture(scope="module")
def keepers(tmp_path_factory):
    """One keeper a device, opened when it is wanted."""
    found = {}

    def keeper(device):
        if device not in found:
            found[device] = ZooKeeper(
                ZOO,
                device,
                tmp_path_factory.mktemp("zoo"),
                clock=SystemClock(),
                trials=3,
                rules=RULES,
                seed_source=random.Random(7),
            )
        return found[device]

    yield keeper
    for opened in found.values():
        opened.close()


@pytest.mark.parametrize(("device", "kernel"), list(cases()))
def test_kernel(keepers, device, kernel):
    keeper = keepers(device)
    if not kernel.runs_on(keeper.conditions(kernel).evidence):
        pytest.skip(kernel.reason)
    found = keeper.visit(kernel)
    if kernel.hole and not found.as_it_must:
        pytest.xfail(kernel.hole)
    assert found.as_it_must, f"{found.status}, must be {found.expected}: {found.detail}"


def test_the_zoo_is_as_large_as_it_claims():
    assert sum(kernel.is_bad for kernel in ZOO.kernels) >= 30
    assert sum(not kernel.is_bad for kernel in ZOO.kernels) >= 10
    assert {kernel.row for kernel in ZOO.kernels} == set(ZOO.rows)


def test_the_program_records_rates_and_says_what_is_not_as_it_must_be(tmp_path):
    for name in (
        "bad/stale_empty_kernel.cu",
        "bad/skipped_tail.cu",
        "tasks/scale/kernel.cu",
        "tasks/scale/test.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(ZOO.folder) / name, tmp_path / name)
    rows = "".join(
        f'[[kernel]]\nfile = "bad/{name}.cu"\ntask = "scale"\nrow = "r"\nwhat = "-"\nmust = ["{must}"]\n'
        for name, must in (("stale_empty_kernel", "incorrect"), ("skipped_tail", "timeout"))
    )
    (tmp_path / "zoo.toml").write_text('[rows]\nr = "-"\n' + rows)
    command = [sys.executable, str(PROGRAM), "--device", "emulated", "--zoo", str(tmp_path)]
    out = tmp_path / "zoo-emulated.json"
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "bad/skipped_tail: incorrect, must be timeout" in done.stdout
    record = ZooRecord.model_validate_json(out.read_bytes())
    assert (record.false_accept.count, record.false_accept.of, record.false_reject.of) == (0, 2, 0)
    assert record.conditions.evidence == "estimated"
    assert not out.with_suffix(".work").exists()
    wrong = subprocess.run(
        [*command, "--out", str(out), "--only", "bad/none"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
    assert "no kernel or row 'bad/none'" in wrong.stderr
