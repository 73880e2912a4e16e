"""Lanes share the loops along which a point stores only where no two of its stores can meet."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.schedule import Schedule
from tests.unit.algorithm.lifting_samples import body

SUM = "float s = 0.f; for (int j = 0; j < m; ++j) s += a[i * m + j]; "


def shared(stores: str) -> Plan:
    return MOVES["share_rows"].apply(
        Plan(body(SUM + stores), Schedule()), {"lanes": "32", "threads": "128", "vector": "4"}
    )


@pytest.mark.parametrize(
    "stores",
    [
        "for (int j = 1; j < m; ++j) { c[i * m + j] = s; c[i * m + j - 1] = b[j]; }",
        "for (int j = 0; j < m; ++j) c[i * m + j] = s; for (int j = 0; j < m; ++j) c[i * m + j + 1] = b[j];",
        "for (int j = 0; j < m; ++j) { c[i * m + j] = s; if (b[j] > 0.f) c[i * m + j] = b[j]; }",
        "c[i * m] = s; for (int j = 0; j < m; ++j) c[i * m + j] = b[j];",
    ],
)
def test_stores_that_may_meet_stay_in_one_thread(stores: str) -> None:
    with pytest.raises(IllegalMove, match="may meet"):
        shared(stores)


@pytest.mark.parametrize(
    "stores",
    [
        "for (int j = 0; j < m; ++j) { c[2 * (i * m + j)] = s; c[2 * (i * m + j) + 1] = b[j]; }",
        "for (int j = 0; j < m; ++j) { c[2 * i * m + j] = s; c[2 * i * m + m + j] = b[j]; }",
        "for (int j = 0; j < 8; ++j) { c[16 * i + j] = s; c[16 * i + 8 + j] = b[j]; }",
    ],
)
def test_stores_that_never_meet_are_shared(stores: str) -> None:
    assert shared(stores).schedule.lanes == 32
