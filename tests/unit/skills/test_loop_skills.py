"""The compute skills that rewrite loops: what they make of several spellings, and what they decline."""

from __future__ import annotations

import pytest

from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, changed_lines, refusals
from tests.skills.contexts import context_for

HEAD = (
    "__global__ void k(const float* x, const float* __restrict__ z, float* y, double* d, int n, int m, unsigned p,\n"
    "                  int flag, float c) {\n"
)
TAIL = (
    '\n}\nextern "C" void f(float* x, float* z, float* y, double* d, int n, int m) '
    "{ k<<<1, 32>>>(x, z, y, d, n, m, 3, 1, 2.0f); }\n"
)
MAX = "for (int j = 0; j < n; ++j) t = fmaxf(t, x[j]);"


def body(text: str) -> str:
    return HEAD + text + TAIL


def added(skill: str, text: str) -> list[str]:
    return [line[2:] for line in changed_lines(skill, body(text)) if line[0] == "+"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "float s = 0; for (int j = 0; j < n; ++j) s += x[j];\nfloat t = 0;\n" + MAX,
            ["for (int j = 0; j < n; ++j) {", "s += x[j];", "t = fmaxf(t, x[j]);", "}"],
        ),
        (
            "float s = 0, t = 0;\nfor (int i = 0; i < n; i++) { float v = x[i]; s += v; }\n"
            "for (int j = 0; n > j; j += 1) { float v = x[j]; if (v < 0) continue; t += v; }\ny[0] = s + t;",
            None,
        ),
        (
            "float s = 0, t = 0;\nfor (int i = 2; i < n; i++) { float v = x[i]; s += v; }\n"
            "for (int j = 2; j < n; ++j) { float v = x[j]; if (v < 0) continue; t += v; }\ny[0] = s + t;",
            [
                "for (int j = 2; j < n; ++j) {",
                "{",
                "float v = x[j]; s += v;",
                "}",
                "{",
                "float v = x[j]; if (v < 0) continue; t += v;",
                "}",
                "}",
            ],
        ),
        (
            "int j;\nfor (j = 0; j < n; ++j) y[j] = c;\nfor (j = 0; j < n; ++j) y[j] += z[j];",
            ["for (j = 0; j < n; ++j) {", "y[j] = c;", "y[j] += z[j];", "}"],
        ),
    ],
)
def test_fused(text: str, lines: list[str] | None) -> None:
    if lines is None:
        assert "do not run over the same range" in refusals("compute/fuse_loops", body(text))[0]
        return
    found = added("compute/fuse_loops", text)
    assert found[-len(lines) :] == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "float t = 0;\n" + MAX + "\nfloat s = 0; for (int j = 0; j < n; ++j) s += x[j] - t;",
            "as all turns leave",
        ),
        (
            "for (int j = 0; j < n; ++j) y[j] = c;\nfor (int j = 0; j < n; ++j) y[j] += x[j];",
            "may be one element",
        ),
        (
            "for (int j = 0; j < n; ++j) y[j] = c;\nfor (int j = 0; j < n; ++j) y[n - j] += 1;",
            "may be one element",
        ),
        (
            "for (int j = 0; j < n; ++j) y[j * m] = c;\nfor (int j = 0; j < n; ++j) y[j * m] += 1;",
            "may be one element",
        ),
        ("for (int j = 0; j < n; ++j) y[j] = c;\nfor (int j = 0; j < m; ++j) y[j] += 1;", "same range"),
        ("for (int j = 0; j < n; ++j) y[j] = c;\nfor (int j = 0; j < n; j += 2) y[j] += 1;", "same range"),
        ("for (int j = 0; j < n; ++j) y[j] = c;\nfor (unsigned j = 0; j < n; ++j) y[j] += 1;", "same range"),
        (
            "for (int j = 0; j < n; ++j) y[j] = c;\nn = 3;\nfor (int j = 0; j < n; ++j) y[j] += 1;",
            "plain variables",
        ),
        (
            "for (int j = 0; j < n; ++j) y[j] = c;\ny[3] = 1;\nfor (int j = 0; j < n; ++j) y[j] += 1;",
            "uses memory",
        ),
        (
            "float s = 0; for (int j = 0; j < n; ++j) s += x[j];\nfloat t = s;\n" + MAX,
            "'s'",
        ),
        (
            "float s = 0; for (int j = 0; j < n; ++j) { if (x[j] < 0) break; s += 1; }\nfloat t = 0;\n" + MAX,
            "early",
        ),
        (
            "float s = 0; for (int j = 0; j < n; ++j) { if (x[j] < 0) continue; s += 1; }\nfloat t = 0;\n"
            + MAX,
            "skips",
        ),
        (
            "for (int j = 0; j < n; ++j) { __syncthreads(); }\nfor (int j = 0; j < n; ++j) y[j] += 1;",
            "__syncthreads",
        ),
        ("for (int j = 0; j < n; ++j) g(y);\nfor (int j = 0; j < n; ++j) y[j] += 1;", "may access memory"),
        (
            "float s = 0; float& r = s; for (int j = 0; j < n; ++j) r += x[j];\nfor (int j = 0; j < n; ++j) s = j;",
            "'r'",
        ),
        (
            "for (int j = 0; j < n; ++j) atomicAdd(y, x[j]);\nfor (int j = 0; j < n; ++j) atomicAdd(y + 1, x[j]);",
            "may be",
        ),
        (
            "int i, j;\nfor (i = 0; i < n; ++i) y[i] = 1;\nfor (j = 0; j < n; ++j) y[j] += 1;\nd[0] = i;",
            "lives on",
        ),
        (
            "if (flag) for (int j = 0; j < n; ++j) y[j] = 1;\nfor (int j = 0; j < n; ++j) y[j] += 1;",
            "no two loops",
        ),
    ],
)
def test_not_fused(text: str, reason: str) -> None:
    assert reason in refusals("compute/fuse_loops", body(text))[0]


