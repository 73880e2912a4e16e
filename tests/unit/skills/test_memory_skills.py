"""The memory skills on several spellings, and what they decline."""

from __future__ import annotations

import pytest

from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import apply_step, find_steps
from tests.skills.applying import LIBRARY, changed_lines, refusals
from tests.skills.contexts import context_for

NO_ALIAS = Promise.NO_ALIAS
SWAP = "memory/swap_thread_axes"
KEEP = "memory/accumulate_in_register"
HOIST = "memory/hoist_invariant"
QUALIFY = "memory/read_only_qualifiers"
WIDE = "memory/vectorize_128"


def plane(kernel: str, launch: str) -> str:
    return f'{kernel}\nextern "C" void f(const float* a, float* b, int h, int w) {{\n{launch}\n}}\n'


@pytest.mark.parametrize(
    ("kernel", "launch", "lines"),
    [
        (
            "__global__ void k(const float* a, float* b, int h, int w) {\n"
            "int r = blockIdx.x * blockDim.x + threadIdx.x;\nint c = blockIdx.y * blockDim.y + threadIdx.y;\n"
            "if (r < h && c < w) b[r * w + c] = a[r * w + c];\n}",
            "dim3 t(32, 8); dim3 g((h + t.x - 1) / t.x, (w + t.y - 1) / t.y);\nk<<<g, t>>>(a, b, h, w);",
            [
                "- int r = blockIdx.x * blockDim.x + threadIdx.x;",
                "- int c = blockIdx.y * blockDim.y + threadIdx.y;",
                "+ int r = blockIdx.x * blockDim.y + threadIdx.y;",
                "+ int c = blockIdx.y * blockDim.x + threadIdx.x;",
                "- k<<<g, t>>>(a, b, h, w);",
                "+ k<<<g, dim3(t.y, t.x, t.z)>>>(a, b, h, w);",
            ],
        ),
        (
            "template <int BX, int BY>\n__global__ void k(const float* a, float* b, size_t h, size_t w) {\n"
            "size_t r = BX * (size_t)blockIdx.x + threadIdx . x, c = blockIdx.y * BY + threadIdx.y; // x\n"
            "if (r >= h) return; if (c >= w) return;\nb[r * w + c] = a[0];\n}",
            "k<8, 32><<<dim3((h + 7) / 8, (w + 31) / 32), dim3(8, 32)>>>(a, b, h, w);",
            [
                "- size_t r = BX * (size_t)blockIdx.x + threadIdx . x, c = blockIdx.y * BY + threadIdx.y; // x",
                "+ size_t r = BX * (size_t)blockIdx.x + threadIdx . y, c = blockIdx.y * BY + threadIdx.x; // x",
                "- k<8, 32><<<dim3((h + 7) / 8, (w + 31) / 32), dim3(8, 32)>>>(a, b, h, w);",
                "+ k<8, 32><<<dim3((h + 7) / 8, (w + 31) / 32), dim3(32, 8)>>>(a, b, h, w);",
            ],
        ),
        (
            "#define W 64\n__global__ void k(const float* a, float* b, int h, int w) {\n"
            "__shared__ float s[16][16];\ns[threadIdx.x][threadIdx.y] = a[threadIdx.x * W + threadIdx.y];\n"
            "__syncthreads();\nb[threadIdx.x * W + threadIdx.y] = s[threadIdx.y][threadIdx.x];\n}",
            "k<<<1, dim3(16, 16)>>>(a, b, h, w);",
            [
                "- s[threadIdx.x][threadIdx.y] = a[threadIdx.x * W + threadIdx.y];",
                "+ s[threadIdx.y][threadIdx.x] = a[threadIdx.y * W + threadIdx.x];",
                "- b[threadIdx.x * W + threadIdx.y] = s[threadIdx.y][threadIdx.x];",
                "+ b[threadIdx.y * W + threadIdx.x] = s[threadIdx.x][threadIdx.y];",
            ],
        ),
    ],
)
def test_swap(kernel: str, launch: str, lines: list[str]) -> None:
    assert changed_lines(SWAP, plane(kernel, launch)) == lines


