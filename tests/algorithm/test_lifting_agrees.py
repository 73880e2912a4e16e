"""What is lifted computes what the kernel computes: the interpreter against the kernel run on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.source.unit import SourceUnit
from tests.algorithm.lifted_run import SIZES, run_lifted, run_on_cpu

JOINED = 2e-5
"""Relative error where threads join sums in an order of their own."""
SPELLINGS = sorted((Path(__file__).parent / "spellings").glob("*.cu"))


@pytest.mark.slow
@pytest.mark.parametrize("path", SPELLINGS, ids=lambda path: path.stem)
def test_lifted_kernels_compute_the_same(path: Path, tmp_path: Path) -> None:
    source = path.read_text()
    unit = SourceUnit.parse(source)
    launchers = list(dict.fromkeys(launch.function for launch in unit.launches))
    expected = run_on_cpu(source, launchers, tmp_path)
    wrong = []
    tolerance = JOINED if path.stem == "cooperative" else 1e-6
    for position, launcher in enumerate(launchers):
        for place, (n, m) in enumerate(SIZES):
            found = run_lifted(unit, launcher, n, m)
            try:
                np.testing.assert_allclose(
                    found, expected[position, place], rtol=tolerance, atol=tolerance / 10
                )
            except AssertionError as error:
                wrong.append(f"{launcher} at n={n} m={m}: {' '.join(str(error).split())[:150]}")
    assert not wrong, "\n".join(wrong)