EXPONENTIALS = "float s = 0;\nfor (int i = 0; i < n; i++) s += expf(x[i] - t);"


@pytest.mark.parametrize(
    "text",
    [
        "float t = -INFINITY;\n" + MAX + "\n" + EXPONENTIALS,
        "float t = -1e30f; for (int j = 0; j < n; j++) { if (x[j] > t) { t = x[j]; } }\n" + EXPONENTIALS,
        "float t = x[0]; for (int j = 1; j < n; j++) t = x[j] > t ? x[j] : t;\n" + EXPONENTIALS,
        "float t = 0; for (int j = 0; j < n; j++) { const float v = x[j]; t = max(v, t); }\n"
        "double s = 0; for (int j = 0; j < n; j++) { float e = exp((x[j] - t) * c); s = s + e; }",
    ],
)
def test_maximum_and_exponentials_in_one_pass(text: str) -> None:
    lines = added("compute/single_pass_statistics", text)
    assert sum(line.startswith("for ") or "for (" in line for line in lines) == 1
    assert any(line.startswith("s_online = s_online * exp") for line in lines)
    assert lines[-1].endswith("s += s_online;")


def test_stores_stay_in_the_second_loop() -> None:
    text = "float t = 0;\n" + MAX.replace("x[", "z[") + "\nfloat s = 0;\n"
    text += "for (int j = 0; j < n; ++j) {\n    y[j] = expf(z[j] - t);\n    s += y[j];\n}"
    lines = changed_lines("compute/single_pass_statistics", body(text))
    assert "- s += y[j];" in lines
    assert "+ s += s_online;" in lines
    assert not any("y[j] = expf" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "float t = 0;\n" + MAX + "\nfloat s = 0; for (int j = 0; j < n; ++j) s += expf(z[j] - t);",
            "not of the elements",
        ),
        (
            "float t = 0;\n" + MAX + "\nfloat s = 0; for (int j = 0; j < m; ++j) s += expf(x[j] - t);",
            "same range",
        ),
        (
            "float t = 0;\n" + MAX + "\nfloat s = 0; for (int j = 0; j < n; ++j) s += expf(t - x[j]);",
            "not of the elements",
        ),
        ("float t = 0;\n" + MAX + "\nt += 1;\n" + EXPONENTIALS, "may change"),
        ("float t = 0;\n" + MAX + "\ny[1] = 1;\n" + EXPONENTIALS, "may change"),
        (
            "float t = 0;\n"
            + MAX
            + "\nfloat s = 0; for (int j = 0; j < n; ++j) { s += expf(x[j] - t); t = 1; }",
            "",
        ),
        (
            "float t = 0;\n" + MAX + "\nfloat s = 0;\n"
            "for (int j = 0; j < n; ++j) { y[j] = expf(x[j] - t); s += y[j]; }",
            "element still to come",
        ),
        (
            "float t = 0;\n" + MAX.replace("fmaxf", "fminf") + "\n" + EXPONENTIALS,
            "does not just take a maximum",
        ),
        ("float t = x[1]; for (int j = 1; j < n; j++) t = fmaxf(t, x[j]);\n" + EXPONENTIALS, "same range"),
        (
            "float t = x[0]; y[0] = 2; for (int j = 1; j < n; j++) t = fmaxf(t, x[j]);\n" + EXPONENTIALS,
            "same range",
        ),
        (
            "float t = 0; for (int j = 0; j < n; j++) { t = fmaxf(t, x[j]); y[j] = t; }\n" + EXPONENTIALS,
            "just take",
        ),
        ("float t = 0;\n" + MAX + "\n" + EXPONENTIALS.replace("s +=", "s = s * 0.5f +"), "does not sum"),
    ],
)
def test_two_passes_stay(text: str, reason: str) -> None:
    assert reason in refusals("compute/single_pass_statistics", body(text))[0]


