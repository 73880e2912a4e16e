"""Skills about where data lies: padded rows, staged tables, records as vectors, arrays in registers."""

from __future__ import annotations

import pytest

from kernelskill.schema.task import Promise
from tests.skills.applying import changed_lines, refusals

NO_ALIAS = Promise.NO_ALIAS
PAD = "memory/pad_shared"
TABLE = "memory/stage_table"
RECORD = "memory/struct_vector_access"
LOCAL = "memory/local_array_to_registers"


def block_kernel(text: str, launch: str = "<<<1, dim3(32, 8)>>>", head: str = "#define T 32") -> str:
    return (
        f"{head}\n__global__ void k(const float* in, float* out, int n) {{\n"
        f"int x = threadIdx.x, y = threadIdx.y;\n{text}\n}}\n"
        f'extern "C" void f(const float* in, float* out, int n) {{ k{launch}(in, out, n); }}\n'
    )


def turned(declaration: str) -> str:
    return (
        f"{declaration}\nfor (int r = y; r < T; r += 8) t[r][x] = in[r * n + x];\n__syncthreads();\n"
        "for (int r = y; r < T; r += 8) out[r * n + x] = t[x][r];"
    )


@pytest.mark.parametrize(
    ("declaration", "line"),
    [
        ("__shared__ float t[T][T];", "__shared__ float t[T][T + 1];"),
        ("__shared__ double q[8], t[32][T << 0];", "__shared__ double q[8], t[32][(T << 0) + 1];"),
        ("__shared__ short t[T][/* row */ (T)];", "__shared__ short t[T][/* row */ (T) + 2];"),
    ],
)
def test_pad(declaration: str, line: str) -> None:
    assert changed_lines(PAD, block_kernel(turned(declaration)))[-1] == f"+ {line}"


TILE = turned("__shared__ float t[T][T];")


@pytest.mark.parametrize(
    ("text", "launch", "reason"),
    [
        (turned("__shared__ float t[T][T + 1];"), "<<<1, dim3(32, 8)>>>", "in different banks"),
        (f"{TILE} out[0] = t[0][threadIdx.x + 1];", "<<<1, dim3(32, 8)>>>", "certain to stay below 32"),
        (f"{TILE} out[0] = t[0][n];", "<<<1, dim3(32, 8)>>>", "certain to stay below 32"),
        (TILE, "<<<1, dim3(64, 8)>>>", "certain to stay below 32"),
        (TILE, "<<<1, dim3(n, 8)>>>", "certain to stay below 32"),
        (f"{TILE} float* p = &t[0][0]; out[0] = p[40];", "<<<1, dim3(32, 8)>>>", "is no plain element"),
        (f"{TILE} out[0] = *t[1];", "<<<1, dim3(32, 8)>>>", "no plain element"),
        (f"{TILE} out[0] = sizeof(t);", "<<<1, dim3(32, 8)>>>", "more than an array"),
        (f"{TILE} atomicAdd(&t[0][0], 1.0f);", "<<<1, dim3(32, 8)>>>", "no plain element"),
        (f"extern __shared__ float d[];{TILE}", "<<<1, dim3(32, 8), 64>>>", "dynamic shared memory"),
        (f"__shared__ float q[11300];{TILE}", "<<<1, dim3(32, 8)>>>", "no longer fits"),
        (turned("__shared__ float t[T][64];"), "<<<1, dim3(32, 8), n>>>", "dynamic shared memory"),
        (f"{TILE} out[0] = ROW(x);", "<<<1, dim3(32, 8)>>>", "may use 't'"),
        ("__shared__ float t[64]; t[x] = 1;", "<<<1, 64>>>", "no shared array of two"),
    ],
)
def test_pad_declines(text: str, launch: str, reason: str) -> None:
    source = block_kernel(text, launch, "#define T 32\n#define ROW(i) t[i][i]")
    assert reason in refusals(PAD, source)[0]


