"""Powers of two and ten and logarithms to them: what becomes of them, what is declined."""

from __future__ import annotations

import pytest

from tests.skills.applying import changed_lines, refusals

SKILL = "compute/bases_two_and_ten"
HEAD = "#define TWO 2.0f\n__global__ void k(const float* x, float* y, double* d, int n, float c) {\n"
TAIL = '\n}\nextern "C" void f(float* x, float* y, double* d, int n) { k<<<1, 32>>>(x, y, d, n, 2.0f); }\n'


def body(text: str) -> str:
    return HEAD + text + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y[0] = powf(2.0f, x[0]) + 1;", "y[0] = exp2f(x[0]) + 1;"),
        ("y[0] = pow(TWO, c - 1);", "y[0] = exp2f(c - 1);"),
        ("y[0] = 1 / std::pow(10, -c / 20);", "y[0] = 1 / exp10f(-c / 20);"),
        ("y[0] = powf(4, c + 1) * powf(0.5f, c);", "y[0] = exp2f(2.0f * (c + 1)) * exp2f(-c);"),
        ("d[0] = pow(2, c) + pow(0.25, d[1]);", "d[0] = exp2(c) + exp2(-2.0 * d[1]);"),
        ("y[0] = powf(2.0f, powf(10.0f, c));", "y[0] = powf(2.0f, exp10f(c));"),
        ("y[0] = logf(c) / logf(2.0f);", "y[0] = log2f(c);"),
        ("y[0] = 20.0f * log(c) / M_LN10;", "y[0] = 20.0f * log10f(c);"),
        ("y[0] = (c / 2 * logf(x[0] + 1)) / 0.69314718f;", "y[0] = (c / 2 * log2f(x[0] + 1));"),
        ("d[0] = std::log(d[1]) / std::log(10);", "d[0] = log10(d[1]);"),
    ],
)
def test_bases(before: str, after: str) -> None:
    assert changed_lines(SKILL, body(before)) == [f"- {before}", f"+ {after}"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[0] = pow(2, n);", "meant to be exact"),
        ("y[0] = pow(2.0f, unknown(c));", "no known type"),
        ("y[0] = powf(3.0f, c) + powf(2.0f, 3.0f) + __powf(2.0f, c);", "no power of"),
        ("y[0] = logf(c) / logf(3.0f) + logf(c) / 0.69f + c / logf(2.0f);", "no power of"),
        ("y[0] = logf(2.0f) / logf(c) + c / logf(c) / logf(2.0f);", "no power of"),
        ("d[0] = logf(c) / M_LN2;", "no power of"),  # a quotient of doubles
    ],
)
def test_bases_left_alone(text: str, reason: str) -> None:
    assert reason in refusals(SKILL, body(text))[0]


def test_functions_of_the_source() -> None:
    own = "__device__ float exp2f(float v) { return v; }\n"
    assert "defined in the source" in refusals(SKILL, own + body("y[0] = powf(2, c);"))[0]
    called = "__device__ float level(float v) { return logf(v) / logf(10.0f); }\n"
    assert changed_lines(SKILL, called + body("y[0] = level(c);"))[1] == (
        "+ __device__ float level(float v) { return log10f(v); }"
    )