@pytest.mark.parametrize(
    ("extra", "index", "launch", "reason"),
    [
        ("", "threadIdx.y * w + threadIdx.x", "k<<<1, dim3(8, 8)>>>", "not closer together"),
        ("", "threadIdx.x * w", "k<<<1, 64>>>", "does not use threadIdx.y"),
        ("__syncwarp();", "threadIdx.x * w + threadIdx.y", "k<<<1, dim3(8, 8)>>>", "share a warp"),
        ("take(threadIdx);", "threadIdx.x * w + threadIdx.y", "k<<<1, dim3(8, 8)>>>", "as a whole"),
        ("", "threadIdx.x * w + threadIdx.y", "k<<<1, shape()>>>", "the block"),
        ("", "threadIdx.x * w + threadIdx.y", "k<<<1, dim3(64, 1)>>>", "one thread along an axis"),
        ("", "threadIdx.x * w + threadIdx.y", "auto p = &k; k<<<1, dim3(8, 8)>>>", "outside its definition"),
        ("", "threadIdx.x * w + TY", "k<<<1, dim3(8, 8)>>>", "does not use threadIdx.y"),
        ("int z = threadIdx.y;", "threadIdx.x * w + TY", "k<<<1, dim3(8, 8)>>>", "a function or macro"),
    ],
)
def test_swap_declines(extra: str, index: str, launch: str, reason: str) -> None:
    kernel = "#define TY threadIdx.y\n__global__ void k(const float* a, float* b, int h, int w) {\n"
    source = plane(f"{kernel}{extra}\nb[{index}] = a[{index}];\n}}", f"{launch}(a, b, h, w);")
    assert reason in refusals(SWAP, source)[0]


FLAT = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def flat(text: str, launch: str = "(h * w + 63) / 64, 64") -> str:
    kernel = f"__global__ void k(const float* a, float* b, int h, int w) {{\n{FLAT}{text}\n}}"
    return plane(kernel, f"k<<<{launch}>>>(a, b, h, w);")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "if (i >= h * w) return;\nint r = i / w, c = i % w;\nb[c * h + r] = a[i];",
            [
                "- int r = i / w, c = i % w;",
                "- b[c * h + r] = a[i];",
                "+ int r = i % h, c = i / h;",
                "+ b[c * h + r] = a[r * w + c];",
            ],
        ),
        (
            "if (i < w * h) {\nconst int c = i % (w);\nconst long r = i / w; // row\nb[c * h + r] += 2 * i;\n}",
            [
                "- const int c = i % (w);",
                "- const long r = i / w; // row",
                "- b[c * h + r] += 2 * i;",
                "+ const int c = i / h;",
                "+ const long r = i % h; // row",
                "+ b[c * h + r] += 2 * (r * w + c);",
            ],
        ),
        (
            "const int r = i / 48;\nint c = i % 48;\nif ((h + 1) * 48 > i) b[c * (h + 1) + r] = a[0];",
            [
                "- const int r = i / 48;",
                "- int c = i % 48;",
                "+ const int r = i % ((h + 1));",
                "+ int c = i / ((h + 1));",
            ],
        ),
    ],
)
def test_swap_of_one_split_index(text: str, lines: list[str]) -> None:
    launch = "((h + 1) * 48 + 63) / 64, 64" if "48" in text else "(h * w + 63) / 64, 64"
    launch = "(w * h + 63) / 64, 64" if "w * h" in text else launch
    assert changed_lines(SWAP, flat(text, launch)) == lines