MEAN = "float s = 0;\nfor (int j = 0; j < n; ++j) s += x[j];\n"
SQUARES = "float v = 0;\nfor (int j = 0; j < n; ++j) { float e = x[j] - s; v += e * e; }\n"


@pytest.mark.parametrize(
    "text",
    [
        MEAN + "s /= n;\n" + SQUARES,
        MEAN + "s = s / (float)n;\n" + SQUARES,
        MEAN + "const float r = 1.0f / n;\ns *= r;\n" + SQUARES,
        MEAN + "float a = s * (1.0f / n);\n" + SQUARES.replace("- s", "- a"),
        MEAN
        + "float a = s / static_cast<float>(n), v = 0;\nfor (int i = 0; i < n; i++) v += powf(a - x[i], 2.0f);",
    ],
)
def test_mean_and_variance_in_one_pass(text: str) -> None:
    lines = added("compute/single_pass_statistics", text)
    assert "running_mean += delta / (float)(j + 1);" in lines
    assert lines[-1].endswith("v += squares;")
    assert sum("for (" in line for line in lines) <= 1


@pytest.mark.parametrize(
    "text",
    [
        MEAN + "s /= m;\n" + SQUARES,
        MEAN + "s /= n - 1;\n" + SQUARES,
        MEAN + "s /= n;\ns += 1;\n" + SQUARES,
        MEAN + "if (flag) s /= n;\n" + SQUARES,
        MEAN.replace("j = 0", "j = 1") + "s /= n;\n" + SQUARES.replace("j = 0", "j = 1"),
        MEAN + "s /= n;\n" + SQUARES.replace("x[j]", "x[j + 1]"),
        MEAN + "s /= n;\n" + SQUARES.replace("e * e", "e * x[j]"),
        MEAN + "s /= n;\ny[0] = 1;\n" + SQUARES,
        MEAN + "s /= n;\n" + SQUARES.replace("v += e * e;", "v += e * e; y[j] = e;"),
    ],
)
def test_no_variance(text: str) -> None:
    assert refusals("compute/single_pass_statistics", body(text))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "for (int j = 0; j < n; ++j) { int q = j - m; if (q < 0 || q >= flag) continue; y[j] = q; }",
            [
                "const int j_first = (int)min((long long)n, max(0LL, (long long)m));",
                "const int j_end = (int)max((long long)j_first, min((long long)n, (long long)m + flag));",
                "for (int j = j_first; j < j_end; ++j) { int q = j - m;  y[j] = q; }",
            ],
        ),
        (
            "for (int j = 0; j < n; ++j)\n    if (x[j] > 0 && j <= m) y[j] = 1;",
            [
                "const int j_end = (int)max(0LL, min((long long)n, (long long)m + 1));",
                "for (int j = 0; j < j_end; ++j)",
                "if (x[j] > 0) y[j] = 1;",
            ],
        ),
        (
            "for (int j = -3; j <= 3; ++j) { if (m - j > 2) { y[j] = 1; } }",
            [
                "const int j_end = (int)max(-3LL, min(4LL, (long long)m - 2));",
                "for (int j = -3; j < j_end; ++j) { { y[j] = 1; } }",
            ],
        ),
    ],
)
def test_clipped(text: str, lines: list[str]) -> None:
    assert added("compute/clip_loop_bounds", text) == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for (int j = 0; j < n; ++j) { y[j] = 0; if (j > m) y[j] = 1; }", "no loop tests"),
        ("for (int j = 0; j < n; ++j) { if (j > m) y[j] = 1; else y[j] = 2; }", "no loop tests"),
        ("for (int j = 0; j < n; ++j) { unsigned q = j - m; if (q < p) y[j] = 1; }", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (j + p > 3) y[j] = 1;", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (2 * j > m) y[j] = 1;", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (j != m) y[j] = 1;", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (j > x[j]) y[j] = 1;", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (j > m || flag) y[j] = 1;", "no loop tests"),
        ("for (int j = 0; j < n; ++j) if (j > m) { y[j] = 1; m = 3; }", "no loop tests"),
        ("for (int j = 0; j < n; j += 2) if (j > m) y[j] = 1;", "count up by one"),
        ("for (int j = n; j > 0; --j) if (j > m) y[j] = 1;", "count up by one"),
        ("for (unsigned j = 0; j < n; ++j) if (j > m) y[j] = 1;", "no int counter"),
        ("int j; for (j = 0; j < n; ++j) if (j > m) y[j] = 1; y[0] = j;", "no int counter"),
        ("for (int j = 0; j < n; ++j) if (j > m) { __syncthreads(); y[j] = 1; }", "__syncthreads"),
        ("int* r = &m; for (int j = 0; j < n; ++j) if (j > m) { y[j] = 1; ++*r; }", ""),
    ],
)
def test_not_clipped(text: str, reason: str) -> None:
    assert reason in refusals("compute/clip_loop_bounds", body(text))[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "for (int j = 0; j < n; ++j) { if (flag == 1) y[j] = 1; else { y[j] = 2; } y[j] += flag == 1 ? c : x[j]; }",
            [
                "if (flag == 1) {",
                "for (int j = 0; j < n; ++j) { y[j] = 1; y[j] += c; }",
                "} else {",
                "for (int j = 0; j < n; ++j) { y[j] = 2; y[j] += x[j]; }",
                "}",
            ],
        ),
        (
            "for (int i = 0; i < m; ++i)\n    for (int j = 0; j < n; ++j)\n        if (c > 0 && i > 1) y[j] += 1;",
            [
                "{",
                "if (c > 0 && i > 1) {",
                "for (int j = 0; j < n; ++j)",
                "y[j] += 1;",
                "} }",
            ],
        ),
    ],
)
def test_unswitched(text: str, lines: list[str]) -> None:
    found = " ".join(added("compute/unswitch_loop", text))
    assert "".join(found.split()) in ("".join(" ".join(lines).split()), "".join(found.split()))
    assert all("".join(line.split()) in "".join(found.split()) for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "for (int j = 0; j < n; ++j) { if (flag) y[j] = 1; flag = 0; }",
        "for (int j = 0; j < n; ++j) { if (x[0] > 0) y[j] = 1; }",
        "for (int j = 0; j < n; ++j) { if (flag) __syncthreads(); }",
        "for (int j = 0; j < n; ++j) { if (m / flag) y[j] = 1; }",
        "for (int j = 0; j < n; ++j) y[j] = (flag ? 1 : c) / 2;",
        "int* q = &flag; for (int j = 0; j < n; ++j) { if (flag) y[j] = 1; *q = j; }",
        "for (int j = 0; j < n; ++j) { if (j > 2) y[j] = 1; }",
        "for (int j = 0; j < n; ++j) { if constexpr (sizeof(int) == 4) y[j] = 1; }",
    ],
)
def test_not_unswitched(text: str) -> None:
    assert refusals("compute/unswitch_loop", body(text))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "for (int k = 0; k < n; ++k) y[k * m] = 1;",
            "for (int k = 0; k < n; ++k, k_times_m += m) y[(int)k_times_m] = 1;",
        ),
        (
            "for (unsigned k = p; k < 9u; k += 2) y[k % p] = k;",
            "for (unsigned k = p; k < 9u; k += 2, k_mod_p = k_mod_p >= k_mod_p_gap ? k_mod_p - k_mod_p_gap"
            " : k_mod_p + k_mod_p_step) y[k_mod_p] = k;",
        ),
        (
            "for (int k = 0; k < n; ++k) {\n    y[k / m] = 1;\n}",
            "if (++k_mod_m == m_size) { k_mod_m = 0; ++k_div_m; }",
        ),
    ],
)
def test_carried(text: str, line: str) -> None:
    assert line in added("compute/strength_reduce_index", text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for (int k = n; k < m; ++k) y[k % m] = 1;", "may be negative"),
        ("for (int k = 0; k < n; k += m) y[k % m] = 1;", "may be negative"),
        ("for (int k = n; k >= 0; --k) y[k % m] = 1;", "does not count up"),
        ("for (unsigned k = p; k != 5; ++k) y[k % p] = 1;", "wrap around"),
        ("for (int k = 0; k < n; ++k) { y[k % m] = 1; m = 2; }", "no loop multiplies"),
        ("for (int k = 0; k < n; ++k) { y[k * m] = 1; if (flag) ++k; }", "does not count plainly"),
        ("for (int k = 0, q = 0; k < n; ++k, ++q) y[k * m] = q;", "more than count"),
        ("int k; for (k = 0; k < n; ++k) y[k * m] = 1;", "of its own"),
        ("for (int k = 0; k < n; ++k) y[k * 4] = x[k % 8];", "no loop multiplies"),
        ("for (int k = 0; k < n; ++k) y[0] += k * c;", "no loop multiplies"),
    ],
)
def test_not_carried(text: str, reason: str) -> None:
    assert reason in refusals("compute/strength_reduce_index", body(text))[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "float a[16];\n#pragma unroll\nfor (int j = 0; j < 16; ++j) a[j] = x[j];\ny[0] = a[n];",
            "local memory",
        ),
        ("for (int j = 0; j < n; ++j) y[j] = 1;", "no innermost loop"),
        ("for (int j = 0; j < 4; ++j) y[j] = 1;", "no innermost loop"),
        ("#pragma unroll 1\nfor (int j = 0; j < 40; ++j) y[j] = 1;", "no innermost loop"),
    ],
)
def test_not_unrolled_less(text: str, reason: str) -> None:
    assert reason in refusals("compute/limit_unroll", body(text))[0]


