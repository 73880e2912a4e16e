"""Quotients of bench rows: the library's time by ours, or the part of the roof."""

import pytest

from kernelskill.sweep.bench import BenchCase, BenchRow, mean_quotient


def row(*cases: BenchCase) -> BenchRow:
    return BenchRow(task="t", outcome="improved", speedup=2.0, cases=cases)


def case(**facts: float) -> BenchCase:
    return BenchCase(case="n=1", original_ms=4.0, result_ms=2.0, **facts)


def test_the_library_comes_before_the_roof() -> None:
    assert case(library_ms=3.0, roof_fraction=0.5).quotient == 1.5
    assert case(roof_fraction=0.5).quotient == 0.5
    assert case().quotient is None


def test_a_row_has_one_where_every_case_has() -> None:
    assert row(case(library_ms=4.0), case(library_ms=1.0)).quotient == pytest.approx(1.0)
    assert row(case(library_ms=4.0), case()).quotient is None
    assert row().quotient is None


def test_the_mean_may_be_capped() -> None:
    rows = [row(case(library_ms=8.0)), row(case(roof_fraction=0.25)), row(case())]
    assert mean_quotient(rows) == pytest.approx(1.0)
    assert mean_quotient(rows, 1.0) == pytest.approx(0.5)
    assert mean_quotient([row()]) is None
