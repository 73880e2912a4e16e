"""Quotients by products of a value and its square root: what becomes of them, what is declined."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, changed_lines, refusals
from tests.skills.contexts import context_for

SKILL = "compute/inverse_roots"
HEAD = "__global__ void k(const float* x, float* y, double* d, int n, float c, float* z) {\n"
TAIL = '\n}\nextern "C" void f(float* x, float* y, double* d, int n) { k<<<1, 32>>>(x, y, d, n, 2.0f, y); }\n'
WHY = "// Plus zero: of negative zero, the product with the root is positive."
ROOT = "const float inverse_root = rsqrtf(x[0]);"
CUBE = "inverse_root * inverse_root * inverse_root"
FIFTH = f"{CUBE} * inverse_root * inverse_root"


def body(text: str) -> str:
    return HEAD + text + TAIL


def added(source: str) -> list[str]:
    """Return the new lines."""
    return [line[2:] for line in changed_lines(SKILL, source) if line[0] == "+"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("y[0] = -(c + 1) / sqrtf(x[0]);", ["y[0] = -(c + 1) * rsqrtf(x[0]);"]),
        ("y[0] = c * (1.0f / sqrtf(x[0]));", ["y[0] = c * (rsqrtf(x[0]));"]),
        ("y[0] = c - 1 / std::sqrt(x[0]);", ["y[0] = c - rsqrtf(x[0]);"]),
        ("d[0] = c / (d[1] / sqrt(d[2] + 1));", ["d[0] = c / (d[1] * rsqrt(d[2] + 1));"]),
        ("y[0] = c * c / sqrtf(c) * 2;", ["y[0] = c * c * rsqrtf(c) * 2;"]),
        ("y[0] /= sqrtf(x[0]);", ["y[0] *= rsqrtf(x[0]);"]),
        ("y[0] = c / sqrtf(c / sqrtf(x[0]));", ["y[0] = c / sqrtf(c * rsqrtf(x[0]));"]),
        ("y[0] = c / (x[0] * x[0] * sqrtf(x[0]));", [ROOT, f"y[0] = c * {FIFTH};"]),
        ("y[0] = n / (x[0] * (sqrtf(x[0]) * x[0]));", [ROOT, f"y[0] = n * {FIFTH};"]),
        ("y[0] /= sqrt(x[0]) * x[0] * x[0];", [ROOT, f"y[0] = y[0] * {FIFTH};"]),
        (
            "y[0] = x[1] / (x[0] * sqrtf(x[0]));",
            [WHY, "const float inverse_root = rsqrtf(x[0] + 0.0f);", f"y[0] = x[1] * {CUBE};"],
        ),
        (
            "d[0] = 1.0 / (sqrt(d[1] - 1) * (d[1] - 1));",
            [WHY, "const double inverse_root = rsqrt((d[1] - 1) + 0.0);", f"d[0] = {CUBE};"],
        ),
        (
            "if (n) y[0] = c / (c * c * sqrtf(c));",
            [f"if (n) {{ const float inverse_root = rsqrtf(c); y[0] = c * {FIFTH}; }}"],
        ),
        (
            "y[0] = c / (4.0f * 3.14f * sqrtf(x[0])) + c / (0.25f * sqrtf(x[0])) + 1 / (4 * sqrtf(x[0]));",
            [
                "y[0] = c / (4.0f * 3.14f) * rsqrtf(x[0]) + c * rsqrtf(x[0]) / 0.25f + 1.0f / 4 * rsqrtf(x[0]);"
            ],
        ),
    ],
)
def test_in_the_divisor(text: str, lines: list[str]) -> None:
    assert added(body(text)) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "float d2 = x[0] * x[0] + 1e-3f;\nfloat r = sqrtf(d2);\ny[0] = c / (d2 * r);",
            ["const float inverse_root = rsqrtf(d2);", f"y[0] = c * {CUBE};"],
        ),
        (
            "const auto r = std::sqrt(x[0]);  // distance\nconst float p = r * r * r;\ny[0] = c / p + c / r;",
            [
                "const float inverse_root = rsqrtf(x[0]);  // distance",
                f"y[0] = c * {CUBE} + c * inverse_root;",
            ],
        ),
        (
            "float d2 = x[0] * x[0];\nd2 += x[1] * x[1];\nfloat r = sqrtf(d2);\n"
            "y[0] = 1.0f / (r * d2);\ny[1] = c / (r * r) + r;",
            [
                "const float inverse_root = rsqrtf(d2);",
                f"y[0] = {CUBE};",
                "y[1] = c * inverse_root * inverse_root + r;",
            ],
        ),
        (
            "float a = fmaxf(c, 1e-9f), r = sqrtf(a), p = a * r;\ny[0] = c / p;",
            ["const float inverse_root = rsqrtf(a);", f"y[0] = c * {CUBE};"],
        ),
        (
            "float r = c;\nr = sqrtf(r);\ny[0] = c / (r * r * r);",
            ["const float inverse_root = rsqrtf(r);", f"y[0] = c * {CUBE};"],
        ),
        (
            "float r = sqrtf(x[0] + 1);\nfor (int j = 0; j < n; ++j) y[j] /= r;",
            [
                "const float inverse_root = rsqrtf(x[0] + 1);",
                "for (int j = 0; j < n; ++j) y[j] *= inverse_root;",
            ],
        ),
        (
            "float a = c * c;\ny[0] = n / (c * c * sqrtf(a)) + c / (sqrtf(c * c) * a);",
            [
                "const float inverse_root = rsqrtf(a);",
                f"y[0] = n * {CUBE} + c * {CUBE};",
            ],
        ),
        (
            "float r = sqrtf(c);\nfloat q = sqrtf(r*2);\ny[0] = c / q + c / r;",
            [
                "const float inverse_root_2 = rsqrtf(c);",
                "const float inverse_root = rsqrtf(r*2);",
                "y[0] = c * inverse_root + c * inverse_root_2;",
            ],
        ),
        (
            "float r = sqrtf(c), q = 1 / r;\ny[0] = q;",
            [ROOT.replace("x[0]", "c"), "float r = sqrtf(c), q = inverse_root;"],
        ),
        (
            "switch (n) {\ncase 1: y[0] = c / (c * c * sqrtf(c)); break;\ncase 2: { float r = sqrtf(c); y[0] = c / r; }\n}",
            [
                f"case 1: {{ {ROOT.replace('x[0]', 'c')} y[0] = c * {FIFTH}; }} break;",
                "case 2: { const float inverse_root_2 = rsqrtf(c); y[0] = c * inverse_root_2; }",
            ],
        ),
        (
            "float4 b = make_float4(c, c, c, c);\nb.x = fabsf(c);\ny[0] = c / (b.x * b.x * sqrtf(b.x));",
            ["const float inverse_root = rsqrtf(b.x);", f"y[0] = c * {FIFTH};"],
        ),
    ],
)
def test_through_variables(text: str, lines: list[str]) -> None:
    assert added(body(text)) == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[0] = c / x[0];", "nothing is divided by a square root"),
        ("y[0] = 1.0 / sqrtf(x[0]);", "nothing is divided by a square root"),
        ("y[0] = c / sqrtf(d[0]);", "nothing is divided by a square root"),
        ("y[0] = c / (z[0] * sqrtf(x[0]));", "other factors"),
        ("y[0] = c / (sqrtf(z[0]) * sqrtf(x[0]));", "other factors"),
        ("y[0] = n / (0.5f * sqrtf(x[0]));", "other factors"),
        ("y[0] = c / (x[0] * sqrtf(x[0]) * sqrtf(x[0]));", "negative zero"),
        ("int i = 0;\ny[0] = c / (sqrtf(x[i++]));", "side effects"),
        ("while (c / (c * sqrtf(c)) > 1) c = c + 1;", "statement of its own"),
        ("y[0] = n ? c / (x[n] * x[n] * sqrtf(x[n])) : 0;", "statement of its own"),
        ("float r = sqrtf(c);\nc += 1;\ny[0] = n / (c * r);", "other factors"),
        ("float r = sqrtf(c);\nif (n) r = 2;\ny[0] = n / r;", "nothing is divided by a square root"),
        ("float r = sqrtf(c), *p = &r;\n*p = 2;\ny[0] = n / r;", "nothing is divided by a square root"),
        ("float r = 1;\nfor (int j = 0; j < n; ++j) { y[j] = c / r; r = sqrtf(c); }", "nothing is divided"),
        ("float r = sqrtf(x[0]);\ny[0] = 2;\ny[1] = c / (r * x[0]);", "other factors"),
        ("__shared__ float r;\nr = sqrtf(c);\ny[0] = c / r;", "nothing is divided by a square root"),
        ("volatile float r = sqrtf(c);\ny[0] = c / r;", "nothing is divided by a square root"),
        ("static float r = sqrtf(2.0f);\ny[0] = c / r;", "nothing is divided by a square root"),
        ("float a = c * c, r = sqrtf(a), q = 1 / r;\ny[0] = q;", "statement of its own"),
        ("y[0] = c / (c * c * c * c * c * sqrtf(c));", "higher power"),
    ],
)
def test_left_alone(text: str, reason: str) -> None:
    assert reason in refusals(SKILL, body(text))[0]


def test_a_root_of_ones_own_is_left_alone() -> None:
    own = "__device__ float rsqrtf(float v) { return 1 / v; }\n"
    assert refusals(SKILL, own + body("y[0] = c / sqrtf(c);")) == ["a square root is defined in the source"]
    locked = body("// kernelskill: off\ny[0] = c / sqrtf(c);\n// kernelskill: on")
    assert refusals(SKILL, locked)


def test_device_functions_and_macros() -> None:
    function = (
        "#define EPS 1e-3f\n#define inverse_root 1\n"
        "__device__ float pull(float3 a, float m) {\n"
        "    const float square = a.x * a.x + a.y * a.y + EPS;\n"
        "    const float root = sqrtf(square), cube = root * square;\n"
        "    return m / cube;\n}\n"
    )
    assert added(function + body("y[0] = pull(make_float3(c, c, c), 2.0f);")) == [
        "const float inverse_root_2 = rsqrtf(square);",
        "return m * inverse_root_2 * inverse_root_2 * inverse_root_2;",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float r = sqrtf(c);  // root", "float r = sqrtf(c);  // root\n{root}"),
        ("float r = sqrtf(c); float p = r;", "float r = sqrtf(c);\n{root} "),
        ("float r = sqrtf(c); y[1] = r;", "float r = sqrtf(c); \n{root}\ny[1] = r;"),
    ],
)
def test_a_pragma_stays_with_its_loop(before: str, after: str) -> None:
    divisor = "p" if " p " in before else "r"
    loop = "\n// all\n#pragma unroll 4\nfor (int i = 0; i < 4; ++i) y[i] += c / {} + r;"
    candidate, context = Candidate.of("k.cu", {"k.cu": body(before + loop.format(divisor))}), context_for("f")
    step = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)[0][0].step
    result = apply_step(candidate, step, LIBRARY, context).candidate.source
    expected = after.format(root=ROOT.replace("x[0]", "c")) + loop.format(divisor).replace(
        f"/ {divisor}", "* inverse_root"
    )
    assert result == body(expected)


def test_members_of_records() -> None:
    source = "typedef struct { float m, w; } B;\n" + body(
        "B b;\nb.m = fabsf(c);\nfloat r = sqrtf(x[0]);\nconst B* p = &b;\n"
        "y[0] = p[n].w / (b.m * sqrtf(b.m)) + p->m / (r * r * r);"
    )
    assert refusals(SKILL, source.replace("float m, w", "float m[1], w"))
    assert added(source) == [
        "const float inverse_root_2 = rsqrtf(x[0]);",
        WHY,
        "const float inverse_root = rsqrtf(b.m + 0.0f);",
        f"y[0] = p[n].w * {CUBE} + p->m * {CUBE.replace('root', 'root_2')};",
    ]


def test_powers_kept_in_a_variable_come_down_to_inverse_roots() -> None:
    text = "float r = x[0] * x[0] + 1e-3f;\nfloat p = pow(r, 1.5f);\ny[0] = c / p;"
    candidate, context = Candidate.of("k.cu", {"k.cu": body(text)}), context_for("f")
    for name in ("compute/small_powers", SKILL):
        step = find_steps(candidate, LIBRARY.get(name), LIBRARY, context)[0][0].step
        candidate = apply_step(candidate, step, LIBRARY, context).candidate
    assert f"const float inverse_root = rsqrtf(r);\ny[0] = c * {CUBE};" in candidate.source
