"""The parallelism skills on several spellings, and what they decline."""

from __future__ import annotations

import pytest

from tests.skills.applying import changed_lines, refusals

SHAPE, BOUNDS, STRIDE = "parallelism/block_shape", "parallelism/launch_bounds", "parallelism/grid_stride"
COARSEN = "parallelism/thread_coarsen"
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"


def source(kernel: str, launch: str, head: str = "") -> str:
    parameters = "const float* x, float* y, int n, int m"
    return (
        f"{head}__global__ void k({parameters}) {{\n{kernel}\n}}\n"
        f'extern "C" void f({parameters}) {{\n{launch}\n}}\n'
    )


LINEAR = INDEX + "if (i < n) y[i] = x[i];"


@pytest.mark.parametrize(
    ("kernel", "launch", "shape", "lines"),
    [
        (
            LINEAR,
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "128x1",
            ["+ k<<<(n + 127) / 128, 128>>>(x, y, n, m);"],
        ),
        (
            LINEAR,
            "const int T = 64;\nk<<<(n - 1) / T + 1, T>>>(x, y, n, m);",
            "256x1",
            ["+ k<<<(n + 255) / 256, 256>>>(x, y, n, m);"],
        ),
        (
            LINEAR,
            "k<<<CDIV(m * 2, 64), 64>>>(x, y, m * 2, m);",
            "32x1",
            ["+ k<<<(m * 2 + 31) / 32, 32>>>(x, y, m * 2, m);"],
        ),
        (
            "unsigned i = threadIdx.x + blockDim.x * blockIdx.x; // odd order\nif (i >= n - 1) { return; }\ny[i] = x[i];",
            "dim3 t; t.x = 128;\nk<<<dim3((n + t.x - 1) / t.x), t>>>(x, y, n, m);",
            "512x1",
            ["+ k<<<(n + 511) / 512, 512>>>(x, y, n, m);"],
        ),
        (
            "int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;\n"
            "if (c < n && r < m) y[(blockIdx.z * m + r) * n + c] = 1;",
            "dim3 t(16, 16), g((n + 15) / 16, (m + 15) / 16, 3);\nk<<<g, t>>>(x, y, n, m);",
            "64x4",
            ["+ dim3 t(64, 4), g((n + 63) / 64, (m + 3) / 4, 3);"],
        ),
        (
            "int r = blockIdx.y;\nint c = blockIdx.x * blockDim.x + threadIdx.x;\nif (c < n) y[r * n + c] = 1;",
            "k<<<dim3((n + 63) / 64, m), 64>>>(x, y, n, m);",
            "128x1",
            ["+ k<<<dim3((n + 127) / 128, m), 128>>>(x, y, n, m);"],
        ),
    ],
)
def test_block_shape(kernel: str, launch: str, shape: str, lines: list[str]) -> None:
    text = source(kernel, launch, "#define CDIV(a, b) (((a) + (b) - 1) / (b))\n")
    added = [line for line in changed_lines(SHAPE, text, shape=shape) if line.startswith("+")]
    assert added == lines


@pytest.mark.parametrize(
    ("kernel", "launch", "reason"),
    [
        (LINEAR, "k<<<n / 256, 256>>>(x, y, n, m);", "rounded up"),
        (LINEAR, "k<<<(n + 255) / 256, m>>>(x, y, n, m);", "not a constant"),
        (LINEAR, "k<<<(m + 255) / 256, 256>>>(x, y, n, m);", "rounded up"),
        (LINEAR, "k<<<(n + 255) / 256, dim3(256, 2)>>>(x, y, n, m);", "several threads along y"),
        (INDEX + "y[i] = x[i];", "k<<<(n + 255) / 256, 256>>>(x, y, n, m);", "test of its global index"),
        (
            INDEX + "if (i < n) y[blockIdx.x] = x[i];",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "more than the global index",
        ),
        (
            INDEX + "if (i < n) y[i] = blockDim.x;",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "more than the global index",
        ),
        (
            INDEX + "__syncthreads();\nif (i < n) y[i] = 1;",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "__syncthreads",
        ),
        ("__shared__ float s[256];\n" + LINEAR, "k<<<(n + 255) / 256, 256>>>(x, y, n, m);", "__shared__"),
        (
            INDEX + "y[0] = 1;\nif (i < n) y[i] = 1;",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "test of its global index",
        ),
        (
            INDEX + "if (i < n) y[i] = 1; else y[0] = 2;",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "test of its global index",
        ),
        (
            INDEX + "if (i < x[0]) y[i] = 1;",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "test of its global index",
        ),
        (LINEAR, "if (n) run();", "no launch"),
    ],
)
def test_block_shape_declines(kernel: str, launch: str, reason: str) -> None:
    assert reason in refusals(SHAPE, source(kernel, launch))[0]


