"""Long functions are not written out for many points at once."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.code_size import require_short
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.schedule import AxisPlan, Schedule
from tests.unit.algorithm.lifting_samples import body


def refusal(statements: str, points: int) -> str:
    """Return why so many points of a thread are too many; empty where they are not."""
    algorithm = body(statements)
    schedule = Schedule(axes=(AxisPlan(algorithm.axes[0].name, 128, points),))
    try:
        require_short(algorithm, schedule)
    except IllegalMove as refused:
        return refused.reason
    return ""


@pytest.mark.parametrize(
    ("statements", "points", "function"),
    [
        ("c[i] = pow(a[i] - b[i], 2);", 64, "pow"),
        ("c[i] = pow(a[i] - b[i], 2);", 1, ""),
        ("c[i] = pow(a[i] - b[i], 2);", 16, ""),
        ("c[i] = powf(a[i], b[i]);", 64, "powf"),
        ("c[i] = powf(a[i], b[i]);", 32, ""),
        ("c[i] = sinf(a[i]) * cosf(b[i]);", 64, "cosf, sinf"),
        ("c[i] = expf(a[i]) + sqrtf(b[i]) + tanhf(a[i]);", 64, ""),
        ("float s = 0.0f; for (int j = 0; j < m; ++j) s += exp((double)a[j] - b[i]); c[i] = s;", 64, "exp"),
        ("c[i] = a[i] * b[i];", 256, ""),
    ],
)
def test_long_functions(statements: str, points: int, function: str) -> None:
    reason = refusal(statements, points)
    assert reason.startswith(f"{function} would be written out") if function else not reason
