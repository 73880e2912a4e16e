"""Every kernel of the zoo gets the status that it must get."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kernelskill.evaluation.protocol import CheckRules
from kernelskill.runs import SystemClock
from kernelskill.sweep.zoo import load_zoo
from kernelskill.sweep.zoo_run import ZooKeeper

pytestmark = pytest.mark.slow
ZOO = load_zoo(Path(__file__).parent)
DEVICES = ["emulated", pytest.param("cuda:0", marks=pytest.mark.gpu)]
RULES = CheckRules(least_timeout_s=3.0)


@pytest.fixture(scope="module", params=DEVICES)
def keeper(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    with ZooKeeper(
        ZOO,
        request.param,
        folder,
        clock=SystemClock(),
        trials=3,
        rules=RULES,
        seed_source=random.Random(7),
    ) as keeper:
        yield keeper


@pytest.mark.parametrize("kernel", ZOO.kernels, ids=lambda kernel: kernel.name)
def test_kernel(keeper, kernel):
    if not kernel.runs_on(keeper.conditions(kernel).evidence):
        pytest.skip(kernel.reason)
    found = keeper.visit(kernel)
    if kernel.hole and not found.as_it_must:
        pytest.xfail(kernel.hole)
    assert found.as_it_must, f"{found.status}: {found.detail}"