def table_kernel(text: str, head: str = "", launch: str = "<<<(n + 63) / 64, 64>>>") -> str:
    parameters = "const float* x, const float* w, float* out, int n"
    return (
        f"{head}\n__global__ void k({parameters}) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n{text}\n}}\n"
        f'extern "C" void f({parameters}) {{ k{launch}(x, w, out, n); }}\n'
    )


def test_table_of_the_file() -> None:
    source = table_kernel("out[i] = lut[i % 7 /* , */];", "__constant__ float lut[7];")
    assert changed_lines(TABLE, source) == [
        "+ // All threads fill the copy before any of them leaves.",
        "+ __shared__ float lut_table[7];",
        "+ for (unsigned entry = threadIdx.x; entry < 7; entry += blockDim.x)",
        "+ lut_table[entry] = lut[entry];",
        "+ __syncthreads();",
        "- out[i] = lut[i % 7 /* , */];",
        "+ out[i] = lut_table[i % 7 /* , */];",
    ]


def test_table_behind_a_pointer() -> None:
    text = "if (i >= n) return;\nfloat s = 0;\nfor (int k = 0; k < 5; ++k) s += x[i + k] * w[k];\nout[i] = s;"
    lines = changed_lines(TABLE, table_kernel(text), NO_ALIAS)
    assert lines[2:4] == [
        "+ if (0 < n)",
        "+ for (unsigned entry = threadIdx.x; entry < 5; entry += blockDim.x)",
    ]
    assert "may be part of 'w'" in refusals(TABLE, table_kernel(text))[0]


GUARD = "if (i >= n) return; float s = 0;"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{GUARD} for (int k = 0; k < n; ++k) s += w[k]; out[i] = s;", "nowhere certain"),
        (f"{GUARD} for (int k = 1; k < 5; ++k) s += w[k]; out[i] = s;", "nowhere certain"),
        (f"{GUARD} for (int k = 0; k < 5; k += 2) s += w[k]; out[i] = s;", "nowhere certain"),
        (f"{GUARD} for (int k = 0; k < 5; ++k) if (x[i] > 0) s += w[k]; out[i] = s;", "nowhere certain"),
        (f"{GUARD} for (int k = 0; k < 5; ++k) {{ if (x[i] > 0) break; s += w[k]; }}", "nowhere certain"),
        (f"{GUARD} for (int k = 0; k < 5; ++k) s += x[i] > 0 ? w[k] : 0; out[i] = s;", "nowhere certain"),
        (f"{GUARD} for (int k = 0; k < 5; ++k) s += w[k] + w[k + i]; out[i] = s;", "certain to be below 5"),
        (f"{GUARD} for (int k = 0; k < 5; ++k) s += w[k]; out[i] = *w;", "no plain load"),
        (f"{GUARD} if (x[i] > 0) return; for (int k = 0; k < 5; ++k) out[i] += w[k];", "nowhere certain"),
        ("if (i >= n || x[0] > 1) return; for (int k = 0; k < 5; ++k) out[i] += w[k];", "tests more than"),
        ("for (int k = 0; k < 5; ++k) out[i] += w[k];", "does not begin with a test"),
        (
            "int m = n; if (i >= m) return; for (int k = 0; k < 5; ++k) out[i] += w[k];",
            "not known at its start",
        ),
        (f"{GUARD} for (int k = 0; k < 5000; ++k) s += w[k]; out[i] = s;", "too many to copy"),
        ("out[i] = lut[3] + lut[blockIdx.x & 1];", "at one index"),
        ("out[i] = big[i % 4];", "too many to copy"),
        ("const float* p = lut; out[i] = p[i & 3];", "no plain element"),
        ("out[i] = other[i & 3];", "reads no small table"),
    ],
)
def test_table_declines(text: str, reason: str) -> None:
    head = "__constant__ float lut[4];\n__device__ const float big[5000] = {1};\n__device__ float other[4];"
    assert reason in refusals(TABLE, table_kernel(text, head), NO_ALIAS)[0]