@pytest.mark.parametrize(
    ("text", "launch", "reason"),
    [
        ("if (i >= h * w) return; int r = i / w, c = i % w; b[r * w + c] = a[i];", "", "not closer together"),
        ("if (i >= h * w) return; int r = i / w, c = i % w; b[c * h + r] = 0;", "h, 64", "rounded up"),
        (
            "if (i >= h) return; int r = i / w, c = i % w; b[c * h + r] = 0;",
            "(h + 63) / 64, 64",
            "no product",
        ),
        ("if (i >= h * w) return; int r = i / w, c = i % h; b[c * h + r] = 0;", "", "one quotient and one"),
        ("if (i >= h * w) return; b[i] = 0; int r = i / w, c = i % w; b[c * h + r] = 0;", "", "before it is"),
        (
            "if (i >= h * w) return; int r = i / w, c = i % w; ++r; b[c * h + r] = 0;",
            "",
            "one quotient and one",
        ),
        ("if (i >= h * w * 1u) return; int r = i / w, c = i % w; b[c * h + r] = 0;", "", "may wrap around"),
    ],
)
def test_swap_of_one_split_index_declines(text: str, launch: str, reason: str) -> None:
    assert reason in refusals(SWAP, flat(text, launch or "(h * w + 63) / 64, 64"))[0]


def loop_kernel(
    text: str, parameters: str = "const float* x, float* y, int n", launch: str = "k<<<1, 32>>>(x, y, n)"
) -> str:
    return (
        f"__global__ void k({parameters}) {{\nint t = threadIdx.x;\n{text}\n}}\n"
        f'extern "C" void f({parameters.replace(" __restrict__", "")}) {{ {launch}; }}\n'
    )


@pytest.mark.parametrize(
    ("text", "promises", "lines"),
    [
        (
            "y[t] = 0;\nfor (int j = 0; j < n; ++j) y[t] += x[j];",
            [NO_ALIAS],
            [
                "- for (int j = 0; j < n; ++j) y[t] += x[j];",
                "+ float y_sum = y[t];",
                "+ for (int j = 0; j < n; ++j) y_sum += x[j];",
                "+ y[t] = y_sum;",
            ],
        ),
        (
            "y[t] = 0;\nfor (int j = 0; j < n; ++j) y[t] += x[j];",
            [],
            [
                "- for (int j = 0; j < n; ++j) y[t] += x[j];",
                "+ // The sums stay in registers where they overlap neither each other nor what the loop reads.",
                "+ const size_t y_begin = (size_t)&y[t], y_end = y_begin + sizeof(float);",
                "+ const size_t x_begin = (size_t)&x[0], x_end = (size_t)&x[n - 1] + sizeof(float);",
                "+ const bool y_is_apart = (y_end <= x_begin || x_end <= y_begin);",
                "+ if (y_is_apart) {",
                "+ float y_sum = y[t];",
                "+ for (int j = 0; j < n; ++j) y_sum += x[j];",
                "+ y[t] = y_sum;",
                "+ } else {",
                "+ for (int j = 0; j < n; ++j) y[t] += x[j];",
                "+ }",
            ],
        ),
        (
            "y[t] = 0;\nfor (int j = 0; j < n; ++j) y[t] += x[j * j];",
            [],
            [
                "- for (int j = 0; j < n; ++j) y[t] += x[j * j];",
                "+ float y_sum = y[t];",
                "+ for (int j = 0; j < n; ++j) y[t] = (y_sum += x[j * j]);",
            ],
        ),
        (
            "y[t] = 0;\nfor (int j = 0; j < n; ++j) { y[t]++; n -= x[j * j]; --y[t]; }",
            [],
            [
                "- for (int j = 0; j < n; ++j) { y[t]++; n -= x[j * j]; --y[t]; }",
                "+ float y_sum = y[t];",
                "+ for (int j = 0; j < n; ++j) { y[t] = ++y_sum; n -= x[j * j]; y[t] = --y_sum; }",
            ],
        ),
        (
            "y[t] = 0; y[t + 40] = 1;\nfor (int j = 0; j < n; ++j) { y[t] += x[j]; y[t + 40] *= x[j]; }",
            [NO_ALIAS],
            [
                "- for (int j = 0; j < n; ++j) { y[t] += x[j]; y[t + 40] *= x[j]; }",
                "+ float y_sum = y[t];",
                "+ float y_sum_2 = y[t + 40];",
                "+ for (int j = 0; j < n; ++j) { y_sum += x[j]; y_sum_2 *= x[j]; }",
                "+ y[t] = y_sum;",
                "+ y[t + 40] = y_sum_2;",
            ],
        ),
        (
            "for (int q = t; q < n; q += 2) { y[t * 2] = y[t * 2] * x[q]; }",
            [NO_ALIAS],
            [
                "- for (int q = t; q < n; q += 2) { y[t * 2] = y[t * 2] * x[q]; }",
                "+ if (t < n) {",
                "+ float y_sum = y[t * 2];",
                "+ for (int q = t; q < n; q += 2) { y_sum = y_sum * x[q]; }",
                "+ y[t * 2] = y_sum;",
                "+ }",
            ],
        ),
        (
            "y[t] = 1; /* start */\nint j = 0;\nwhile (j < n) {\n++y[t]; // count\nj++;\n}",
            [],
            ["+ float y_sum = y[t];", "- ++y[t]; // count", "+ ++y_sum; // count", "+ y[t] = y_sum;"],
        ),
    ],
)
def test_keep_in_register(text: str, promises: list[Promise], lines: list[str]) -> None:
    assert changed_lines(KEEP, loop_kernel(text), *promises) == lines


