"""How much of the core benchmarks lifts whole, and why the rest does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelskill.algorithm.describe import describe
from kernelskill.algorithm.lifting import Lifted, lift
from kernelskill.algorithm.model import CannotLift
from kernelskill.resources import data_folder
from kernelskill.source.unit import SourceUnit

CORE = sorted(path.parent for path in data_folder("benchmarks").glob("core/*/kernel.cu"))
SHARE = 0.8
"""Part of the tasks that lift whole."""
LAUNCHERS = {
    # What is generated for the kernels that come without a launcher.
    "rgb_to_grey": "void rgb_to_grey_launch(const unsigned char* rgb, unsigned char* grey, int width, int height)"
    "{ rgb_to_grey<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(rgb, grey, width, height); }",
}
REASONS = {
    # task -> a word of the reason
    "bitonic_step": "threads race",
    "collatz": "loop",
    "compact": "kept",
    "relu_half8": "Pack",
    "scan": "cooperative",
    "sum_blocks": "cooperative",
}


def lift_all(folder: Path) -> list[Lifted]:
    text = (folder / "kernel.cu").read_text() + LAUNCHERS.get(folder.name, "")
    headers = [SourceUnit.parse(path.read_text()) for path in sorted(folder.glob("*.h"))]
    unit = SourceUnit.parse(text)
    assert unit.launches, f"{folder.name} launches nothing"
    return [lift(unit, launch, headers) for launch in unit.launches]


def reason_of(folder: Path) -> str:
    try:
        lift_all(folder)
    except CannotLift as refused:
        return refused.reason
    return ""


def test_most_tasks_lift_whole() -> None:
    reasons = {folder.name: reason_of(folder) for folder in CORE}
    whole = [name for name, reason in reasons.items() if not reason]
    refused = {name: reason for name, reason in reasons.items() if reason}
    assert len(whole) >= 34
    assert len(whole) >= SHARE * len(CORE), "\n".join(f"{name}: {reason}" for name, reason in refused.items())


@pytest.mark.parametrize("name", sorted(REASONS))
def test_the_rest_is_refused_with_a_reason(name: str) -> None:
    folder = next(entry for entry in CORE if entry.name == name)
    assert REASONS[name] in reason_of(folder)


@pytest.mark.parametrize("name", ["matmul", "softmax", "bias_relu", "spmv_csr", "argmax_rows", "histogram"])
def test_what_is_lifted_can_be_described(name: str) -> None:
    folder = next(entry for entry in CORE if entry.name == name)
    for lifted in lift_all(folder):
        text = describe(lifted.algorithm)
        assert text.startswith(f"{lifted.kernel.name}:")
        assert all(store.buffer in text for store in lifted.algorithm.stores)