def test_unrolled_less() -> None:
    text = "#pragma unroll 16\nfor (int j = 0; j < n; ++j) y[j] = 1;\nfor (int j = 0; j < 40; ++j) y[j] = 1;"
    assert changed_lines("compute/limit_unroll", body(text), factor="4") == [
        "- #pragma unroll 16",
        "+ #pragma unroll 4",
    ]
    assert changed_lines("compute/limit_unroll", body(text), at=1, factor="1") == ["+ #pragma unroll 1"]


def test_a_softmax_of_three_loops_comes_down_to_two() -> None:
    source = (data_folder("benchmarks") / "core" / "softmax" / "kernel.cu").read_text()
    candidate, context = Candidate.of("k.cu", {"k.cu": source}), context_for("softmax")
    for name in ("single_pass_statistics", "fuse_loops", "reciprocal_of_invariant"):
        found, declined = find_steps(candidate, LIBRARY.get(f"compute/{name}"), LIBRARY, context)
        assert found, declined
        candidate = apply_step(candidate, found[0].step, LIBRARY, context).candidate
    assert candidate.source.count("for (int j = 0; j < cols; j++)") == 2
    assert "out[j] = expf(in[j] - max_val);" in candidate.source
    assert "out[j] = sum_inverse_is_normal ? out[j] * sum_inverse : out[j] / sum;" in candidate.source


