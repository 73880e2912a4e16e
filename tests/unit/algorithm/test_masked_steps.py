"""Steps of an accumulator that are left out become branches, only where leaving them out changes nothing."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.lowering.kernel import LaunchFacts, emit
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit

PARAMETERS = "const float* x, const float* w, float* y, int n, int k"


def emitted(body: str) -> str:
    text = (
        f"__global__ void f({PARAMETERS}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; {body} }}\n"
        f'extern "C" void g({PARAMETERS}) {{ f<<<(n + 63) / 64, 64>>>(x, w, y, n, k); }}\n'
    )
    unit = SourceUnit.parse(text)
    lifted = lift_kernel(unit, unit.kernels[0])
    return emit(
        lifted.algorithm, Schedule(), LaunchFacts(dict(lifted.arguments), configuration="1, 64")
    ).kernel


def looped(start: str, step: str) -> str:
    return f"float s = {start}; for (int j = 0; j < k; ++j) {{ {step} }} y[i] = s;"


TAP = "s += w[j] * x[i + j]"


@pytest.mark.parametrize(
    ("start", "step", "branch"),
    [
        ("0.0f", f"if (i + j < n) {TAP};", "if (i + j < n)"),
        ("0.0f", f"if (i + j >= n) continue; {TAP};", "if (i + j < n)"),
        ("w[0]", f"if (i + j < n && j != i) {TAP};", "if (i + j < n && j != i)"),
        ("1.0f", "if (i + j < n) s *= x[i + j];", "if (i + j < n)"),
        ("-1e30f", "if (i + j < n && x[i + j] > s) s = x[i + j];", "if (i + j < n)"),
        ("-1e30f", "if (i + j < n) s = fmaxf(s, x[i + j]);", "if (i + j < n)"),
    ],
)
def test_a_step_that_is_left_out_is_a_branch(start: str, step: str, branch: str) -> None:
    assert branch in emitted(looped(start, step)).replace("j + i", "i + j")


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ("w[0]", "s += i + j < n ? x[i + j] : 0.0f;"),  # a sum of -0 becomes +0
        ("0.0f", "s += i + j < n ? x[i + j] : 1.0f;"),
        ("w[0]", "s = fmaxf(s, i + j < n ? x[i + j] : -INFINITY);"),  # NaN becomes -inf
    ],
)
def test_a_value_that_is_taken_in_stays(start: str, step: str) -> None:
    assert "? x[" in emitted(looped(start, step))
