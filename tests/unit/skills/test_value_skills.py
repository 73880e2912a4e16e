"""The compute skills that rewrite values, branches and launches: what they make of them, what they decline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Allowance, Case
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.skills.transformation import SkillContext
from tests.skills.applying import LIBRARY, changed_lines, refusals
from tests.skills.contexts import context_for

HEAD = "__global__ void k(const float* x, float* y, double* d, int n, float c, float* z) {\n"
TAIL = '\n}\nextern "C" void f(float* x, float* y, double* d, int n) { k<<<1, 32>>>(x, y, d, n, 2.0f, y); }\n'


def body(text: str) -> str:
    return HEAD + text + TAIL


def context(*allowed: Allowance, **arguments: int) -> SkillContext:
    """Return a context with allowances and one timed case."""
    task = context_for("f").task
    assert task is not None
    case = Case(index=0, arguments=dict(arguments) or {"n": 1}, timed=True)
    changed = task.model_copy(update={"allow": frozenset({Allowance.REORDER, *allowed}), "cases": (case,)})
    return replace(context_for("f"), task=changed)


def results(skill: str, source: str, given: SkillContext) -> Mapping[str, str]:
    """Return what each site of a skill makes of a source, by the end of its key."""
    candidate = Candidate.of("k.cu", {"k.cu": source})
    steps = [found.step for found in find_steps(candidate, LIBRARY.get(skill), LIBRARY, given)[0]]
    return {
        step.site.split("/", 1)[-1]: apply_step(candidate, step, LIBRARY, given).candidate.source
        for step in steps
    }


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("y[0] = expf(x[0]) + logf(x[1]);", "exponentials", "y[0] = __expf(x[0]) + __logf(x[1]);"),
        ("y[0] = std::exp(x[0] * 2);", "exponentials", "y[0] = __expf(x[0] * 2);"),
        ("y[0] = powf(expf(x[0]), c);", "exponentials", "y[0] = __powf(__expf(x[0]), c);"),
        ("y[0] = sin(c) + cosf(c);", "trigonometry", "y[0] = __sinf(c) + __cosf(c);"),
        (
            "y[0] = x[0] / (c + 1.0f) / x[1];",
            "division",
            "y[0] = __fdividef(__fdividef(x[0], c + 1.0f), x[1]);",
        ),
        ("y[0] /= n;", "division", "y[0] = __fdividef(y[0], n);"),
        ("y[0] = tanhf(x[0] / c);", "tanh", "y[0] = fast_tanh(x[0] / c);"),
        (
            "y[0] = 1.0f / (1.0f + expf(-x[0] / c));",
            "division",
            "y[0] = __fdividef(1.0f, 1.0f + expf(__fdividef(-x[0], c)));",
        ),
    ],
)
def test_fast_intrinsics(text: str, kind: str, line: str) -> None:
    found = results("compute/fast_intrinsics", body(text), context(Allowance.FAST_MATH))
    assert line in found[kind]


@pytest.mark.parametrize(
    "text",
    [
        "d[0] = exp(d[1]) / d[2];",
        "y[0] = exp(x[0] * 2.0);",
        "y[0] = n / 3;",
        "y[0] = 1.0f / 3.0f;",
        "y[0] = pow(x[0], 2);",
        "y[0] = x[0] / 2.0;",
        "y[(n++) % 4] /= d[0];",
    ],
)
def test_no_fast_intrinsics(text: str) -> None:
    candidate = Candidate.of("k.cu", {"k.cu": body(text)})
    given = context(Allowance.FAST_MATH)
    found, declined = find_steps(candidate, LIBRARY.get("compute/fast_intrinsics"), LIBRARY, given)
    assert not found, [entry.step.label for entry in found]
    assert "no float function" in declined[0].reason


def test_own_functions_are_not_replaced_and_device_functions_are_searched() -> None:
    own = "__device__ float expf(float v) { return v; }\n" + body("y[0] = expf(x[0]);")
    assert not results("compute/fast_intrinsics", own, context(Allowance.FAST_MATH))
    helper = "__device__ float act(float v) { return v * logf(v); }\n" + body("y[0] = act(x[0]);")
    found = results("compute/fast_intrinsics", helper, context(Allowance.FAST_MATH))
    assert "return v * __logf(v);" in found["exponentials"]


def test_fast_intrinsics_need_the_allowance() -> None:
    assert 'ALLOW lacks "fast_math"' in refusals("compute/fast_intrinsics", body("y[0] = expf(x[0]);"))[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "for (int j = 0; j < n; ++j) y[j] /= c;",
            [
                "const float c_inverse = 1.0f / c;",
                "const bool c_inverse_is_normal = fabsf(c) >= 1.17549435e-38f && fabsf(c) <= 8.50705917e+37f;",
                "for (int j = 0; j < n; ++j) y[j] = c_inverse_is_normal ? y[j] * c_inverse : y[j] / c;",
            ],
        ),
        (
            "for (int j = 0; j < n; ++j)\n    for (int i = 0; i < n; ++i) y[j] += (x[i] + 1) / n;",
            [
                "const float n_inverse = 1.0f / n;",
                "for (int i = 0; i < n; ++i) y[j] += (x[i] + 1) * n_inverse;",
            ],
        ),
        ("y[0] = x[0] / 3.0f;", ["y[0] = x[0] * (1.0f / 3.0f);"]),
    ],
)
def test_reciprocals(text: str, lines: list[str]) -> None:
    found = changed_lines("compute/reciprocal_of_invariant", body(text))
    assert [line[2:] for line in found if line[0] == "+"] == lines


@pytest.mark.parametrize(
    "text",
    [
        "y[0] = x[0] / c;",
        "for (int j = 0; j < n; ++j) { y[j] /= c; c += 1; }",
        "for (int j = 0; j < n; ++j) y[j] = x[j] / x[0];",
        "for (int j = 0; j < n; ++j) y[j] = j / n;",
        "for (int j = 0; j < n; ++j) y[j] = g(j) / c;",
        "y[0] = x[0] / 4.0f;",
        "y[0] = x[0] / 1e-44f;",
        "float* p = &c; for (int j = 0; j < n; ++j) { y[j] /= c; *p = j; }",
    ],
)
def test_no_reciprocals(text: str) -> None:
    assert refusals("compute/reciprocal_of_invariant", body(text))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("float t = 0; if (n > 3) t = c; y[0] = t;", ["float t = 0; t = n > 3 ? c : t; y[0] = t;"]),
        (
            "float t = 0; if (c > t) t += c * 2; else t = 1.0f;",
            ["float t = 0; t = c > t ? t + (c * 2) : 1.0f;"],
        ),
        ("unsigned char t = 0; if (n) t--;", ["unsigned char t = 0; t = n ? (unsigned char)(t - 1) : t;"]),
        (
            "float t = 0; int i = 0;\nif (x[n] > t) { t = x[n]; i = n; }",
            [
                "const bool is_chosen = x[n] > t;",
                "t = is_chosen ? x[n] : t;",
                "i = is_chosen ? n : i;",
            ],
        ),
        (
            "float t = 0; int i = 0; if (n) y[0] = 1; else if (c > 1) { t = c; i = n; }",
            [
                "float t = 0; int i = 0; if (n) y[0] = 1; else "
                "{ const bool is_chosen = c > 1; t = is_chosen ? c : t; i = is_chosen ? n : i; }"
            ],
        ),
    ],
)
def test_selects(text: str, lines: list[str]) -> None:
    found = changed_lines("compute/branch_to_select", body(text))
    assert [line[2:] for line in found if line[0] == "+"] == lines


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("if (n) y[0] = 1;", "more than set local"),
        ("float t = 0; if (n) t = x[1];", "does not always load"),
        ("float t = 0; if (n && x[1] > 0) t = x[1];", "does not always load"),
        ("float t = 0; if (n) t = expf(c);", "calls 'expf'"),
        ("float t = 0; if (n) t = c / 3;", "divides"),
        ("float t = 0; if (n++) t = c;", "more than plain values"),
        ("float t = 0; if (n) { float u = c; t = u; }", "more than set local"),
        ("float t = 0; if (n) return; y[0] = t;", "more than set local"),
        ("float t = 0; float& r = t; if (n) r = c;", "more than set local"),
        ("float t = 0; float* q = &t; if (n) t = c; *q = 1;", "more than set local"),
        ("float t[2]; if (n) t[0] = c;", "more than set local"),
        ("float t = 0; if (n) {}", "empty"),
        ("half t; if (n) t = c;", "not known as a number"),
        ("float t = 0; if (int q = n) t = q;", "more than plain values"),
        ("__shared__ float t; if (n) t = c;", "more than set local"),
        ("float t = 0; if (n) t = (y[0] = c);", "short plain value"),
        ("y[0] = 1;", "no branch"),
    ],
)
def test_no_selects(text: str, reason: str) -> None:
    assert reason in refusals("compute/branch_to_select", body(text))[0]


ROWS = """
template <typename T>
__global__ void rows(const T* x, float* y, int n, const int m, int flag) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < m; ++j) { if (flag) y[i] += x[i * m + j]; }
}
extern "C" void f(const float* x, float* y, int n, int m, int flag) {
    if (n > 0)
        rows<float><<<(n + 31) / 32, 32>>>(x, y, n, m, 1);
    rows<float><<<(n + 31) / 32, 32>>>(x, y, n, m + 1, flag);
}
"""


def test_fixed_sizes_are_dispatched_with_a_general_kernel() -> None:
    found = results("compute/specialise_constants", ROWS, context(n=100, m=64, flag=0))
    text = found["m"]
    assert "template <typename T, int FIXED_M>" in text
    assert "const int m = FIXED_M > 0 ? FIXED_M : given_m;" in text
    assert "{ if (m == 64) {" in text
    assert "rows<float, 64><<<(n + 31) / 32, 32>>>(x, y, n, m, 1);" in text
    assert text.count("rows<float, 0><<<") == 2
    assert "rows<float, 1><<<(n + 31) / 32, 32>>>(x, y, n, m, 1);" in found["flag"]
    assert "rows<float, 64, 1>" in found["m+flag"]
    assert set(found) == {"m+flag", "m", "flag"}
    again = results("compute/specialise_constants", text, context(n=100, m=64, flag=0))
    assert "m" not in again
    assert "given_m" not in again


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("{ if (flag)", "{ --m; if (flag)"), ""),
        (
            ("rows<float><<<(n + 31) / 32, 32>>>(x, y, n, m, 1)", "rows<<<1, 32>>>(x, y, n, m, 1)"),
            "template arguments",
        ),
        (('extern "C" void f', 'auto q = rows<float>;\nextern "C" void f'), "outside its definition"),
        (
            (
                "\ntemplate",
                "template <typename T> __global__ void rows(const T*, float*, int, const int, int);\ntemplate",
            ),
            "apart",
        ),
    ],
)
def test_not_fixed(change: tuple[str, str], reason: str) -> None:
    source = ROWS.replace(*change)
    assert source != ROWS
    candidate = Candidate.of("k.cu", {"k.cu": source})
    skill = LIBRARY.get("compute/specialise_constants")
    _, declined = find_steps(candidate, skill, LIBRARY, context(n=100, m=0 if "8" in change[1] else 64))
    found = results("compute/specialise_constants", source, context(n=100, m=64))
    if change[1].startswith("{ --m"):
        assert set(found) == {"flag"}
    else:
        assert declined
        assert reason in declined[0].reason


def test_fixed_sizes_need_a_plain_kernel_and_known_sizes() -> None:
    plain = body("for (int j = 0; j < n; ++j) y[j] = c;")
    assert "kernel with C linkage" in refusals("compute/specialise_constants", 'extern "C" ' + plain)[0]
    skill = LIBRARY.get("compute/specialise_constants")
    candidate = Candidate.of("k.cu", {"k.cu": plain})
    _, declined = find_steps(candidate, skill, LIBRARY, context(rows=3))
    assert declined[0].reason == "the timed cases do not give the values of n by the launcher's names"
    idle = refusals("compute/specialise_constants", body("y[n] = c;"))
    assert idle == ["no whole number that it is given decides a loop or a division"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "float s = sqrtf(c) + 1;\ny[0] = 1.0f - sqrtf((c));",
            [
                "const float sqrtf_value = sqrtf(c);",
                "float s = sqrtf_value + 1;",
                "y[0] = 1.0f - sqrtf_value;",
            ],
        ),
        (
            "float s = c / n;\nfor (int j = 0; j < 3; ++j) s += c / n;",
            ["const float ratio = c / n;", "float s = ratio;", "for (int j = 0; j < 3; ++j) s += ratio;"],
        ),
        (
            "d[0] = exp(d[1] * 2) * exp(2 * d[1]);",
            ["const double exp_value = exp(d[1] * 2);", "d[0] = exp_value * exp_value;"],
        ),
    ],
)
def test_repeated_values(text: str, lines: list[str]) -> None:
    found = changed_lines("compute/common_subexpressions", body(text))
    assert [line[2:] for line in found if line[0] == "+"] == lines


@pytest.mark.parametrize(
    "text",
    [
        "float s = sqrtf(c); c = 2; y[0] = sqrtf(c) + s;",
        "float s = sqrtf(x[0]); y[0] = 1; y[1] = sqrtf(x[0]) + s;",
        "if (n) y[0] = sqrtf(c); else y[1] = sqrtf(c);",
        "{ float c = 2; y[0] = sqrtf(c); } y[1] = sqrtf(c);",
        "float* p = &c; float s = sqrtf(c); *p = 1; y[0] = sqrtf(c) + s;",
        "float s = fabsf(c) + fabsf(c) + (c + 1) * (c + 1);",
        "float s = sqrtf(c); __syncthreads(); y[0] = sqrtf(c) + s;",
        "y[0] = n && sqrtf(c) > 1 && sqrtf(c) < 2;",
    ],
)
def test_no_repeated_values(text: str) -> None:
    assert refusals("compute/common_subexpressions", body(text))


HALVES = """
#include <cuda_fp16.h>
__global__ void halves(const __half* x, half* y, float g, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    WORK
}
extern "C" void f(const __half* x, half* y, int n) { halves<<<(n + 127) / 128, 128>>>(x, y, 2.0f, n); }
"""


def test_halves_are_packed() -> None:
    work = (
        "const half a = __float2half(g); half v = x[i] * a; v += __hmax(x[i], a); y[i] = __hfma(v, a, -x[i]);"
    )
    found = results("compute/packed_half", HALVES.replace("WORK", work), context())
    text = found["halves"]
    for line in (
        "if ((((size_t)x | (size_t)y) & 3) == 0 && 2 * pair + 1 < n) {",
        "const half a = __float2half(g);",
        "__half2 v = ((const __half2*)x)[pair] * __half2half2(a);",
        "v += __hmax2(((const __half2*)x)[pair], __half2half2(a));",
        "((__half2*)y)[pair] = __hfma2(v, __half2half2(a), -((const __half2*)x)[pair]);",
        "halves<<<(n + 255) / 256, 128>>>(x, y, 2.0f, n);",
    ):
        assert line in text


@pytest.mark.parametrize(
    "work",
    [
        "y[i] = __float2half(__half2float(x[i]) * g);",
        "y[i] = x[i + 1];",
        "y[i] = x[i] * g;",
        "if (__hgt(x[i], y[i])) y[i] = x[i];",
        "y[i] = __hgt(x[i], y[i]) ? x[i] : y[i];",
        "half v; v = x[i]; y[i] = v;",
        "half v[2]; v[0] = x[i]; y[i] = v[0];",
        "y[i] = own(x[i]);",
        "g += 1; y[i] = x[i];",
        "y[0] = x[i];",
        "float w = __half2float(x[i]); y[i] = __float2half(w);",
    ],
)
def test_halves_are_left_alone(work: str) -> None:
    assert refusals("compute/packed_half", HALVES.replace("WORK", work))
