"""Stores in loops are emitted only where no turn reads what another one writes."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lowering.order import check_order
from kernelskill.algorithm.model import IllegalMove
from tests.unit.algorithm.lifting_samples import body

RUNNING = "float t = 0.0f; for (int j = 0; j < m; ++j) {{ float x = {read}; c[i * m + j] = t; t += x; }}"
SAFE = {
    "its own element": "for (int j = 0; j < m; ++j) c[i * m + j] = c[i * m + j] * 2.0f;",
    "another array": RUNNING.format(read="a[i * m + j]"),
    "sums that are complete before": "float s = 0.0f; for (int j = 0; j < m; ++j) s += c[i * m + j];"
    " for (int j = 0; j < m; ++j) c[i * m + j] = c[i * m + j] / s;",
    "the elements between": "for (int j = 0; j < m; ++j) c[2 * (i * m + j)] = c[2 * (i * m + j) + 1];",
}


@pytest.mark.parametrize("name", SAFE)
def test_what_keeps_its_order_is_emitted(name: str) -> None:
    check_order(body(SAFE[name]))


def test_a_scan_in_place_is_not_emitted_as_a_loop() -> None:
    with pytest.raises(IllegalMove, match="other turns write it"):
        check_order(body(RUNNING.format(read="c[i * m + j]")))