@pytest.mark.parametrize(
    ("loop", "run"),
    [
        ("for (int j = 0; j < n; ++j) { y[t] += 1; z[j] = y[t]; }", ["&z[0]", "&z[n - 1] + sizeof(float)"]),
        ("for (int j = n; j > 0; --j) { y[t] += 1; z[j] = 2; }", ["&z[1]", "&z[n] + sizeof(float)"]),
        (
            "for (int j = 2; j <= n; j += 3) { y[t] += 1; z[n - 2 * j] = 2; }",
            ["&z[n - 2 * ((long long)n)]", "&z[n - 2 * 2LL] + sizeof(float)"],
        ),
        ("for (size_t j = 0; j < n; ++j) { y[t] += 1; z[j] = 2; }", ["&z[0]", "&z[(unsigned long)n - 1] +"]),
        ("for (int j = t; j < n; j += blockDim.x) { y[t] += 1; z[j] = 2; }", ["&z[t]", "&z[n - 1]"]),
        (
            "for (int j = 0; j < n; ++j) { y[t] += 1; z[2 /* ] */ * // [\n j] = z[t /* , */]; }",
            ["&z[2 * 0]", "&z[2 * ((long long)n - 1)]", "&z[t ]"],
        ),
    ],
)
def test_runs_of_a_loop(loop: str, run: list[str]) -> None:
    source = loop_kernel(loop, "float* y, float* z, int n", "k<<<1, 32>>>(y, z, n)")
    lines = "\n".join(changed_lines(KEEP, source))
    assert all(f"(size_t){part}" in lines for part in run), lines


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int j = 0; j < n; ++j) { y[t] += 1; z[j * j] = 2; }", "is not linear in 'j'"),
        ("for (int j = 0; j < n; ++j) { y[t] += 1; z[i[j]] = 2; }", "can't be bounded before the loop"),
        ("for (int j = 0; j < n; ++j) { y[t] += 1; int q = 2 * j; z[q] = 2; }", "can't be bounded before"),
        ("for (unsigned j = 0; j < n; ++j) { y[t] += 1; z[j * n] = 2; }", "may wrap around"),
        ("for (int j = 0; j < n; ++j) { y[t] += 1; z[(short)j] = 2; }", "may cut its value off"),
        ("for (int j = 0; j < n; j *= 2) { y[t] += 1; z[j] = 2; }", "where the loop on line 3 goes"),
        ("for (int j = 0; j < n; j += n) { y[t] += 1; z[j] = 2; }", "where the loop on line 3 goes"),
        ("for (int j = 0; j < *i; j++) { y[t] += 1; z[j] = 2; }", "the bounds of the loop on line 3"),
        ("for (int j = 0; j < n; j++) { y[t] += 1; z[j] = 2; y[j] = 1; }", "may be y[t]"),
    ],
)
def test_runs_that_have_no_bound(loop: str, reason: str) -> None:
    source = loop_kernel(loop, "float* y, float* z, const int* i, int n", "k<<<1, 32>>>(y, z, i, n)")
    assert reason in refusals(KEEP, source)[0]


