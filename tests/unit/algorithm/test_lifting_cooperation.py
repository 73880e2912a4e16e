"""What threads of a block or warp do together, read as what it computes; and what must not be."""

from __future__ import annotations

import re

import pytest

from tests.unit.algorithm.lifting_samples import axes, lifted, refusal, stores

ROW_SUM = """
__global__ void k(const float* x, float* y, int n) {{
    {shared}
    const int t = threadIdx.x;
    float v = 0.0f;
    for (int j = t; j < n; j += blockDim.x) v += x[blockIdx.x * n + j];
    {joined}
}}
extern "C" void f(const float* x, float* y, int rows, int n) {{ k<<<rows, {threads}>>>(x, y, n); }}
"""
SHARED = "__shared__ float s[64];"
TREE = "s[t] = v; __syncthreads(); for (int h = 32; h > 0; h >>= 1) { if (t < h) s[t] += s[t + h]; __syncthreads(); }"
INTERLEAVED = "s[t] = v; __syncthreads(); for (int h = 1; h < 64; h *= 2) { if (t % (2 * h) == 0) s[t] += s[t + h]; __syncthreads(); }"
FIRST = "if (t == 0) y[blockIdx.x] = s[0];"
SHUFFLES = "for (int d = 16; d; d /= 2) v += __shfl_{how}_sync(0xffffffffu, v, d);"
WHOLE = ["y[row] = reduce[+; j in 0..n](x[row*n + j])"]


def row_sum(joined: str, shared: str = SHARED, threads: str = "64") -> str:
    return ROW_SUM.format(shared=shared, joined=joined, threads=threads)


def lifted_stores(source: str) -> list[str]:
    found = lifted(source).algorithm
    (axis,) = found.axes
    return [re.sub(rf"\b{axis.name}\b", "row", text) for text in stores(found)]


@pytest.mark.parametrize(
    "source",
    [
        row_sum(TREE + FIRST),
        row_sum(INTERLEAVED + FIRST),
        row_sum(TREE + "if (!t) y[blockIdx.x] = *s;"),
        row_sum(SHUFFLES.format(how="xor") + "if (t == 0) y[blockIdx.x] = v;", "", "32"),
        row_sum(SHUFFLES.format(how="down") + "if (t == 0) y[blockIdx.x] = v;", "", "32"),
        row_sum(
            SHUFFLES.format(how="down") + "if (t % 32 == 0) s[t / 32] = v; __syncthreads();"
            "if (t < 32) { v = t < 2 ? s[t] : 0.0f;"
            + SHUFFLES.format(how="down")
            + "} if (t == 0) y[blockIdx.x] = v;"
        ),
        row_sum(
            "if (t == 0) total = 0.0f; __syncthreads(); atomicAdd(&total, v); __syncthreads(); if (t == 0) y[blockIdx.x] = total;",
            "__shared__ float total;",
        ).replace("float v = 0.0f;", "float v = 0.0f;"),
    ],
    ids=["tree", "interleaved", "pointer", "xor", "down", "two levels", "shared atomic"],
)
def test_parts_of_threads_become_the_sum(source: str) -> None:
    found = [text.replace("0.0f + reduce", "reduce") for text in lifted_stores(source)]
    assert found == WHOLE
    assert any("joined" in note for note in lifted(source).algorithm.notes)


def test_maxima_of_a_block() -> None:
    source = row_sum(TREE.replace("s[t] += s[t + h]", "s[t] = fmaxf(s[t], s[t + h])") + FIRST)
    source = source.replace("v += x[", "v = fmaxf(v, x[").replace("* n + j];", "* n + j]);")
    assert "reduce[fmax; j in 0..n]" in lifted_stores(source)[0]


def test_tiles_become_the_copy_they_are() -> None:
    source = """
__global__ void k(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (x < cols && blockIdx.y * 32 + r < rows) tile[r][threadIdx.x] = in[(blockIdx.y * 32 + r) * cols + x];
    __syncthreads();
    int y = blockIdx.y * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (y < rows && blockIdx.x * 32 + r < cols) out[(blockIdx.x * 32 + r) * rows + y] = tile[threadIdx.x][r];
}
extern "C" void f(const float* in, float* out, int rows, int cols) {
    k<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in, out, rows, cols);
}
"""
    found = lifted(source).algorithm
    assert {axis.split(" in ")[1] for axis in axes(found)} == {"0..cols", "0..rows"}
    (store,) = found.stores
    assert not store.guard
    assert {axis.name for axis in found.axes} == set(store.index.symbols) - {"rows"}


