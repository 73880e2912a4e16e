"""A family begins elsewhere where that promises more, and gains something at all."""

from __future__ import annotations

from kernelskill.graph.forecasting import better_starts

BEGUN = [("rows", "middle"), ("rows", "end"), ("tiles", "far"), ("blocks", "other")]


def test_the_best_other_beginning_is_taken() -> None:
    told = {"middle": 0.12, "end": 0.19, "far": 0.13}
    assert better_starts(BEGUN, {"rows": -0.1, "tiles": 0.1}, told) == {"rows": "end"}


def test_what_gains_nothing_is_no_better_beginning() -> None:
    assert better_starts(BEGUN, {"rows": -2.0}, {"middle": -0.5, "end": 0.04}) == {}