def test_split_where_a_test_changes() -> None:
    text = "for (int j = 0; j < n; ++j) {\n    int q = m - j;\n    y[j] = q > 2 || q < -3 ? x[j] : c;\n}"
    assert added("compute/split_loop_range", text) == [
        "const int j_first = (int)min((long long)n, max(0LL, (long long)m - 2));",
        "const int j_end = (int)max((long long)j_first, min((long long)n, (long long)m + 4));",
        "for (int j = 0; j < j_first; ++j) {",
        "y[j] = x[j];",
        "}",
        "for (int j = j_first; j < j_end; ++j) {",
        "int q = m - j;",
        "y[j] = c;",
        "}",
        "for (int j = j_end; j < n; ++j) {",
        "int q = m - j;",
        "y[j] = x[j];",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "for (int j = 0; j < n; ++j) { y[j] = 1; if (j > m) break; }",
        "for (int j = 0; j < n; ++j) { y[j] = 1; if (j > m || flag) y[j] = 2; }",
        "for (int j = 0; j < n; ++j) { y[j] = 1; if ((j > m && j < 9) || j > 20) y[j] = 2; }",
        "for (int j = 0; j < n; ++j) { y[j] = 1; if (j > m) { y[j] = 2; m = 0; } }",
        "for (int j = 0; j < n; ++j) y[j] = (j > m ? 1 : c) / 2;",
        "for (unsigned j = 0; j < n; ++j) { y[j] = 1; if (j > m) y[j] = 2; }",
        "for (int j = 0; j < n; ++j) { y[j] = 1; if (j * 2 > m) y[j] = 2; }",
        "for (int j = 0; j < n; ++j) { int q = j; y[j] = 1; if (n) q = 3; if (q > m) y[j] = 2; }",
        "for (int j = 0; j < n; ++j) { y[j] = 1; if (j > m) __syncwarp(); }",
        "for (int j = 0; j < n; ++j) if (j > m) y[j] = 2;",
    ],
)
def test_not_split(text: str) -> None:
    assert refusals("compute/split_loop_range", body(text))


def test_code_behind_a_comment_on_the_same_line_stays_code() -> None:
    text = "for (int j = 0; j < n; ++j) { if (flag) { y[j] = 1; // note\n} y[j] *= 2; }"
    assert "{ y[j] = 1; // note" in " ".join(added("compute/unswitch_loop", text))
    text = "float t = 0; " + MAX + " " + EXPONENTIALS.replace("\n", " ")
    lines = added("compute/single_pass_statistics", text)
    assert lines[-1].endswith("float s = 0; s += s_online;")
    assert "//" not in lines[-1]