def test_the_general_path_is_not_offered_again() -> None:
    candidate = Candidate.of("k.cu", {"k.cu": loop_kernel("for (int j = 0; j < n; ++j) y[t] += x[j];")})
    context = context_for("f")
    step = find_steps(candidate, LIBRARY.get(KEEP), LIBRARY, context)[0][0].step
    result = apply_step(candidate, step, LIBRARY, context).candidate
    assert result.source.count("y[t] += x[j]") == 1
    assert "kept for memory that overlaps" in refusals(KEEP, result.source)[0]


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int j = 0; j < n; ++j) { y[t] += 1; y[j] = 2; }", "may be y[t]"),
        ("for (int j = 0; j < n; ++j) { if (j > 3) y[t] += x[j]; }", "may never access"),
        ("for (int j = 0; j < n; ++j) { if (j > 3) continue; y[t] += x[j]; }", "may never access"),
        ("for (int j = 0; j < n; ++j) { y[t] += x[j]; if (x[j] > 2) return; }", "can leave the kernel"),
        ("for (int j = 0; j < n; ++j) { y[t] += x[j]; __syncthreads(); }", "__syncthreads"),
        ("for (int j = 0; j < n; ++j) { y[t] += x[j]; ++t; }", "at a fixed index"),
        ("for (int j = 0; j < n; ++j) { y[t] += other(j); }", "may access memory"),
        ("for (int j = 0; j < n; ++j) { y[t] += x[j]; SET(y, j); }", "may access memory"),
        ("y[t] = 0; int q = t++; for (int j = 0; j < n; ++j) { if (q) y[t] += x[j]; }", "may never access"),
        ("float* q = y + t; for (int j = 0; j < n; ++j) { y[t] += 1; q[0] += x[j]; }", "may be y[t]"),
        ("int j = 0; do { y[t] += x[j]; } while (++j < n);", "can't be told"),
    ],
)
def test_keep_in_register_declines(loop: str, reason: str) -> None:
    source = "#define SET(p, i) p[i] = 1\nfloat __device__ other(int);\n" + loop_kernel(loop)
    assert reason in refusals(KEEP, source, NO_ALIAS)[0]


@pytest.mark.parametrize(
    ("text", "promises", "lines"),
    [
        (
            "for (int j = 0; j < n; ++j) y[j] = x[t] * 2;",
            [NO_ALIAS],
            [
                "- for (int j = 0; j < n; ++j) y[j] = x[t] * 2;",
                "+ const float x_value = 0 < n ? x[t] : float();",
                "+ for (int j = 0; j < n; ++j) y[j] = x_value * 2;",
            ],
        ),
        (
            "float a = 2; if (t)\nfor (unsigned j = 0; j < 5; j++) { y[j] += expf(a * t); }",
            [],
            [
                "- for (unsigned j = 0; j < 5; j++) { y[j] += expf(a * t); }",
                "+ {",
                "+ const float expf_value = expf(a * t);",
                "+ for (unsigned j = 0; j < 5; j++) { y[j] += expf_value; }",
                "+ }",
            ],
        ),
        (
            "__shared__ float s[32];\nfor (int j = 1; j <= 32; ++j) { s[j - 1] = x[t + 1] /* x[t + 1] */ ; }\ny[t] = s[t];",
            [],
            [
                "- for (int j = 1; j <= 32; ++j) { s[j - 1] = x[t + 1] /* x[t + 1] */ ; }",
                "+ const float x_value = x[t + 1];",
                "+ for (int j = 1; j <= 32; ++j) { s[j - 1] = x_value /* x[t + 1] */ ; }",
            ],
        ),
    ],
)
def test_hoist(text: str, promises: list[Promise], lines: list[str]) -> None:
    assert changed_lines(HOIST, loop_kernel(text), *promises) == lines


