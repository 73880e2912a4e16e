"""Fusing launches: what it refuses, which stores and definitions stay, and what it says of pointers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelskill.algorithm.lifting import lift_kernel
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise, Role
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.source.unit import SourceUnit
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for

SKILL = "memory/fuse_launches"
POINT = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
FIRST = "if (i < n) out[i] = a[i] + 1.0f;"
SECOND = "if (i < n) out[i] = in[i] * 2.0f;"
LAUNCHES = "one<<<g, 64>>>(x, t, n); two<<<g, 64>>>(t, y, n);"


def source(first: str = FIRST, second: str = SECOND, launches: str = LAUNCHES, head: str = "") -> str:
    return (
        f"{head}\n__global__ void one(const float* a, float* out, int n) {{ {POINT} {first} }}\n"
        f"__global__ void two(const float* in, float* out, int n) {{ {POINT} {second} }}\n"
        'extern "C" void f(const float* x, float* t, float* y, int n, cudaStream_t s) {\n'
        f"    int g = (n + 63) / 64;\n    {launches}\n}}\n"
    )


def refused(text: str, *promises: Promise) -> str:
    candidate = Candidate.of("k.cu", {"k.cu": text})
    found, declined = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context_for("f", *promises))
    assert not found, [entry.step.label for entry in found]
    return next(refusal.reason for refusal in declined if refusal.kernel == "one")


def fused(text: str, *promises: Promise, scratch: str = "") -> str:
    candidate = Candidate.of("k.cu", {"k.cu": text})
    context = context_for("f", *promises)
    assert context.task is not None
    roles = {scratch: Role.SCRATCH} if scratch else {}
    context = replace(context, task=context.task.model_copy(update={"roles": roles}))
    found, declined = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context)
    assert found, [refusal.reason for refusal in declined]
    return apply_step(candidate, found[0].step, LIBRARY, context).candidate.source


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"second": "if (i + 1 < n) out[i] = in[i + 1];"}, "run over the same points"),
        ({"second": "if (i < n) out[i] = in[n - 1 - i];"}, "reads other elements of in"),
        ({"second": "if (i < n) out[i] = in[i] + in[0];"}, "reads other elements of in"),
        (
            {"second": "if (i < n) { float s = 0; for (int j = 0; j < n; ++j) s += in[j]; out[i] = s; }"},
            "other",
        ),
        ({"first": "if (i < n && a[i] > 0) out[i] = a[i];"}, "under a condition of its own"),
        ({"first": "if (i < n) atomicAdd(&out[i], a[i]);"}, "atomically"),
        ({"first": "if (i < n) atomicAdd(&out[i / 2], a[i]);"}, "atomically"),
        ({"first": "if (i < n) out[2 * i] = a[i];"}, "reads other elements"),
        ({"second": "if (i < n) out[i] = 2.0f;"}, "reads nothing"),
        ({"launches": "one<<<g, 64>>>(x, t, n); g = 1; two<<<g, 64>>>(t, y, n);"}, "no launch follows"),
        (
            {"launches": "one<<<g, 64>>>(x, t, n); cudaMemset(t, 0, 4); two<<<g, 64>>>(t, y, n);"},
            "no launch follows",
        ),
        ({"launches": "one<<<g, 64, 0, s>>>(x, t, n); two<<<g, 64>>>(t, y, n);"}, "no launch follows"),
        ({"launches": "one<<<g, 64>>>(x, t, n); if (n) two<<<g, 64>>>(t, y, n);"}, "no launch follows"),
        ({"launches": "if (n) one<<<g, 64>>>(x, t, n); two<<<g, 64>>>(t, y, n);"}, "no launch follows"),
        ({"launches": "one<<<g, 64>>>(x, t, n); two<<<g, 64>>>(t, y, n - 1);"}, "the same points"),
        ({"launches": "one<<<g, 64>>>(x, t, n++); two<<<g, 64>>>(t, y, n);"}, "side effects"),
        ({"launches": "one<<<g, 64>>>(x, t, size()); two<<<g, 64>>>(t, y, n);"}, "calls a function"),
        ({"launches": "one<<<g, 64>>>(x, t, n); two<<<g, 64>>>(t + 1, y, n);"}, "reads nothing"),
        ({"first": "if (i < n) out[i] = a[n - 1 - i];"}, "a and out may overlap"),
        ({"first": "if (i < n) { out[i] = a[i]; out[i + n] = a[i]; }"}, "in several places"),
    ],
)
def test_refusals(change: dict[str, str], reason: str) -> None:
    assert reason in refused(source(**change))


def test_what_the_first_reads_elsewhere_the_second_must_not_write() -> None:
    launches = "one<<<g, 64>>>(y, t, n); two<<<g, 64>>>(t, y, n);"
    text = source(first="if (i < n) out[i] = a[n - 1 - i];", launches=launches)
    assert "reads" in refused(text, Promise.NO_ALIAS)
    assert "one_two<<<" in fused(source(launches=launches))


def test_other_inputs_of_the_second_need_the_promise() -> None:
    second = "__global__ void two(const float* in, const float* b, float* out, int n) { int i = threadIdx.x; if (i < n) out[i] = in[i] + b[i]; }"
    first = "__global__ void one(const float* a, float* out, int n) { int i = threadIdx.x; if (i < n) out[i] = a[i]; }"
    launcher = 'extern "C" void f(const float* x, const float* b, float* t, float* y, int n) { one<<<1, 64>>>(x, t, n); two<<<1, 64>>>(t, b, y, n); }'
    text = f"{first}\n{second}\n{launcher}\n"
    assert "may overlap: it needs the promise no_alias" in refused(text)
    assert "one_two" in fused(text, Promise.NO_ALIAS)
    assert "one_two" in fused(text, scratch="t")
    assert "one_two" in fused(text.replace("float* t,", "float* __restrict__ t,"))
    assert "one_two" in fused(text.replace("const float* b", "const int* b"))


def test_scratch_is_not_written() -> None:
    text = fused(source(), scratch="t")
    assert "out[i] = (a[i] + 1.0f) * 2.0f;" in text
    assert "one_two<<<g, 64>>>(x, n, y);" in text
    assert "t[i]" not in text.replace("out[i]", "")
    used = source(launches=f"{LAUNCHES} cudaMemcpyAsync(y, t, 4, cudaMemcpyDefault);")
    assert "in[i] = in_value" in fused(used, scratch="t")


def test_a_temporary_of_the_launcher_is_not_written() -> None:
    launches = "float* q; cudaMalloc(&q, n * sizeof(float)); one<<<g, 64>>>(x, q, n); two<<<g, 64>>>(q, y, n); cudaFree(q);"
    assert "one_two<<<g, 64>>>(x, n, y);" in fused(source(launches=launches))
    kept = launches.replace("cudaFree(q)", "keep(q)")
    assert "in[i] = in_value" in fused(source(launches=kept))


def test_kernels_launched_elsewhere_keep_their_definition() -> None:
    text = fused(source(launches=f"{LAUNCHES} one<<<g, 64>>>(y, t, n);"))
    assert "void one(" in text
    assert "void two(" not in text


def test_products_keep_their_rounding() -> None:
    text = fused(source("if (i < n) out[i] = a[i] * 3.0f;", "if (i < n) out[i] = in[i] + 1.0f;"), scratch="t")
    assert "out[i] = __fmul_rn(a[i], 3.0f) + 1.0f;" in text


@pytest.mark.parametrize(
    ("kind", "first", "product"),
    [
        ("float", "a[i] * a[i]", "__fmul_rn(t_2, t_2)"),
        ("double", "-(a[i] * 2.5)", "-__dmul_rn(a_value, 2.5)"),
        ("__half", "__hmul(a[i], a[i])", "__hmul_rn(t_2, t_2)"),
    ],
)
def test_fused_kernels_are_read_again(kind: str, first: str, product: str) -> None:
    text = source(f"if (i < n) out[i] = {first};", "if (i < n) out[i] = in[i] + in[i];").replace(
        "float", kind
    )
    result = fused(text)
    assert product in result
    unit = SourceUnit.parse(result)
    assert [store.buffer for store in lift_kernel(unit, unit.kernels[0]).algorithm.stores] == ["in", "out"]


def test_names_end_alike_once() -> None:
    text = source().replace("one", "one_kernel").replace("two", "two_kernel")
    candidate = Candidate.of("k.cu", {"k.cu": text})
    (step, *_), _ = find_steps(candidate, LIBRARY.get(SKILL), LIBRARY, context_for("f"))
    result = apply_step(candidate, step.step, LIBRARY, context_for("f")).candidate.source
    assert "void one_two_kernel(" in result


def test_restrict_says_no_more_than_before() -> None:
    text = source().replace(
        "const float* a, float* out", "const float* __restrict__ a, float* __restrict__ out"
    )
    result = fused(text)
    assert "__restrict__" not in result.partition("extern")[0]
    assert "const float* __restrict__ a" in fused(text, Promise.NO_ALIAS)


def test_narrow_temporaries_round_as_stored() -> None:
    text = source().replace(
        "float* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a",
        "unsigned char* out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a",
    )
    text = text.replace("const float* in", "const unsigned char* in").replace("float* t", "unsigned char* t")
    assert (
        "(unsigned char)" in fused(text, scratch="t")
        or "unsigned char(" in fused(text, scratch="t")
        or "static_cast<unsigned char>" in fused(text, scratch="t")
    )