RECORDS = """struct P { float x, y, z, w; };
struct Mixed { float x; int n; };
struct Three { float x, y, z; };
struct Odd { float a; __align__(8) float b; };
struct Gap { float c; const float d; };
"""


def record_kernel(text: str, kind: str = "float", launch: str = "<<<(n + 63) / 64, 64>>>") -> str:
    parameters = f"{kind}* p, const float* q, float* r, int n"
    return (
        f"{RECORDS}__global__ void k({parameters}) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        f"if (i >= n) return;\n{text}\n}}\n"
        f'extern "C" void f({parameters}) {{ k{launch}(p, q, r, n); }}\n'
    )


def test_record_of_scalars() -> None:
    text = "p[2 * i] += p[i * 2 + 1] * 0.5f; // here\np[2 * i + 1] = 3;"
    assert changed_lines(RECORD, record_kernel(text)) == [
        "- p[2 * i] += p[i * 2 + 1] * 0.5f; // here",
        "- p[2 * i + 1] = 3;",
        "+ float2 p_2 = (size_t)&p[2 * i] % 8 == 0",
        "+ ? *reinterpret_cast<float2*>(&p[2 * i])",
        "+ : make_float2(p[2 * i], p[i * 2 + 1]);",
        "+ p_2.x += p_2.y * 0.5f; // here",
        "+ p_2.y = 3;",
        "+ if ((size_t)&p[2 * i] % 8 == 0) {",
        "+ *reinterpret_cast<float2*>(&p[2 * i]) = p_2;",
        "+ } else {",
        "+ p[2 * i] = p_2.x;",
        "+ p[i * 2 + 1] = p_2.y;",
        "+ }",
    ]


def test_record_of_a_struct() -> None:
    text = "const P* b = p + i;\nr[i] = b[0].w * b[0].y;"
    assert changed_lines(RECORD, record_kernel(text, "const P"), NO_ALIAS) == [
        "- r[i] = b[0].w * b[0].y;",
        "+ const float4 b_4 = (size_t)&b[0].x % 16 == 0",
        "+ ? *reinterpret_cast<const float4*>(&b[0].x)",
        "+ : make_float4(b[0].x, b[0].y, b[0].z, b[0].w);",
        "+ r[i] = b_4.w * b_4.y;",
    ]


def test_record_that_is_only_stored() -> None:
    text = "r[4 * i + 1] = 1; r[4 * i] = q[i]; r[4 * i + 3] = 2; r[4 * i + 2] = q[0];"
    lines = changed_lines(RECORD, record_kernel(text), NO_ALIAS)
    assert lines[1:3] == ["+ float4 r_4;", "+ r_4.y = 1; r_4.x = q[i]; r_4.w = 2; r_4.z = q[0];"]


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("r[i] = q[2 * i] + q[2 * i + 2];", "float", "are not accessed"),
        ("r[i] = q[3 * i] + q[3 * i + 1];", "float", "no neighbouring scalars"),
        ("r[i] = q[2 * i]; if (n > 3) r[i] += q[2 * i + 1];", "float", "not all of the scalars"),
        ("r[i] = q[2 * i]; if (n > 3) return; r[i] += q[2 * i + 1];", "float", "may leave"),
        ("r[i] = q[2 * i]; __syncthreads(); r[i] += q[2 * i + 1];", "float", "__syncthreads"),
        ("r[i] = q[2 * i]; i += 2; r[i] += q[2 * i - 3];", "float", "not accessed"),
        ("r[i] = p[2 * i]; p[i] = 1; r[i] += p[2 * i + 1];", "float", "may be p[2 * i]"),
        ("p[2 * (i / 2)] += 1; r[i] += p[2 * (i / 2) + 1];", "float", "may access the same record"),
        ("p[2 * i] += 1; r[i] += p[2 * i + 1]; p[2 * i + 2] = 3;", "float", "may access the same record"),
        ("p[2 * i] = q[i] * 2; p[2 * i + 1] = p[2 * i] + 1;", "float", "stores a product"),
        ("p[i].x += 1; p[i].y += p[i / 2].x;", "P", "may be p[i].x"),
        ("r[i] = p[i].x + p[i].n;", "Mixed", "no neighbouring scalars"),
        ("r[i] = p[i].x + p[i].y;", "Three", "no vector has"),
        ("r[i] = p[i].a + p[i].b;", "Odd", "no neighbouring scalars"),
        ("r[i] = p[i].c + p[i].d;", "Gap", "no neighbouring scalars"),
        ("atomicAdd(&p[2 * i], 1.0f); r[i] = p[2 * i + 1];", "float", "are not accessed"),
    ],
)
def test_record_declines(text: str, kind: str, reason: str) -> None:
    assert reason in refusals(RECORD, record_kernel(text, kind), NO_ALIAS)[0]


