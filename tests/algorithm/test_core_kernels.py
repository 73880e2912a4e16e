"""The core benchmarks: the interpreter agrees with the user's kernel, and emitted kernels with both.

A fixed sample of them; with KERNELSKILL_RANDOM=N all of them, N random sequences of moves each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelskill.algorithm.model import CannotLift, IllegalMove
from kernelskill.resources import data_folder
from tests.algorithm import cpu
from tests.algorithm.emission import Case, compare, differences, emitted_text, plans
from tests.algorithm.launches import LaunchCase, launch_cases, small_cases

FULL = int(os.environ.get("KERNELSKILL_RANDOM", "0"))
LARGEST = 1 << 16
"""Elements of all buffers of a case that still runs quickly."""
FOLDERS = sorted(path.parent for path in data_folder("benchmarks").glob("core/*/kernel.cu"))
SAMPLE = ("argmax_rows", "histogram", "layernorm", "matmul_half", "permute_3d", "softmax")
CHOSEN = [folder for folder in FOLDERS if FULL or folder.name in SAMPLE]


def cases_of(folder: Path) -> list[tuple[dict[str, Any], list[LaunchCase]]]:
    """Return the small cases with their launches; skips the test where a kernel cannot be read or run here."""
    text = (folder / "kernel.cu").read_text()
    found = []
    try:
        for arguments in small_cases(folder):
            if sum(array.size for array in arguments.values() if isinstance(array, np.ndarray)) > LARGEST:
                continue
            launches = list(launch_cases(text, arguments))
            if any(isinstance(launch, CannotLift) for launch in launches):
                pytest.skip(f"not lifted: {launches[-1]}")
            found.append((arguments, launches))
    except cpu.NotForThisHarness as reason:
        pytest.skip(str(reason))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("folder", CHOSEN, ids=lambda folder: folder.name)
def test_the_interpreter_agrees_with_the_kernel(folder: Path, tmp_path: Path) -> None:
    cases = cases_of(folder)
    try:
        library = cpu.build({"k": (folder / "kernel.cu").read_text()}, tmp_path)
    except cpu.CompileFailed as failure:
        pytest.skip(f"not for the CPU: {str(failure)[:80]}")
    results = library.run([cpu.Call("k", arguments) for arguments, _ in cases])
    for (arguments, launches), result in zip(cases, results, strict=True):
        wanted: dict[str, np.ndarray] = {}
        for launch in launches:
            given = {name: text for name, text in launch.lifted.arguments if name in launch.wanted}
            wanted |= {text: launch.wanted[name] for name, text in given.items() if text in result}
        assert wanted
        sizes = {name: value for name, value in arguments.items() if not isinstance(value, np.ndarray)}
        # Functions such as expf differ in their last bit between libraries.
        assert not differences(wanted, result, exact=False), sizes


@pytest.mark.slow
@pytest.mark.parametrize("folder", CHOSEN, ids=lambda folder: folder.name)
def test_emitted_kernels_agree(folder: Path, tmp_path: Path) -> None:
    launches = [launch for _, found in cases_of(folder)[: FULL or 2] for launch in found]
    cases = []
    for seed in range(max(FULL, 1)):
        rng = np.random.default_rng(seed)
        for launch in launches:
            algorithm = launch.lifted.algorithm
            try:
                for label, plan in plans(algorithm, rng, 4):
                    text = emitted_text(plan)
                    cases.append(Case(label, text, launch.arguments, launch.wanted, exact=False))
            except IllegalMove as refused:
                pytest.skip(f"not emitted: {refused}")
    unique = {(case.label, id(case.arguments)): case for case in cases}
    assert compare(list(unique.values()), tmp_path) == []
