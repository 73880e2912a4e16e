"""Inverse roots lose the test for subnormal numbers only where it is proved that there are none."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.algorithm.lowering.kernel import Emitted, LaunchFacts, emit
from kernelskill.algorithm.schedule import Schedule
from kernelskill.source.unit import SourceUnit

PARAMETERS = "const float* x, float* y, float eps, int n"


def emitted(value: str, before: str = "", taken: str = "") -> Emitted:
    text = (
        f"__global__ void f({PARAMETERS}) {{ int i = blockIdx.x * blockDim.x + threadIdx.x;"
        f" if (i < n) {{ float a = x[i], b = x[i + n]; {before} y[i] = {value}; }} }}\n"
        f'extern "C" void h({PARAMETERS}) {{ f<<<(n + 63) / 64, 64>>>(x, y, eps, n); }}\n'
    )
    unit = SourceUnit.parse(text)
    algorithm = lift_kernel(unit, unit.kernels[0]).algorithm
    names = {parameter.name: parameter.name for parameter in algorithm.parameters}
    return emit(algorithm, Schedule(), LaunchFacts(names, identifiers=frozenset({taken})))


@pytest.mark.parametrize(
    "value",
    [
        "rsqrtf(a * a + b * b + 1e-2f)",
        "rsqrtf(1e-37f + a * a)",
        "rsqrt(fabsf(a) + 1.0f)",
        "rsqrtf(fmaxf(a, 1e-6f))",
        "rsqrtf(max(1e-6f, a))",
        "rsqrtf(a > 1e-6f ? a : 1e-6f)",
        "rsqrtf(a < 1e-6f ? 1e-6f : a)",
        "rsqrtf(expf(a) / fabsf(b) + 1)",
        "rsqrtf((float)(fabs((double)a) + 1e-9))",
        "rsqrtf(fmaf(a, a, 0.5f))",
    ],
)
def test_what_is_never_subnormal_is_not_tested(value: str) -> None:
    found = emitted(value)
    assert "rsqrt_of_normal(" in found.kernel
    assert found.definitions.count("rsqrt.approx.ftz.f32") == 1


def test_a_sum_of_squares_counts_as_one() -> None:
    loop = "float s = 1e-5f; for (int j = 0; j < n; ++j) s += x[j] * x[j];"
    assert "rsqrt_of_normal(" in emitted("rsqrtf(s)", loop).kernel
    assert "rsqrt_of_normal(" not in emitted("rsqrtf(s)", loop.replace("1e-5f", "0.0f")).kernel


@pytest.mark.parametrize(
    "value",
    [
        "rsqrtf(a)",
        "rsqrtf(a * a)",
        "rsqrtf(a * b + 1e-2f)",
        "rsqrtf(a * a + eps)",
        "rsqrtf(a * a + 1e-39f)",
        "rsqrtf(a * a - 1e-2f)",
        "rsqrtf(fminf(a, 1.0f))",
        "rsqrtf(fmaxf(a, fmaxf(b, 1e-6f)))",
        "rsqrtf(a > 1e-6f ? 1e-6f : a)",
        "rsqrtf(0.5f * a * a)",
        "rsqrt(a * a + 1e-2)",
        "sqrtf(a * a + 1e-2f)",
    ],
)
def test_what_may_be_subnormal_is(value: str) -> None:
    found = emitted(value)
    assert "rsqrt_of_normal" not in found.kernel
    assert "asm" not in found.definitions


def test_the_name_meets_no_other() -> None:
    found = emitted("rsqrtf(a * a + 1.0f)", taken="rsqrt_of_normal")
    assert "rsqrt_of_normal_2(" in found.kernel
    assert "float rsqrt_of_normal_2(float x)" in found.definitions