def test_shared_records_are_not_written_back() -> None:
    text = "if (p[2 * i] > 0) p[2 * i + 1] = 1;\np[2 * i] = p[2 * i + 1] + 1;"
    assert changed_lines(RECORD, record_kernel(text))
    two = record_kernel(text, launch="<<<n, dim3(8, 8)>>>")
    assert "threads that share a record" in refusals(RECORD, two)[0]
    assert "may be p[2 * i]" in refusals(RECORD, record_kernel(f"r[2 * i] = 1;\n{text}"))[0]


def local_kernel(text: str) -> str:
    parameters = "const float* x, const int* code, float* out, int n"
    return (
        f"__global__ void k({parameters}) {{\nint i = threadIdx.x;\n{text}\n}}\n"
        f'extern "C" void f({parameters}) {{ k<<<1, 64>>>(x, code, out, n); }}\n'
    )


def test_local_array_by_data() -> None:
    text = "float a[3] = {0};\na[code[i]] = x[i] + 1; // one\nout[i] = a[code[1] % 3];"
    assert changed_lines(LOCAL, local_kernel(text)) == [
        "- a[code[i]] = x[i] + 1; // one",
        "- out[i] = a[code[1] % 3];",
        "+ #pragma unroll",
        "+ for (int slot = 0; slot < 3; ++slot) {",
        "+ if (slot == code[i]) a[slot] = x[i] + 1;",
        "+ } // one",
        "+ float a_value = a[0];",
        "+ #pragma unroll",
        "+ for (int slot = 1; slot < 3; ++slot) {",
        "+ if (slot == (code[1] % 3)) a_value = a[slot];",
        "+ }",
        "+ out[i] = a_value;",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("float a[3]; a[0] = 1; out[i] = a[0];", "is a constant once"),
        ("float a[100]; a[i] = 1;", "too large"),
        ("float a[20]; a[i] = 1;", "20 comparisons"),
        ("float a[n]; a[i] = 1;", "size is not a constant"),
        ("float a[4]; float* p = a; p[i] = 1;", "no plain element"),
        ("float a[4] = {1}; out[i] = a[i++];", "more than give a value"),
        ("float a[4] = {1}; out[i] = n > 2 ? a[i] : 0;", "under a condition"),
        ("float a[4] = {1}; while (a[i] > 1) i /= 2;", "where no statement can be put"),
        ("float a[4] = {1}; out[i] = (a[i] = 2);", "inside an expression"),
        ("float a[4] = {1}; a[i] += a[n];", "takes two elements"),
        ("float a[4] = {1}; a[i] = x[i] * 2; out[i] = a[n];", "gets a product"),
        ("float a[2] = {x[0] * 2, 1}; out[i] = a[i];", "begins with a product"),
        (
            "float a[4] = {1}; for (int r = 0; r < 200; ++r) for (int c = 0; c < 2; ++c) a[(r + c) % 4] += 1;",
            "400",
        ),
    ],
)
def test_local_array_declines(text: str, reason: str) -> None:
    assert reason in refusals(LOCAL, local_kernel(text))[0]


NARROW = "memory/narrow_index"