@pytest.mark.parametrize(
    ("launch", "line"),
    [
        ("k<<<n, 256>>>(x, y, n, m);", "+ __global__ void __launch_bounds__(256, 4) k("),
        (
            "k<<<n, dim3(32, 4)>>>(x, y, n, m); k<<<n, B>>>(x, y, n, m);",
            "+ __global__ void __launch_bounds__(192, 4) k(",
        ),
        ("dim3 b(8, 8, 2); k<<<n, b>>>(x, y, n, m);", "+ __global__ void __launch_bounds__(128, 4) k("),
    ],
)
def test_launch_bounds(launch: str, line: str) -> None:
    text = source(LINEAR, launch, "constexpr int B = 3 * 64;\n")
    assert changed_lines(BOUNDS, text, blocks="4")[1].startswith(line)


def test_launch_bounds_declines() -> None:
    assert "not a constant" in refusals(BOUNDS, source(LINEAR, "k<<<n, m>>>(x, y, n, m);"))[0]
    bound = source(LINEAR, "k<<<n, 32>>>(x, y, n, m);").replace("void k(", "void __launch_bounds__(32, 2) k(")
    assert "already" in refusals(BOUNDS, bound)[0]


def test_launch_bounds_that_name_no_blocks_get_some() -> None:
    text = source(LINEAR, "k<<<n, B>>>(x, y, n, m);", "constexpr int B = 64;\n")
    text = text.replace("void k(", "void __launch_bounds__(B) k(")
    assert changed_lines(BOUNDS, text, blocks="4")[1].startswith(
        "+ __global__ void __launch_bounds__(B, 4) k("
    )


@pytest.mark.parametrize(
    ("kernel", "lines"),
    [
        (
            INDEX + "if (i < n) y[i] = x[i]; // copy",
            [
                "+ for (long long item = (long long)blockIdx.x * blockDim.x + threadIdx.x; item < n; item += (long long)gridDim.x * blockDim.x) {",
                "+ int i = (int)item;",
                "+ if (i < n) y[i] = x[i]; // copy",
                "+ }",
            ],
        ),
        (
            "const float two = 2;\nsize_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n) return;\nif (x[i] < 0) { return; }\ny[i] = two;",
            [
                "+ for (long long item = (long long)blockIdx.x * blockDim.x + threadIdx.x; item < n; item += (long long)gridDim.x * blockDim.x) {",
                "+ size_t i = (size_t)item;",
                "+ if (i >= n) continue;",
                "+ if (x[i] < 0) { continue; }",
                "+ y[i] = two;",
                "+ }",
            ],
        ),
        (
            "int item = 1;\n" + INDEX + "if (i >= n) return;\nfor (int j = 0; j < item; ++j) y[i] += x[j];",
            [
                "+ for (long long item_2 = (long long)blockIdx.x * blockDim.x + threadIdx.x; item_2 < n; item_2 += (long long)gridDim.x * blockDim.x) {",
                "+ int i = (int)item_2;",
                "+ if (i >= n) continue;",
                "+ for (int j = 0; j < item; ++j) y[i] += x[j];",
                "+ }",
            ],
        ),
    ],
)
def test_grid_stride(kernel: str, lines: list[str]) -> None:
    text = source(kernel, "k<<<(n + 255) / 256, 256>>>(x, y, n, m);")
    added = [line for line in changed_lines(STRIDE, text, work="8") if line.startswith("+")]
    assert added == [*lines, "+ k<<<(n + 2047) / 2048, 256>>>(x, y, n, m);"]


@pytest.mark.parametrize(
    ("kernel", "launch", "reason"),
    [
        (LINEAR, "k<<<n / 256, 256>>>(x, y, n, m);", "rounded up"),
        (
            "float s = 0;\n" + INDEX + "if (i < n) { s += x[i]; y[i] = s; }",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "'s'",
        ),
        (INDEX + "if (i < n) { x += i; y[i] = *x; }", "k<<<(n + 255) / 256, 256>>>(x, y, n, m);", "'x'"),
        (
            INDEX + "if (i < n) { while (n) if (x[i]) return; }",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "inside a loop",
        ),
        (
            INDEX + "if (i < n) { __threadfence(); y[i] = 1; }",
            "k<<<(n + 255) / 256, 256>>>(x, y, n, m);",
            "__threadfence",
        ),
        (LINEAR, "k<<<dim3((n + 255) / 256, 2), 256>>>(x, y, n, m);", "more than one dimension"),
    ],
)
def test_grid_stride_declines(kernel: str, launch: str, reason: str) -> None:
    assert reason in refusals(STRIDE, source(kernel, launch))[0]
    assert reason in refusals(COARSEN, source(kernel, launch))[0]