@pytest.mark.parametrize(
    ("joined", "shared", "threads", "words"),
    [
        ("s[t] = v; " + FIRST, SHARED, "64", "cooperative"),
        ("s[t] = v; if (t < 32) { __syncthreads(); } " + FIRST, SHARED, "64", "only some threads"),
        (TREE.replace("h = 32", "h = 16") + FIRST, SHARED, "64", "cooperative"),
        (TREE + FIRST, "__shared__ volatile float s[64];", "64", "cooperative"),
        (TREE + FIRST, SHARED.replace("64", "96"), "96", "cooperative"),
        (SHUFFLES.format(how="down") + "y[blockIdx.x * 32 + t] = v;", "", "32", "cooperative"),
        (
            SHUFFLES.format(how="xor").replace("16", "8") + "if (t == 0) y[blockIdx.x] = v;",
            "",
            "32",
            "cooperative",
        ),
        (SHUFFLES.format(how="xor") + "if (t == 0) y[blockIdx.x] = v;", "", "64", "cooperative"),
        (SHUFFLES.format(how="up") + "if (t == 0) y[blockIdx.x] = v;", "", "32", "cooperative"),
        ("if (t == 0) y[blockIdx.x] = v;", "", "32", "part of a reduction"),
        (
            "if (t < n) " + "{ " + SHUFFLES.format(how="xor") + " y[blockIdx.x] = v; }",
            "",
            "32",
            "cooperative",
        ),
        ("s[t] = v; __syncwarp(); " + FIRST, SHARED, "64", "cooperative"),
        ("s[(int)v] = v; __syncthreads(); " + FIRST, SHARED, "64", "cooperative"),
        ("if (t == 0) y[blockIdx.x] = s[0];", SHARED, "64", "cooperative"),
    ],
    ids=[
        *(
            "no barrier",
            "divergent barrier",
            "half a tree",
            "volatile",
            "not a power of two",
            "every lane of down",
        ),
        *(
            "half a warp",
            "one warp of two",
            "shuffle up",
            "no joining",
            "divergent lanes",
            "warp barrier",
            "unknown place",
            "unset",
        ),
    ],
)
def test_cooperation_that_must_be_refused(joined: str, shared: str, threads: str, words: str) -> None:
    assert words in refusal(row_sum(joined, shared, threads))


def test_block_scans_are_refused() -> None:
    source = """
__global__ void k(const int* x, int* y) {
    __shared__ int s[512];
    int t = threadIdx.x;
    s[t] = x[blockIdx.x * 512 + t];
    __syncthreads();
    for (int d = 1; d < 512; d *= 2) {
        int v = s[t];
        if (t >= d) v += s[t - d];
        __syncthreads();
        s[t] = v;
        __syncthreads();
    }
    y[blockIdx.x * 512 + t] = s[t];
}
extern "C" void f(const int* x, int* y, int n) { k<<<n, 512>>>(x, y); }
"""
    assert "cooperative" in refusal(source)


STRIPS = """
__global__ void k(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (x < cols && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (x < rows && y + j < cols) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" void f(const float* in, float* out, int rows, int cols) {
    k<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in, out, rows, cols);
}
"""


def test_tiles_that_are_filled_in_strips_are_copies() -> None:
    found = lifted(STRIPS).algorithm
    assert axes(found) == ["i in 0..cols", "x in 0..rows"]
    assert stores(found) == ["out[i*rows + x] = in[cols*x + i]"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("__syncthreads();", ""),
        ("j < 32; j += 8) if (x < cols", "j < 16; j += 8) if (x < cols"),
        ("j += 8) if (x < cols", "j += 16) if (x < cols"),
        ("j += 8) if (x < cols", "j += 4) if (x < cols"),
        ("x < cols && y + j < rows", "x < cols - 1 && y + j < rows"),
        ("tile[threadIdx.y + j][threadIdx.x] =", "tile[threadIdx.y][threadIdx.x] ="),
        ("tile[threadIdx.y + j][threadIdx.x] =", "tile[threadIdx.y + j][threadIdx.x / 2] ="),
        ("= tile[threadIdx.x]", "= tile[threadIdx.x + 1]"),
        (
            "= in[(y + j) * cols + x];",
            "= in[(y + j) * cols + x] + (j > 0 ? tile[threadIdx.y][threadIdx.x] : 0.f);",
        ),
        ("= tile[threadIdx.x]", "= tile[j / 8]"),
        ("dim3(32, 8)", "dim3(32, 4)"),
    ],
)
def test_tiles_that_are_not_filled_whole_are_refused(old: str, new: str) -> None:
    assert old in STRIPS
    found = refusal(STRIPS.replace(old, new))
    assert "shared memory" in found or "barrier" in found, found
