"""Fused launches give the bits of the launches that they replace, in place and apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import apply_step, find_steps
from tests.algorithm import cpu
from tests.skills.applying import LIBRARY
from tests.skills.contexts import context_for

POINT = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
IJ = f"{POINT} int j = blockIdx.y * blockDim.y + threadIdx.y;"
FLAT = "<<<(n + 63) / 64, 64>>>"
HEAD = "#include <cuda_runtime.h>\n"
SIGNATURE = 'extern "C" void f(const float* x, const float* b, float* t, float* y, int n, int w)'


def elementwise(first: str, second: str, launches: str = "") -> str:
    launches = launches or f"first{FLAT}(x, t, n); second{FLAT}(t, y, n);"
    return (
        f"{HEAD}__global__ void first(const float* a, float* out, int n) {{ {POINT} {first} }}\n"
        f"__global__ void second(const float* in, float* out, int n) {{ {POINT} {second} }}\n"
        f"{SIGNATURE} {{ {launches} }}\n"
    )


RUNS = {
    "square_and_add": elementwise("if (i < n) out[i] = a[i] * a[i];", "if (i < n) out[i] = in[i] + 1.0f;"),
    "other_name": elementwise(
        "if (i >= n) return; float v = -(a[i] * 3.0f); out[i] = v;",
        "if (i < n) { float k = in[i]; out[i] = k > 0.0f ? k : 0.1f * k; }",
    ),
    "second_in_place": elementwise(
        "if (i < n) out[i] = a[i] + 0.5f;",
        "if (i < n) out[i] *= 2.0f;",
        f"first{FLAT}(x, y, n); second{FLAT}(y, n);",
    ).replace("const float* in, ", ""),
    "both_in_place": (
        f"{HEAD}__global__ void first(float* v, int n) {{ {POINT} if (i < n) v[i] = v[i] * 0.5f; }}\n"
        f"__global__ void second(float* v, float* o, int n) {{ {POINT} if (i < n) {{ o[i] = v[i] + 1.0f; v[i] = 0.0f; }} }}\n"
        f"{SIGNATURE} {{ first{FLAT}(t, n); second{FLAT}(t, y, n); }}\n"
    ),
    "rows_then_flat": (
        f"{HEAD}__global__ void first(const float* a, float* o, int h, int w) {{ {IJ} if (i < w && j < h) o[j * w + i] = a[j * w + i] - 2.0f; }}\n"
        f"__global__ void second(const float* q, float* o, int count) {{ {POINT} if (i < count) o[i] = q[i] * q[i]; }}\n"
        f"{SIGNATURE} {{ dim3 grid((w + 7) / 8, (n + 3) / 4); first<<<grid, dim3(8, 4)>>>(x, t, n, w); int count = n * w; second<<<(count + 31) / 32, 32>>>(t, y, count); }}\n"
    ),
    "flat_then_rows": (
        f"{HEAD}__global__ void first(const float* a, float* o, int count) {{ {POINT} if (i < count) o[i] = a[i] * a[i]; }}\n"
        f"__global__ void second(const float* q, float* o, int h, int w) {{ {IJ} if (i < w && j < h) o[j * w + i] = q[j * w + i] - 2.0f; }}\n"
        f"{SIGNATURE} {{ first<<<(n * w + 31) / 32, 32>>>(x, t, n * w);\n// rows\ndim3 grid((w + 7) / 8, (n + 3) / 4);\nsecond<<<grid, dim3(8, 4)>>>(t, y, n, w); }}\n"
    ),
    "row_sums": (
        f"{HEAD}__global__ void first(const float* a, float* o, int n, int w) {{ {POINT} if (i >= n) return; float s = 0.0f; for (int j = 0; j < w; ++j) s += a[i * w + j]; o[i] = s; }}\n"
        f"__global__ void second(const float* q, float* o, int n, int w) {{ {POINT} if (i < n) for (int j = 0; j < w; ++j) o[i * w + j] = q[i] / (j + 1); }}\n"
        f"{SIGNATURE} {{ first{FLAT}(x, t, n, w); second{FLAT}(t, y, n, w); }}\n"
    ),
    "strided": (
        f"{HEAD}__global__ void first(const float* a, float* o, int n) {{ for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) o[i] = a[i] + 1.0f; }}\n"
        f"__global__ void second(const float* a, float* o, int n) {{ for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x) o[k] = sqrtf(a[k] * a[k]); }}\n"
        f"{SIGNATURE} {{ first<<<2, 32>>>(x, t, n); second<<<3, 16>>>(t, y, n); }}\n"
    ),
    "in_a_host_loop": elementwise(
        "if (i < n) out[i] = a[i] + 1.0f;",
        "if (i < n) out[i] = in[i] * in[i] * 0.25f;",
        f"for (int step = 0; step < w; ++step) {{\n        first{FLAT}(step ? y : x, t, n);\n        second{FLAT}(t, y, n);\n    }}",
    ),
    "guards_alike": elementwise(
        "if (i < n && i % 3 == 0) out[i] = a[i];", "if (i < n && i % 3 == 0) out[i] = in[i] + 2.0f;"
    ),
    "bias_of_rows": (
        f"{HEAD}__global__ void first(const float* a, const float* c, float* o, int w, int n) {{ {POINT} if (i < n * w) o[i] = a[i] + c[i % w]; }}\n"
        f"__global__ void second(float* v, int n) {{ {POINT} if (i < n) v[i] = fmaxf(v[i], 0.0f); }}\n"
        f"{SIGNATURE} {{ first<<<(n * w + 31) / 32, 32>>>(x, b, y, w, n); second<<<(n * w + 31) / 32, 32>>>(y, n * w); }}\n"
    ),
}
RUNS |= {
    "the_same_twice": (
        f"{HEAD}__global__ void step(const float* p, float* q, float c, int n) {{ {POINT} if (i < n) q[i] = p[i] * c; }}\n"
        f"{SIGNATURE} {{ step{FLAT}(x, t, 0.5f, n); step{FLAT}(t, y, 3.0f, n); }}\n"
    ),
    "there_and_back": (
        f"{HEAD}__global__ void step(const float* p, float* q, int n) {{ {POINT} if (i < n) q[i] = p[i] * p[i]; }}\n"
        f"{SIGNATURE} {{ step{FLAT}(y, t, n); step{FLAT}(t, y, n); }}\n"
    ),
    "templates": (
        f"{HEAD}#define AT(p, k) p[k]\n"
        "template <typename T, int B> __global__ void grow(const T* p, T* q, size_t n)\n"
        "{ for (size_t i = blockIdx.x * (size_t)B + threadIdx.x; i < n; i += (size_t)gridDim.x * B) AT(q, i) = AT(p, i) + T(B); }\n"
        "template <typename T> __global__ void turn(const T* __restrict__ p, T* q, unsigned n)\n"
        "{ unsigned i = threadIdx.x + blockDim.x * blockIdx.x; if (!(i < n)) return; T v = p[i]; q[i] = v * v; }\n"
        f"{SIGNATURE} {{ turn<float>{FLAT}(x, t, n); turn<float>{FLAT}(t, y, n); }}\n"
    ),
    "two_results": (
        f"{HEAD}__global__ void first(const float* p, float* q, float* r, int n) {{ {POINT} if (i < n) {{ q[i] = p[i] + 1.0f; r[i] = p[i] * p[i]; }} }}\n"
        f"__global__ void second(const float* q, const float* r, float* o, int n) {{ {POINT} if (i < n) o[i] = q[i] + r[i]; }}\n"
        f"{SIGNATURE} {{ first{FLAT}(x, t, b, n); second{FLAT}(t, b, y, n); }}\n".replace(
            "const float* b", "float* b"
        )
    ),
}
SIZES = ((1, 1), (5, 3), (64, 2), (70, 7), (0, 3))


def fused(source: str, *promises: Promise) -> str:
    candidate = Candidate.of("k.cu", {"k.cu": source})
    context = context_for("f", *promises)
    found, refusals = find_steps(candidate, LIBRARY.get("memory/fuse_launches"), LIBRARY, context)
    assert found, [refusal.reason for refusal in refusals]
    return apply_step(candidate, found[0].step, LIBRARY, context).candidate.source


@pytest.mark.slow
def test_fused_launches_give_the_same_bits(tmp_path: Path) -> None:
    sources = {}
    for name, source in RUNS.items():
        text = fused(source, Promise.NO_ALIAS)
        assert text.count("<<<") == 1, text
        sources |= {f"{name}_user": source, f"{name}_fused": text}
    library = cpu.build(sources, tmp_path)
    rng = np.random.default_rng(0)
    calls = []
    for name in RUNS:
        for n, w in SIZES:
            size = max(n * w, 1)
            arrays = {k: rng.standard_normal(max(size, n)).astype(np.float32) for k in ("x", "b", "t", "y")}
            for kind in ("user", "fused"):
                given = {key: array.copy() for key, array in arrays.items()}
                calls.append(cpu.Call(f"{name}_{kind}", {**given, "n": n, "w": w}))
    results = library.run(calls)
    for call, user, other in zip(calls[::2], results[::2], results[1::2], strict=True):
        for key in user:
            assert np.array_equal(user[key], other[key]), (call.library_name, key, call.arguments["n"])


ALIASED = {
    "input_is_output": ("square_and_add", {"y": cpu.Alias("x", 0)}),
    "input_is_temporary": ("square_and_add", {"t": cpu.Alias("x", 0)}),
    "all_one": ("other_name", {"t": cpu.Alias("x", 0), "y": cpu.Alias("x", 0)}),
    "temporary_is_output": ("square_and_add", {"y": cpu.Alias("t", 0)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ALIASED)
def test_buffers_in_place_without_a_promise(case: str, tmp_path: Path) -> None:
    name, aliases = ALIASED[case]
    library = cpu.build({"user": RUNS[name], "fused": fused(RUNS[name])}, tmp_path)
    arrays = {key: np.linspace(-2, 3, 100, dtype=np.float32) for key in ("x", "b", "t", "y")}
    calls = [cpu.Call(kind, {**arrays, **aliases, "n": 100, "w": 1}) for kind in ("user", "fused")]
    user, other = library.run(calls)
    assert all(np.array_equal(user[key], other[key]) for key in user)