@pytest.mark.parametrize(
    ("loop", "promises", "reason"),
    [
        ("for (int j = 0; j < n; ++j) y[j] = x[t];", [], "may be x[t]"),
        ("for (int j = 0; j < n; ++j) { if (j) y[j] = x[t]; }", [NO_ALIAS], "certainly loads"),
        ("for (int j = 0; j < n; ++j) { if (j > 2) break; y[j] = x[t]; }", [NO_ALIAS], "certainly loads"),
        ("for (int j = 0; j < n; ++j) { y[j] = x[j]; }", [NO_ALIAS], "the same value"),
        ("for (int j = 0; j < n; ++j) { y[j] = x[t]; __syncthreads(); }", [NO_ALIAS], "__syncthreads"),
        ("for (int j = 0; j < n; ++j) { y[j] = y[t]; }", [NO_ALIAS], "may be y[t]"),
    ],
)
def test_hoist_declines(loop: str, promises: list[Promise], reason: str) -> None:
    assert reason in refusals(HOIST, loop_kernel(loop), *promises)[0]


def test_qualifiers_need_the_promise() -> None:
    source = loop_kernel("y[t] = x[t];")
    assert "PROMISE" in refusals(QUALIFY, source)[0]
    lines = changed_lines(QUALIFY, source, NO_ALIAS)
    assert lines[1] == "+ __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {"


def test_const_only_for_pointers_that_are_only_read() -> None:
    source = loop_kernel(
        "y[t] = a[t] + *c; y[1] += b[t];\nfloat* q = c;",
        "float* a, float *b, float* c, float* y",
        "k<<<1, 32>>>(a, b, c, y)",
    )
    assert changed_lines(QUALIFY, source, NO_ALIAS)[1] == (
        "+ __global__ void k(const float* __restrict__ a, const float *__restrict__ b, "
        "float* __restrict__ c, float* __restrict__ y) {"
    ).replace("float *__restrict__ b", "float * __restrict__ b")


def test_one_pointer_given_twice_is_never_restricted() -> None:
    source = loop_kernel("y[t] = x[t];", launch="k<<<1, 32>>>(y, y, n)")
    assert "may overlap" in refusals(QUALIFY, source, NO_ALIAS)[0]
    helper = source.replace('extern "C" void f', "void helper")
    assert "may overlap" in refusals(QUALIFY, helper, NO_ALIAS)[0]  # the promise is about the launcher


def test_fresh_memory_needs_no_promise() -> None:
    launch = "float* tmp; cudaMalloc(&tmp, 4 * n); k<<<1, 32>>>(x, tmp, n)"
    assert changed_lines(QUALIFY, loop_kernel("y[t] = x[t];", launch=launch))


