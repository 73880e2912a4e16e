"""Where sums may be taken in another order, each product is joined with an addition."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.moves.plan import Plan
from kernelskill.algorithm.moves.registry import MOVES
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.schedule import Schedule
from tests.unit.algorithm.lifting_samples import lifted

PARAMETERS = "const float* x, float* y, int rows, int n"


def shown(step: str, move: str = "share_rows") -> str:
    source = (
        f"__global__ void f({PARAMETERS}) {{ int r = blockIdx.x * blockDim.x + threadIdx.x;"
        f" if (r < rows) {{ float s = 0.0f; for (int j = 0; j < n; ++j) {{ float a = x[r * n + j], b = x[j];"
        f" s += sqrtf({step}); }} y[r] = s; }} }}\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(rows + 63) / 64, 64>>>(x, y, rows, n); }}\n'
    )
    values = {"lanes": "32", "threads": "32", "vector": "1"}
    plan = MOVES[move].apply(Plan(lifted(source).algorithm, Schedule()), values)
    text = show(plan.algorithm.stores[0].value)
    return text.replace("x[r * n + j]", "a").replace("x[j]", "b")


@pytest.mark.parametrize(
    ("step", "becomes"),
    [
        ("a * a + b * b + 2.0f", "2.0f + a * a + b * b"),
        ("a * a + b * b + a + b", "a + a * a + b * b + b"),
        ("a * a + a * b + b * b + 2.0f", "2.0f + a * a + a * b + b * b"),
    ],
)
def test_a_single_term_comes_first(step: str, becomes: str) -> None:
    assert f"sqrtf({becomes})" in shown(step)
    assert f"sqrtf({becomes})" in shown(step, "share_columns")


@pytest.mark.parametrize(
    "step",
    [
        "a * a + 2.0f + b * b",
        "a * a + b * b",
        "a * a + b * b - 2.0f",
        "a * a + (b * b + 2.0f)",
        "a / b + b * b + 2.0f",
    ],
)
def test_nothing_changes_where_nothing_is_won(step: str) -> None:
    assert f"sqrtf({step})" in shown(step)


def test_moves_that_keep_the_order_keep_it() -> None:
    source = (
        f"__global__ void f({PARAMETERS}) {{ int r = blockIdx.x * blockDim.x + threadIdx.x;"
        " if (r < n) y[r] = x[r] * x[r] + x[r + n] * x[r] + 2.0f; }\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(n + 63) / 64, 64>>>(x, y, rows, n); }}\n'
    )
    plan = Plan(lifted(source).algorithm, Schedule())
    made = MOVES["vector_points"].apply(plan, {"vector": "4", "threads": "64"})
    assert made.algorithm.stores[0].value == plan.algorithm.stores[0].value
