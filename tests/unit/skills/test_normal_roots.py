"""Inverse roots of normal numbers: what is proved, what is left alone."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.lowering.normal_roots import root_function
from tests.skills.applying import changed_lines, refusals

SKILL = "compute/normal_roots"
HEAD = "#define EPS 1e-2f\n__global__ void k(const float* x, float* y, double* d, int n, unsigned m, float c) {\n"
TAIL = '\n}\nextern "C" void f(float* x, float* y, double* d, int n, unsigned m) { k<<<1, 32>>>(x, y, d, n, m, 2.0f); }\n'
FORM = ["+ ", *(f"+ {line.strip()}" for line in root_function("rsqrt_of_normal").splitlines())]


def body(text: str) -> str:
    return HEAD + text + TAIL


@pytest.mark.parametrize(
    "given",
    [
        "c * c + x[0] * x[0] + EPS",
        "fmaxf(c, 1e-6f)",
        "max(EPS, x[0])",
        "m + 1.0f",
        "fmaf(c, c, 0.5f)",
        "expf(c) / fabsf(c) + 1e-37f",
        "fabs(d[0]) + 1e-9",
        "c > 0 ? 2.0f : fabsf(c) + 1",
    ],
)
def test_what_is_proved(given: str) -> None:
    text = body(f"y[0] = rsqrtf({given});")
    changed = changed_lines(SKILL, text)
    assert [line for line in changed if line not in FORM] == [
        f"- y[0] = rsqrtf({given});",
        f"+ y[0] = rsqrt_of_normal({given});",
    ]
    assert [line for line in changed if line in FORM and line != "+ "]


@pytest.mark.parametrize(
    "text",
    [
        "float s = EPS; s += c * c; y[0] = rsqrt(s);",
        "const float base = c * c + EPS; y[0] = 2 * rsqrtf(base);",
    ],
)
def test_variables_are_followed(text: str) -> None:
    assert any(
        "rsqrt_of_normal(" in line and line.startswith("+ ") for line in changed_lines(SKILL, body(text))
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[0] = rsqrtf(c);", "no argument"),
        ("y[0] = rsqrtf(c * c);", "no argument"),
        ("y[0] = rsqrtf(c * x[0] + EPS);", "no argument"),
        ("y[0] = rsqrtf(c * c - EPS);", "no argument"),
        ("y[0] = rsqrtf(c * c + 1e-39f);", "no argument"),
        ("y[0] = rsqrtf(fmaxf(c, fmaxf(x[0], EPS)));", "no argument"),
        ("y[0] = rsqrtf(fminf(c, EPS));", "no argument"),
        ("float s = EPS; if (n > 3) s = c; y[0] = rsqrtf(s);", "no argument"),
        ("float s = EPS; for (int i = 0; i < n; ++i) s -= 1; y[0] = rsqrtf(s);", "no argument"),
        ("d[0] = rsqrt(d[1] * d[1] + 1.0);", "no inverse root of a float"),
        ("y[0] = sqrtf(c * c + EPS);", "no inverse root of a float"),
    ],
)
def test_what_is_left_alone(text: str, reason: str) -> None:
    assert reason in refusals(SKILL, body(text))[0]


def test_a_macro_of_two_values_proves_nothing() -> None:
    two = "#ifdef SMALL\n#define LEAST 1e-40f\n#else\n#define LEAST 1e-2f\n#endif\n"
    assert "no argument" in refusals(SKILL, two + body("y[0] = rsqrtf(c * c + LEAST);"))[0]


def test_a_function_that_the_kernel_calls() -> None:
    called = "__device__ float level(float v) { return rsqrtf(v * v + 1.0f); }\n"
    changed = changed_lines(SKILL, called + body("y[0] = level(c);"))
    assert "+ __device__ float level(float v) { return rsqrt_of_normal(v * v + 1.0f); }" in changed
    own = "__device__ float rsqrtf(float v) { return v; }\n"
    assert "defined in the source" in refusals(SKILL, own + body("y[0] = rsqrtf(1.0f + c * c);"))[0]