@pytest.mark.parametrize(
    ("kernel", "lines"),
    [
        (
            INDEX + "if (i < n) y[i] = x[i]; // copy",
            [
                "+ #pragma unroll",
                "+ for (int part = 0; part < 4; ++part) {",
                "+ const long long item = ((long long)blockIdx.x * 4 + part) * blockDim.x + threadIdx.x;",
                "+ if (item >= n) break;",
                "+ int i = (int)item;",
                "+ if (i < n) y[i] = x[i]; // copy",
                "+ }",
            ],
        ),
        (
            "const float two = 2;\nsize_t i = blockIdx.x * 256 + threadIdx.x;\nif (i >= n + 0) return;\n"
            "if (x[i] < 0) { return; }\ny[i] = two;",
            [
                "+ #pragma unroll",
                "+ for (int part = 0; part < 4; ++part) {",
                "+ const long long item = ((long long)blockIdx.x * 4 + part) * blockDim.x + threadIdx.x;",
                "+ if (item >= (n + 0)) break;",
                "+ size_t i = (size_t)item;",
                "+ if (i >= n + 0) continue;",
                "+ if (x[i] < 0) { continue; }",
                "+ y[i] = two;",
                "+ }",
            ],
        ),
        (
            "int item = 1, part = 2;\n"
            + INDEX
            + "if (i >= n) return;\nfor (int j = 0; j < item; ++j) y[i] += part;",
            [
                "+ #pragma unroll",
                "+ for (int part_2 = 0; part_2 < 4; ++part_2) {",
                "+ const long long item_2 = ((long long)blockIdx.x * 4 + part_2) * blockDim.x + threadIdx.x;",
                "+ if (item_2 >= n) break;",
                "+ int i = (int)item_2;",
                "+ if (i >= n) continue;",
                "+ for (int j = 0; j < item; ++j) y[i] += part;",
                "+ }",
            ],
        ),
    ],
)
def test_thread_coarsen(kernel: str, lines: list[str]) -> None:
    text = source(kernel, "k<<<(n + 255) / 256, 256>>>(x, y, n, m);")
    added = [line for line in changed_lines(COARSEN, text, work="4") if line.startswith("+")]
    assert added == [*lines, "+ k<<<(n + 1023) / 1024, 256>>>(x, y, n, m);"]


STRIDED = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) "


def test_block_shape_of_a_grid_stride_loop() -> None:
    text = source(STRIDED + "{ float v = x[i]; y[i] = v; }", "k<<<100, 256>>>(x, y, n, m);")
    assert changed_lines(SHAPE, text, shape="128x1") == [
        "- k<<<100, 256>>>(x, y, n, m);",
        "+ k<<<100, 128>>>(x, y, n, m);",
    ]
    text = source(
        "const int step = blockDim.x * gridDim.x;\n"
        + STRIDED.replace("gridDim.x * blockDim.x", "step")
        + "y[i] = 1;",
        "dim3 b(64);\nk<<<100, b>>>(x, y, n, m);",
    )
    assert "+ dim3 b(128);" in changed_lines(SHAPE, text, shape="128x1")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        ("float s = 0;\n" + STRIDED + "s += x[i];\natomicAdd(y, s);", "not one grid-stride loop"),
        ("float s = 0;\n" + STRIDED + "{ s += x[i]; y[i] = s; }", "'s'"),
        (STRIDED + "y[i] = blockIdx.x;", "inside the loop"),
        (STRIDED.replace("gridDim.x *", "2 * gridDim.x *") + "y[i] = 1;", "step by the number"),
        ("int t = threadIdx.x;\n" + STRIDED + "y[i] = t;", "uses t inside the loop"),
    ],
)
def test_block_shape_declines_other_loops(kernel: str, reason: str) -> None:
    assert reason in refusals(SHAPE, source(kernel, "k<<<100, 256>>>(x, y, n, m);"))[0]


def test_block_shape_where_the_kernel_names_the_block_size() -> None:
    kernel = "size_t i = (size_t)blockIdx.x * T + threadIdx.x;\nif (i < n) y[i] = x[i];"
    text = source(kernel, "k<<<(n + T - 1) / T, T>>>(x, y, n, m);", "#define T 256\n")
    assert [line for line in changed_lines(SHAPE, text, shape="64x1") if line[0] == "+"] == [
        "+ size_t i = (unsigned long)blockIdx.x * blockDim.x + threadIdx.x;",
        "+ k<<<(n + 63) / 64, 64>>>(x, y, n, m);",
    ]
    kernel = "int c = blockIdx.x * 16 + threadIdx.x, r = 8 * blockIdx.y + threadIdx.y;\nif (c < n && r < m) y[c] = 1;"
    text = source(kernel, "k<<<dim3((n + 15) / 16, (m + 7) / 8), dim3(16, 8)>>>(x, y, n, m);")
    assert [line for line in changed_lines(SHAPE, text, shape="32x8") if line[0] == "+"] == [
        "+ int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;",
        "+ k<<<dim3((n + 31) / 32, (m + 7) / 8), dim3(32, 8)>>>(x, y, n, m);",
    ]
    half = source(
        "int i = blockIdx.x * 512 + threadIdx.x;\nif (i < n) y[i] = 1;",
        "k<<<(n + 511) / 512, 256>>>(x, y, n, m);",
    )
    assert "another block size" in refusals(SHAPE, half)[0]


def test_a_shape_that_another_launch_uses_is_written_into_the_launch() -> None:
    text = source(LINEAR, "dim3 t(256), g((n + 255) / 256);\nk<<<g, t>>>(x, y, n, m);\nother<<<g, t>>>(y);")
    assert changed_lines(SHAPE, text, shape="128x1") == [
        "- k<<<g, t>>>(x, y, n, m);",
        "+ k<<<(n + 127) / 128, 128>>>(x, y, n, m);",
    ]