@pytest.mark.parametrize(
    ("parameters", "text", "lines"),
    [
        (
            "const float* x, float* y, int n",
            "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\ny[i] += x[i] * i;",
            [
                "const long long group = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
                "const long long first = 4 * group;",
                "if (first + 3 < n && ((size_t)x | (size_t)y) % 16 == 0) {",
                "float4 x_4 = reinterpret_cast<const float4*>(x)[group];",
                "float4 y_4 = reinterpret_cast<const float4*>(y)[group];",
                "{ const int i = (int)(first + 3); y_4.w += x_4.w * i; }",
                "reinterpret_cast<float4*>(y)[group] = y_4;",
                "for (long long item = first; item < first + 4 && item < n; ++item) {",
                "<<<(n + 511) / 512, 128>>>",
            ],
        ),
        (
            "const double* x, double* y, int n",
            "const size_t k = threadIdx.x + (size_t)blockDim.x * blockIdx.x;\n"
            "if (k < (size_t)n) { double v = x[k]; /* ] */ y[k] = v * v; } // end",
            [
                "const long long first = 2 * group;",
                "if (first + 1 < ((size_t)n) && ((size_t)x | (size_t)y) % 16 == 0) {",
                "double2 x_2 = reinterpret_cast<const double2*>(x)[group];",
                "double2 y_2;",
                "{ double v = x_2.y; y_2.y = v * v; }",
                "<<<(n + 255) / 256, 128>>>",
            ],
        ),
        (
            "const unsigned char* x, unsigned char* y, int n",
            "int i = blockIdx.x * 128 + threadIdx.x;\nif (n > i)\n    y[i] = 255 - x[i];",
            ["uchar4 x_4 = reinterpret_cast<const uchar4*>(x)[group];", "{ y_4.z = 255 - x_4.z; }"],
        ),
    ],
)
def test_vectors(parameters: str, text: str, lines: list[str]) -> None:
    source = loop_kernel("", parameters, "k<<<(n + 127) / 128, 128>>>(x, y, n)")
    changed = "\n".join(changed_lines(WIDE, source.replace("int t = threadIdx.x;", text)))
    assert all(line in changed for line in lines), changed


def test_vectors_need_one_size() -> None:
    source = loop_kernel("", "const double* x, float* y, int n", "k<<<(n + 127) / 128, 128>>>(x, y, n)")
    text = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) y[i] = x[i];"
    assert "different sizes" in refusals(WIDE, source.replace("int t = threadIdx.x;", text))[0]


@pytest.mark.parametrize(
    ("work", "launch", "reason"),
    [
        ("y[i] = x[i + 1];", "(n + 127) / 128, 128", "not at the global index"),
        ("if (i % 2) y[i] = x[i];", "(n + 127) / 128, 128", "under a condition"),
        ("y[i] = x[i]; y[i] = i;", "(n + 127) / 128, 128", "written more than once"),
        ("y[i] = 1; float v = x[i]; v += 1;", "(n + 127) / 128, 128", "may be what line"),
        ("y[i] = x[i] + x[0];", "(n + 127) / 128, 128", "not at the global index"),
        ("y[i] = x[i]; n = 3;", "(n + 127) / 128, 128", "all elements would share"),
        ("y[i] = x[i];", "n / 128, 128", "rounded up"),
        ("y[i] = x[i] + warpSize;", "(n + 127) / 128, 128", "independent"),
    ],
)
def test_vectors_declined(work: str, launch: str, reason: str) -> None:
    head = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) {\n"
    source = loop_kernel("", launch=f"k<<<{launch}>>>(x, y, n)").replace(
        "int t = threadIdx.x;\n", f"{head}{work}\n}}"
    )
    assert reason in refusals(WIDE, source)[0]


def test_shapes_shared_by_two_launches_stay_as_they_are() -> None:
    text = plane(
        "__global__ void k(const float* a, float* b, int h, int w) {\n"
        "b[threadIdx.x * w + threadIdx.y] = a[threadIdx.x * w + threadIdx.y];\n}\n"
        "__global__ void other(float* b) { b[threadIdx.x] = 1; }",
        "dim3 t(32, 8);\nk<<<1, t>>>(a, b, h, w);\nother<<<t.x, t>>>(b);",
    )
    lines = changed_lines(SWAP, text)
    assert "+ k<<<1, dim3(t.y, t.x, t.z)>>>(a, b, h, w);" in lines
    assert not any("other" in line or "dim3 t" in line for line in lines)