def wide_kernel(
    text: str, parameters: str = "const float* x, float* y, long n", launch: str = "k<<<g, 64>>>"
) -> str:
    names = ", ".join(part.split()[-1].lstrip("*") for part in parameters.split(","))
    return (
        "#define AT(i, j) ((i) * 3 + (j))\n__device__ long other(long v) { return v + 1; }\n"
        f"__global__ void k({parameters}) {{\n{text}\n}}\n"
        f'extern "C" void f({parameters}) {{ int g = (n + 63) / 64;\n{launch}({names}); }}\n'
    )


INDEX = "long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) "


def test_narrow_index() -> None:
    text = f"{INDEX} y[i] = x[i * 3];"
    lines = [line for line in changed_lines(NARROW, wide_kernel(text)) if line[0] == "+"]
    assert lines == [
        "+ template <typename Index>",
        "+ __global__ void k(const float* x, float* y, Index n) {",
        "+ Index i = (Index)blockIdx.x * blockDim.x + threadIdx.x;",
        "+ // 32-bit indices where all of them fit.",
        "+ if (n >= 0",
        "+ && (double)g * 192 + 192 <= 2147483647.0",
        "+ && (double)n <= 2147483647.0) {",
        "+ k<int><<<g, 64>>>(x, y, n);",
        "+ } else {",
        "+ k<long><<<g, 64>>>(x, y, n);",
        "+ } }",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{INDEX} y[i] = x[i - 1];", "how large i - 1 can get"),
        (f"{INDEX} y[i] = x[-i + n];", "how large"),
        (f"{INDEX} y[i] = x[AT(i, 1)];", "macro 'AT'"),
        (f"{INDEX} y[i] = x[max(i, n)];", "'max' may compute"),
        (f"{INDEX} {{ long j = other(i); y[i] = x[j]; }}", "how large other(i)"),
        (f"{INDEX} {{ long* p = &i; *p = 3; y[i] = 1; }}", "how large i can get"),
        (f"{INDEX} {{ i += 3; y[i] = 1; }}", "how large i can get"),
        (f"{INDEX} {{ int s = 0; s += i; y[i] = s; }}", "before it stores"),
        (f"{INDEX} for (long k = n; k > 0; --k) y[i] += x[k];", "how large k can get"),
        (f"{INDEX} {{ auto j = i * 2; y[j] = 1; }}", "is deduced"),
        (f"{INDEX} {{ size_t j = i; y[j] = 1; }}", "signed and in unsigned"),
        (f"{INDEX} y[i] = sizeof(i);", "takes the size"),
        (f"{INDEX} y[i] = i > 3 ? x[n > 3 ? i : n] : 0;", "how large"),
        (f"{INDEX} {{ long s = x[i]; y[i] = s; }}", "how large x[i] can get"),
        (f"{INDEX} y[i] = (size_t)&x[i] % 16;", "signed and in unsigned"),
        ("int i = threadIdx.x; y[i] = x[i];", "computes no index in 64 bits"),
    ],
)
def test_narrow_index_declines(text: str, reason: str) -> None:
    parameters = (
        "const float* x, float* y, int n" if text.startswith("int") else "const float* x, float* y, long n"
    )
    assert reason in refusals(NARROW, wide_kernel(text, parameters))[0]


def test_narrow_index_needs_plain_launches() -> None:
    text = f"{INDEX} y[i] = x[i];"
    assert (
        "inside an expression"
        in refusals(NARROW, wide_kernel(text, launch="n > 3 ? k<<<g, 64>>>(x, y, n) : k<<<1, 64>>>"))[0]
    )
    assert "no plain integer" in refusals(NARROW, wide_kernel(text).replace("(x, y, n);", "(x, y, n++);"))[0]
    assert "does more than give" in refusals(NARROW, wide_kernel(text, launch="k<<<g++, 64>>>"))[0]
    template = (
        wide_kernel(text).replace("__global__", "template <int N> __global__").replace("k<<<", "k<3><<<")
    )
    assert "a template already" in refusals(NARROW, template)[0]
