"""The compute skills on several spellings, and what they decline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.skills.applying import changed_lines, refusals

HEAD = "__global__ void k(const float* x, float* y, double* d, int n, unsigned p) {\n"
TAIL = '\n}\nextern "C" void f(float* x, float* y, double* d, int n) { k<<<1, 32>>>(x, y, d, n, 3); }\n'


def body(text: str) -> str:
    return HEAD + text + TAIL


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y[0] = 0.5 * x[0];", "y[0] = 0.5f * x[0];"),
        (
            "float v = x[0]; y[0] = 1.0 / (1 + exp(-v * 2.5e-1));",
            "float v = x[0]; y[0] = 1.0f / (1 + exp(-v * 2.5e-1f));",
        ),
        (
            "y[0] = x[0] > 0.0 ? x[0] : /* 0.5 */ .01 * x[0];",
            "y[0] = x[0] > 0.0f ? x[0] : /* 0.5 */ .01f * x[0];",
        ),
        (
            "y[n] = fmaxf(x[0], 0.) + static_cast<float>(2.0);",
            "y[n] = fmaxf(x[0], 0.f) + static_cast<float>(2.0f);",
        ),
        ("y[0] = (x[0] + 3) * (2.0 * n);", "y[0] = (x[0] + 3) * (2.0f * n);"),
    ],
)
def test_float_literals(before: str, after: str) -> None:
    assert changed_lines("compute/float_literals", body(before)) == [f"- {before}", f"+ {after}"]


@pytest.mark.parametrize(
    "text",
    [
        "d[0] = 0.5 * x[0];",
        "double s = 0; s += 0.1 * x[0]; y[0] = s;",
        "y[0] = d[0] * 0.5 + x[0];",
        "int i = x[0] * 0.1; y[i] = 0;",
        "if (x[0] < 0.1) y[0] = 0;",
        "y[0] = x[0] * 1e300;",
        "y[0] = x[0] * 1e-44;",
        "y[(int)(x[0] * 0.3)] = 1;",
        "float v = 0.5f; y[0] = v;",
        "y[0] = unknown(x[0], 0.5);",
        "y[0] = (double)x[0] * 0.1;",
    ],
)
def test_float_literals_left_alone(text: str) -> None:
    assert refusals("compute/float_literals", body(text)) == ["no double literal stands in float arithmetic"]


def test_a_macro_is_changed_where_every_use_is_float() -> None:
    source = "#define EPS 1e-5 // small\n" + body("y[0] = sqrt(x[0] + EPS);")
    assert changed_lines("compute/float_literals", source) == [
        "- #define EPS 1e-5 // small",
        "+ #define EPS 1e-5f // small",
    ]
    refusals("compute/float_literals", "#define EPS 1e-5\n" + body("y[0] = x[0] + EPS; d[0] += EPS;"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float v = x[0]; y[0] = powf(v, 2.0f) + 1;", ["float v = x[0]; y[0] = (v * v) + 1;"]),
        ("y[0] = pow(x[0] - 1, 3);", ["const float base = x[0] - 1;", "y[0] = base * base * base;"]),
        ("d[0] = std::pow(n, -1.0);", ["d[0] = 1.0 / (double)n;"]),
        (
            "float v = x[0]; y[0] = powf(v * v + 1.f, 0.5f);",
            ["float v = x[0];", "const float base = v * v + 1.f;", "y[0] = sqrtf(base);"],
        ),
        (
            "float v = x[0]; if (n) v = powf(v + 1, 4);",
            ["float v = x[0]; if (n) { const float base = v + 1; v = (base * base) * (base * base); }"],
        ),
        (
            "float r = x[0] * x[0] + 1e-9f; y[0] = x[1] / pow(r, 1.5f);",
            [
                "float r = x[0] * x[0] + 1e-9f;",
                "const float inverse_root = rsqrtf(r);",
                "y[0] = x[1] * inverse_root * inverse_root * inverse_root;",
            ],
        ),
        (
            "float r = x[0] * x[0]; y[0] = 1 / pow(r, 1.5) + n / (powf(r, 0.5f));",
            [
                "float r = x[0] * x[0];",
                "const float inverse_root = rsqrtf(r);",
                "y[0] = inverse_root * inverse_root * inverse_root + n * rsqrtf(r);",
            ],
        ),
        (
            "double r = d[0] * d[0]; d[1] = n / pow(r, 2.5) + 1.0 / powf(fabsf(n), 1.5f);",
            [
                "double r = d[0] * d[0];",
                "const double inverse_root = rsqrt(r);",
                "const float base = fabsf(n);",
                "d[1] = n * inverse_root * inverse_root * inverse_root * inverse_root * inverse_root"
                " + 1.0 / (base * sqrtf(base));",
            ],
        ),
        (
            "float r = fabsf(c); while (c / powf(r, 1.5f) > powf(r, -1.5f)) c = c + 1;",
            ["float r = fabsf(c); while (c / (r * sqrtf(r)) > (rsqrtf(r) / r)) c = c + 1;"],
        ),
        ("double r = exp(d[0]); d[0] = std::pow(r, -0.5);", ["double r = exp(d[0]); d[0] = rsqrt(r);"]),
        (
            "float r = fabsf(x[0]); y[0] = __powf(r, -1.5f);",
            [
                "float r = fabsf(x[0]);",
                "const float inverse_root = rsqrtf(r);",
                "y[0] = inverse_root * inverse_root * inverse_root;",
            ],
        ),
        ("float v = x[0]; d[0] = pow(v, 2);", ["float v = x[0]; d[0] = (double)v * (double)v;"]),
        ("float v = x[0]; y[0] = pow(v, 2) * 0.5;", ["float v = x[0]; y[0] = (v * v) * 0.5;"]),
        ("y[0] = powf(p, 2.5f) + 1;", ["y[0] = ((float)p * (float)p * sqrtf((float)p)) + 1;"]),
        (
            "y[0] = powf(x[0], 2.5f);",
            [
                "const float given = x[0];",
                "// As in pow: minus infinity counts as infinity, and there is no negative zero.",
                "const float base = given == -INFINITY ? INFINITY : given + 0.0f;",
                "y[0] = base * base * sqrtf(base);",
            ],
        ),
    ],
)
def test_small_powers(before: str, after: list[str]) -> None:
    assert changed_lines("compute/small_powers", body(before)) == [
        f"- {before}",
        *(f"+ {line}" for line in after),
    ]


def test_small_powers_of_the_one_statement_of_a_loop() -> None:
    before = "for (int i = 0; i < n; ++i) // all\n    if (i > 2)\n        y[0] += pow(x[i], 2);\n    else\n        y[0] += x[i];"
    assert changed_lines("compute/small_powers", body(before)) == [
        "- if (i > 2)",
        "- y[0] += pow(x[i], 2);",
        "+ if (i > 2) {",
        "+ const float base = x[i];",
        "+ y[0] += base * base;",
        "+ }",
    ]
    commented = "for (int i = 0; i < n; ++i) // all\n    y[0] += pow(x[i], 2);"
    assert (
        changed_lines("compute/small_powers", body(commented))[2] == "+ for (int i = 0; i < n; ++i) { // all"
    )


def test_small_powers_of_device_functions() -> None:
    function = "__device__ float g(float v) { return 1.0f / pow(v * v, 1.5) + pow(v, 2); }\n"
    template = "template <typename T> __device__ T h(T v) { return pow(v, 2); }\n"
    assert changed_lines("compute/small_powers", function + template + body("y[0] = g(x[0]) + h(x[1]);")) == [
        f"- {function.strip()}",
        "+ __device__ float g(float v) {",
        "+ const float base = v * v;",
        "+ const float inverse_root = rsqrtf(base);",
        "+ return inverse_root * inverse_root * inverse_root + (v * v); }",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("float v = x[0]; y[0] = n > 2 && powf(v, 0.5f) > 1;", "may be negative"),
        ("int i = 0; y[0] = powf(x[i++], 2);", "side effects"),
        (
            "y[0] = n > 3 ? powf(x[n], 2) : 0;",
            "before the statement",
        ),  # would read x[n] where it was not read
        ("for (int i = 0; i < powf(x[i], 2); ++i) y[i] = 0;", "before the statement"),
        ("y[0] = powf(unknown(x[0]), 2);", "no known type"),
        ("float v = x[0], w = powf(v * expf(v), 2); y[0] = w;", "before the statement"),
        ("float v = x[0]; y[0] = powf(v, 2.25f) + pow(v, n) + pow(v, 70);", "no power with a small"),
    ],
)
def test_small_powers_left_alone(text: str, reason: str) -> None:
    assert reason in refusals("compute/small_powers", body(text))[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for (int j = 0; j < n; ++j) y[j] = 1;", ["- for (int j = 0; j < n; ++j) y[j] = 1;"][:0]),
        ("int j = 0;\nwhile (j < n) { y[j] = 1; ++j; }", []),
        ("if (n > 3)\nfor (size_t q = p; q < (size_t)n; q += p) y[q] = 1;", []),
    ],
)
def test_unroll_inserts_one_line(before: str, after: list[str]) -> None:
    assert changed_lines("compute/unroll", body(before), factor="8") == [*after, "+ #pragma unroll 8"]


def test_unroll_replaces_a_factor_and_skips_short_loops() -> None:
    source = body("#pragma unroll 2\nfor (int j = 0; j < n; ++j) y[j] = 1;")
    assert changed_lines("compute/unroll", source, factor="16") == [
        "- #pragma unroll 2",
        "+ #pragma unroll 16",
    ]
    refusals("compute/unroll", body("for (int j = 0; j < 4; ++j) y[j] = 1;"))


def test_independent_accumulators() -> None:
    lines = changed_lines(
        "compute/independent_accumulators",
        body("float s = 0;\nfor (unsigned i = p; i < p + 9u; i++) { s -= x[i]; y[i] = i; }\ny[0] = s;"),
        accumulators="2",
    )
    assert lines[1:] == [
        "+ {",
        "+ float s_1 = 0;",
        "+ unsigned i = p;",
        "+ for (; i < (p + 9u) && (p + 9u) - i > 1; i += 2) {",
        "+ { s -= x[i]; y[i] = i; }",
        "+ { const unsigned i_1 = i + 1; s_1 -= x[i_1]; y[i_1] = i_1; }",
        "+ }",
        "+ for (; i < (p + 9u); ++i) { s -= x[i]; y[i] = i; }",
        "+ s += s_1;",
        "+ }",
    ]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int i = 0; i < n; ++i) { s += x[i]; if (s > 3) y[i] = 0; }", "uses nowhere else"),
        ("for (int i = 0; i < n; ++i) { if (x[i] < 0) continue; s += x[i]; }", "can be left"),
        ("for (int i = 0; i < n; ++i) { s += x[i]; if (i == 7) break; }", "can be left"),
        ("for (int i = 0; i < n; i += 2) s += x[i];", "count by one"),
        ("for (int i = -3; i < n; ++i) s += x[i + 3];", "below zero"),
        ("for (int i = 0; i < n; ++i) { s += x[i]; n -= 1; }", "is not `for"),
        ("for (int i = 0; i < n; ++i) { s += x[i]; ++i; }", "is not `for"),
        ("for (int i = 0; i < p; ++i) s += x[i];", "signed with unsigned"),
        ("for (int i = 0; i < n; ++i) s = s * 0.5f + x[i];", "uses nowhere else"),
        ("for (int i = 0; i < 4; ++i) s += x[i];", "short"),
    ],
)
def test_independent_accumulators_declines(loop: str, reason: str) -> None:
    (given_reason,) = refusals("compute/independent_accumulators", body(f"float s = 0; {loop} y[0] = s;"))
    assert reason in given_reason


def test_division_by_invariant() -> None:
    lines = changed_lines(
        "compute/division_by_invariant",
        body("for (unsigned i = 0; i < 99u; ++i) y[i] = x[(i / p) % p];"),
        method="power_of_two",
    )
    assert "+ const int p_shift = p != 0 && (p & (p - 1)) == 0 ? 31 - __clz((int)p) : -1;" in lines
    assert lines[-1] == (
        "+ for (unsigned i = 0; i < 99u; ++i) "
        "y[i] = x[remainder_or_mask(quotient_or_shift(i, p, p_shift), p, p_shift)];"
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for (unsigned i = 0; i < 99u; ++i) { y[i] = i / p; p += 1; }",
        "for (size_t i = 0; i < 99; ++i) y[i] = i / p;",
        "for (int i = 0; i < 99; ++i) y[i] = i / 7;",
        "for (int i = 0; i < 99; ++i) y[i] = x[i] / n;",
        "for (int i = 0; i < 99; ++i) y[i] = i / p;",
        "y[0] = n / 3 + p / p;",
    ],
)
def test_division_by_invariant_declines(loop: str) -> None:
    refusals("compute/division_by_invariant", body(loop))


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**32 - 1) | st.integers(1, 70000))
def test_the_reciprocal_is_at_most_two_too_small(dividend: int, divisor: int) -> None:
    """The arithmetic of `quotient_by`, in Python."""
    guess = (dividend * (0xFFFFFFFF // divisor)) >> 32
    rest = dividend - guess * divisor
    for _ in range(2):
        if rest >= divisor:
            rest, guess = rest - divisor, guess + 1
    assert (guess, rest) == divmod(dividend, divisor)
    assert rest < 2**32
