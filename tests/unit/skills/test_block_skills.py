"""Skills that let the threads of a warp or block work together: what they write, and what they decline."""

from __future__ import annotations

import pytest

from kernelskill.schema.task import Promise
from tests.skills.applying import changed_lines, refusals

ATOMIC, BINS, WARP = (
    "parallelism/two_level_atomic",
    "parallelism/privatize_histogram",
    "parallelism/warp_aggregate",
)
ROWS, BLOCK_ROWS, SCAN = "parallelism/rows_per_warp", "parallelism/rows_per_block", "parallelism/block_scan"
TREE, SPLIT, WAVES = (
    "parallelism/warp_shuffle_reduction",
    "parallelism/split_reduction",
    "parallelism/whole_waves",
)
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
LAUNCH = "k<<<(n + 63) / 64, 64>>>(x, y, z, n, m);"
PARAMETERS = "const float* x, float* y, int* z, int n, int m"


def source(body: str, launch: str = LAUNCH, head: str = "", parameters: str = PARAMETERS) -> str:
    return (
        f"{head}\n__global__ void k({parameters}) {{\n{body}\n}}\n"
        f'extern "C" void f({parameters}) {{\n{launch}\n}}\n'
    )


def added(skill: str, text: str, *promises: Promise, **parameters: str) -> str:
    lines = changed_lines(skill, text, *promises, **parameters)
    return "\n".join(line[2:] for line in lines if line.startswith("+"))


def reason(skill: str, text: str, *promises: Promise) -> str:
    return refusals(skill, text, *promises)[0]


def test_two_level_atomic_turns_returns_into_guards() -> None:
    made = added(ATOMIC, source(INDEX + "if (i >= n) return;\natomicAdd(y, x[i]);"), work="1")
    assert "if (i < n) {" in made
    assert "y_sum += x[i];" in made
    assert "y_sum = block_sum(y_sum, threadIdx.x, blockDim.x);" in made
    assert "if (threadIdx.x == 0 && y_sum != 0.0f)\natomicAdd(y, y_sum);" in made


def test_two_level_atomic_keeps_a_float_test_as_it_is() -> None:
    made = added(
        ATOMIC, source(INDEX + "if (i >= n) return;\nif (x[i] > 1) return;\natomicMax(z, i);"), work="1"
    )
    assert "if (!(x[i] > 1)) {" in made
    assert "z_max = max(z_max, i);" in made


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if (i < n) y[i] = x[i];", "no atomics"),
        ("if (i < n) atomicAdd(&y[i], x[i]);", "different elements"),
        ("if (i < n) atomicAdd(&y[z[0]], x[i]);", "depends on data"),
        ("if (i < n) z[i] = atomicAdd(z, 1);", "uses what atomicAdd returns"),
        ("if (i < n) { atomicAdd(y, x[i]); x += y[0] > 3; }", "uses y[0]"),
        ("if (i < n) { atomicAdd(y, x[i]); z[i] = 0; __threadfence(); }", "__threadfence"),
        ("for (int j = 0; j < m; ++j) if (i < n) atomicAdd(y, x[j]);", "may see in x[j]"),
        ("for (int j = 0; j < m; ++j) if (i < n) atomicAdd(&y[j], 1.0f);", "changes which element"),
        ("if (threadIdx.x == 0) atomicAdd(y, x[i]);", "one thread of many"),
        ("if (i < n) { atomicAdd(z, 1); atomicMax(z + m, i); }", "may update one element"),
        ("if (i < n) atomicCAS(z, 1, 2);", "atomicCAS"),
        ("if (i < n) { const int b = m; if (b) atomicAdd(&y[b], 1.0f); }", "not known to all threads"),
        ("for (;;) { if (i >= n) return; atomicAdd(y, 1.0f); }", "midst of the kernel"),
        ("if (i >= n) return; __syncthreads(); atomicAdd(y, 1.0f);", "__syncthreads"),
        ("auto g = [&] { atomicAdd(y, 1.0f); }; if (i < n) g();", "calls 'g'"),
        ("atomicAdd(y, x[i]);\n#if 1\nif (i) return;\n#endif", "preprocessor"),
    ],
)
def test_two_level_atomic_declines(body: str, why: str) -> None:
    assert why in reason(ATOMIC, source(INDEX + body))


@pytest.mark.parametrize(
    "launch",
    ["k<<<n, m>>>(x, y, z, n, m);", "k<<<n, 48>>>(x, y, z, n, m);", "k<<<n, dim3(8, 5)>>>(x, y, z, n, m);"],
)
def test_two_level_atomic_needs_whole_warps(launch: str) -> None:
    body = INDEX + "if (i < n) { if (x[i] > 0) return; atomicAdd(y, 1.0f); }"
    assert any(word in reason(ATOMIC, source(body, launch)) for word in ("constant", "whole warps"))


@pytest.mark.parametrize(
    ("index", "size", "is_tested"),
    [
        ("b[i]", 256, False),
        ("b[i] >> 4", 16, False),
        ("(int)b[i] + 3", 259, False),
        ("z[i] & 31", 32, False),
        ("(unsigned)z[i] % 100", 100, False),
        ("z[i] % 100", 100, True),
        ("min(z[i], 40)", 41, True),
        ("max(0, min(z[i], 40))", 41, False),
    ],
)
def test_privatize_histogram_bounds(index: str, size: int, is_tested: bool) -> None:
    parameters = "const unsigned char* b, const int* z, int* y, int n"
    launch = "k<<<(n + 63) / 64, 64>>>(b, z, y, n);"
    text = source(INDEX + f"if (i < n) atomicAdd(&y[{index}], 1);", launch, parameters=parameters)
    made = added(BINS, text, bins=str(size))
    assert f"constexpr unsigned y_size = {size};" in made
    assert ("atomicAdd(&y[bin], 1);" in made) == is_tested


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if (i < n) atomicAdd(&z[(int)x[i]], 1);", "nothing bounds the index"),
        ("if (i < n) atomicAdd(&z[i & 15], 1);", "does not depend on data"),
        ("if (i < n) { atomicAdd(&z[(int)x[i] & 15], 1); y[i] = z[0]; }", "uses z[0]"),
        ("if (i < n) y[i] = atomicAdd(&z[(int)x[i] & 15], 1);", "uses what atomicAdd returns"),
        ("if (i < n) { atomicAdd(&z[(int)x[i] & 15], 1); atomicMax(&z[(int)x[i] & 7], 1); }", "several ways"),
        ("if (i < n) atomicAdd(&z[(int)x[i] & 65535], 1);", "don't fit"),
        ("__shared__ int s; s = 0; if (i < n) atomicAdd(&z[(int)x[i] & 15], s);", "__shared__"),
        ("if (i < n) { int* t = z + i; atomicAdd(&t[(int)x[i] & 15], 1); }", "different elements"),
    ],
)
def test_privatize_histogram_declines(body: str, why: str) -> None:
    assert why in reason(BINS, source(INDEX + body))


def test_warp_aggregate_counts() -> None:
    made = added(WARP, source(INDEX + "if (i < n && x[i] > 0) { int p = atomicAdd(z, 2); y[p] = x[i]; }"))
    assert "int p = warp_count(z, 2);" in made
    assert "atomicAdd(counter, amount * __popc(active));" in made


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("if (i < n) y[i] = atomicAdd(z, i);", "different amounts"),
        ("if (i < n) y[i] = atomicAdd(&z[i], 1);", "different elements"),
        ("if (i < n) y[i] = atomicMax(z, 1);", "counts nothing"),
        ("if (i < n) atomicAdd(&z[i], 1);", "does not depend on data"),
        ("if (i < n) { atomicAdd(&z[(int)x[i]], 1); y[i] = z[i]; }", "uses z[i]"),
    ],
)
def test_warp_aggregate_declines(body: str, why: str) -> None:
    assert why in reason(WARP, source(INDEX + body))


@pytest.mark.parametrize(
    ("update", "combined"),
    [
        ("s += x[i * m + j];", "s += __shfl_xor_sync"),
        ("s = x[j] + s;", "s += __shfl_xor_sync"),
        ("s = s - x[j];", "s += __shfl_xor_sync"),
        ("s *= x[j];", "s *= __shfl_xor_sync"),
        ("s = fmaxf(s, x[j]);", "s = fmaxf(s, __shfl_xor_sync"),
        ("if (x[j] > s) s = x[j];", "if (other > s) s = other;"),
        ("s = s < x[j] ? s : x[j];", "s = s < other ? s : other;"),
        ("s = BIG(s, x[j]);", "s = BIG(s, other);"),
        ("if (x[j] > 1) s++;", "s += __shfl_xor_sync"),
        ("for (int c = 0; c < 3; ++c) s += x[j + c];", "s += __shfl_xor_sync"),
    ],
)
def test_rows_per_warp_combines(update: str, combined: str) -> None:
    body = INDEX + f"if (i < n) {{ float s = z[i]; for (int j = 0; j < m; ++j) {{ {update} }} y[i] = s; }}"
    made = added(ROWS, source(body, head="#define BIG(a, b) ((a) > (b) ? (a) : (b))"), lanes="32")
    assert combined in made
    assert "if (lane == 0) y[i] = s;" in made
    assert "int i = blockIdx.x * (blockDim.x / row_lanes) + threadIdx.x / row_lanes;" in made
    needs_neutral = "+=" in combined or "*=" in combined
    assert ("if (lane != 0)" in made) == needs_neutral


def test_rows_per_warp_masks_its_own_lanes() -> None:
    body = INDEX + "if (i < n) { float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s; }"
    made = added(ROWS, source(body), lanes="8")
    assert "const unsigned row_mask = 0xffu << (threadIdx.x % 32 - lane);" in made
    assert "__shfl_xor_sync(row_mask, s, step)" in made


def test_rows_per_block_launches_a_block_a_row() -> None:
    body = (
        INDEX
        + "if (i >= n) return;\nfloat s = 0;\nfor (int j = z[i]; j < z[i + 1]; ++j) s += x[j];\ny[i] = s;"
    )
    made = added(BLOCK_ROWS, source(body), threads="128")
    assert "k<<<n, 128>>>(x, y, z, n, m);" in made
    assert "for (int j = z[i] + lane; j < z[i + 1]; j += row_lanes) s += x[j];" in made


def test_rows_test_for_overlap_where_nothing_is_promised() -> None:
    body = INDEX + "if (i < n) for (int j = 0; j < m; ++j) y[i * m + j] = x[i * m + j] * x[j];"
    made = added(ROWS, source(body), lanes="32")
    assert "const int lanes = is_apart ? row_lanes : 1;" in made
    assert "is_apart" not in added(ROWS, source(body), Promise.NO_ALIAS, lanes="32")


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (
            "float s = 0; for (int j = 0; j < m; ++j) s = s * 0.5f + x[j]; y[i] = s;",
            "needs what the last one left",
        ),
        ("float s = 0; for (int j = 0; j < m; ++j) { s += x[j]; if (s > 3) s = 0; } y[i] = s;", "needs what"),
        ("int s = 0; for (int j = 0; j < m; ++j) s += x[j] * 0.5f; z[i] = s;", "needs what"),
        (
            "float s = 0; for (int j = 0; j < m; ++j) { if (x[j] < 0) break; s += x[j]; } y[i] = s;",
            "end early",
        ),
        ("for (int j = 0; j < m; ++j) y[i] += x[j];", "several turns"),
        ("for (int j = 0; j < m; ++j) y[z[j]] = x[j];", "several turns"),
        ("for (int j = 0; j < m; ++j) y[j / 2] = x[j];", "several turns"),
        ("for (int j = 0; j < m; ++j) y[i * m + j + 1] = y[i * m + j];", "another turn"),
        ("const float* p = x; float s = 0; for (int j = 0; j < m; ++j) s += *p++; y[i] = s;", "needs what"),
        ("float s = 0; for (int j = 1; j < m; j *= 2) s += x[j]; y[i] = s;", "can't be told"),
        ("float s = 0; for (int j = m; j != 0; j -= 3) s += x[j]; y[i] = s;", "can't be told"),
        ("float s = 0; for (unsigned j = m; j > 0; --j) s += x[j]; y[i] = s;", "can't be told"),
        ("float s = 0; int j = 0; while (j < m) { s += x[j]; ++j; } y[i] = s;", "does not count"),
        ("float s = 0; int j; for (j = 0; j < m; ++j) s += x[j]; y[i] = s + j;", "used outside the loop"),
        ("float s = 0; for (int j = 0; j < m; ++j) { s += x[j]; m -= x[j] > 3; } y[i] = s;", "may change"),
        ("float s[4]; for (int j = 0; j < m; ++j) s[j & 3] = x[j]; y[i] = s[0];", "all turns share"),
        ("static float s; for (int j = 0; j < m; ++j) y[i * m + j] = x[j];", "static"),
        ("total += 1; float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s;", "all threads share"),
        (
            "float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s + threadIdx.x;",
            "more than the global index",
        ),
        (
            "float s = 0; for (int j = 0; j < m; ++j) s += x[j]; z[0] = m, y[i] = s;",
            "changes memory and more",
        ),
        ("float s = 0; for (int j = 0; j < m; ++j) s += touch(z, j); y[i] = s;", "'touch'"),
        (
            "float s = 0; for (int j = 0; j < m; ++j) s += x[j]; for (int j = 1; j < m; ++j) y[j] = y[j - 1];",
            "another",
        ),
        ("switch (m) { case 1: y[i] = 1; } for (int j = 0; j < m; ++j) y[i * m + j] = x[j];", "switch"),
        ("y[i] = x[i];", "no loop"),
    ],
)
def test_rows_decline(work: str, why: str) -> None:
    head = "__device__ int total;\n__device__ float touch(int* z, int j) { return z[j]++; }"
    text = source(INDEX + f"if (i < n) {{ {work} }}", head=head)
    assert why in reason(ROWS, text, Promise.NO_ALIAS)
    assert why in reason(BLOCK_ROWS, text, Promise.NO_ALIAS)


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("k<<<n / 64, 64>>>(x, y, z, n, m);", "rounded up"),
        ("k<<<(n + 63) / 64, dim3(64, 2)>>>(x, y, z, n, m);", "more than one dimension"),
        ("k<<<(m + 63) / 64, 64>>>(x, y, z, n, m);", "rounded up"),
        ("k<<<(n + m) / m, m>>>(x, y, z, n, m);", "not a constant"),
        (
            "void (*g)(const float*, float*, int*, int, int) = k;\n" + LAUNCH,
            "outside its definition and launches",
        ),
    ],
)
def test_rows_decline_launches(launch: str, why: str) -> None:
    body = INDEX + "if (i < n) { float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s; }"
    assert why in reason(ROWS, source(body, launch))


def test_block_scan_runs_the_body_as_written() -> None:
    body = "int sum = 0;\nfor (int j = 0; j < n; ++j) { z[j] = sum; sum += z[j + n]; }\nz[n] = sum;"
    assert "another turn" in reason(SCAN, source(body, "k<<<1, 1>>>(x, y, z, n, m);"))
    body = "int sum = 0;\nfor (int j = 0; j < n; ++j) { int v = z[j]; z[j] = sum; sum += v; }\nz[n] = sum;"
    made = added(SCAN, source(body, "k<<<1, 1>>>(x, y, z, n, m);"), threads="256", turns="1")
    assert "const int amount = j < n ? z[j] : 0;" in made
    assert "int sum = before;" in made
    assert "sum += total;" in made
    assert "k<<<1, 256>>>(x, y, z, n, m);" in made


def test_block_scan_takes_places() -> None:
    loop = "int at = i * m;\nfor (int j = 0; j < m; ++j) if (x[i * m + j] > 0) y[at++] = x[i * m + j];"
    text = source(INDEX + f"if (i < n) {{\n{loop}\n}}", "k<<<(n + 31) / 32, 32>>>(x, y, z, n, m);")
    made = added(SCAN, text, threads="32", turns="1")
    assert "j < m && (x[i * m + j] > 0) ? 1 : 0;" in made
    assert "__ballot_sync" in made
    assert "int at = before;" in made
    assert "if ((size_t)(y) != (size_t)(x))" in made
    promised = added(SCAN, text, Promise.NO_ALIAS, threads="32", turns="1")
    assert "size_t" not in promised


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        ("for (int j = 0; j < n; ++j) { if (x[j] > 0) sum += 1; z[sum] = j; }", "several turns"),
        ("for (int j = 0; j < n; ++j) { if (x[j] > 0) sum += 1; else z[sum] = j; }", "several turns"),
        ("for (int j = 0; j < n; ++j) { sum += x[j] > 0; z[sum] = j; }", "several turns"),
        (
            "for (int j = 0; j < n; ++j) if (x[j] > 0) { z[sum] = j; z[sum + 1] = j; sum += 2; }",
            "another turn",
        ),
        ("for (int j = 0; j < n; ++j) if (x[j] > 0) { z[sum] = j; ++sum; z[sum] = j; }", "another turn"),
        (
            "for (int j = 0; j < n; ++j) if (sum < m && x[j] > 0) z[sum++] = j;",
            "memory and more",
        ),
        (
            "for (int j = 0; j < n; ++j) if (x[j] > 0 && sum++ < m) z[j] = sum;",
            "needs what the last one left",
        ),
        ("for (int j = 0; j < n; ++j) { sum += sum > 3; z[j] = sum; }", "needs what the last one left"),
        ("for (int j = 0; j < n; j += 2) { sum += j; z[j] = sum; }", "needs what the last one left"),
        (
            "for (int j = 0; j < n; ++j) { sum += j; if (sum > 9) continue; z[j] = sum; }",
            "needs what the last one left",
        ),
        ("for (int j = 0, e = n; j < e; ++j) { sum += j; z[j] = sum; }", "the end of the loop"),
        (
            "for (int j = 0; j < n; ++j) { sum += j; other += sum; z[j] = sum + other; }",
            "needs what the last one left",
        ),
        ("for (int j = 0; j < n; ++j) { sum += z[j]; z[sum] = 1; }", "several turns"),
        ("for (int j = 0; j < n; ++j) sum += z[j];", "no running sum"),
    ],
)
def test_block_scan_declines(loop: str, why: str) -> None:
    body = f"int sum = 0, other = 0;\n{loop}\ny[0] = sum;"
    assert why in reason(SCAN, source(body, "k<<<1, 1>>>(x, y, z, n, m);"), Promise.NO_ALIAS)


TREE_HEAD = "__shared__ float s[64];\nint t = threadIdx.x;\ns[t] = x[t];\n__syncthreads();\n"
HALVING = "for (int h = 32; h > 0; h /= 2) { if (t < h) s[t] += s[t + h]; __syncthreads(); }\n"


def test_shuffles_replace_a_tree() -> None:
    made = added(TREE, source(TREE_HEAD + HALVING + "if (t == 0) y[blockIdx.x] = s[0];"))
    assert "const float s_total = block_sum(s[t]);" in made


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (TREE_HEAD + HALVING + "y[t] = s[t];", "of which the tree has made something"),
        (TREE_HEAD + HALVING.replace("h = 32", "h = 16") + "y[t] = s[0];", "does not combine all threads"),
        (TREE_HEAD + HALVING.replace("h > 0", "h > 1") + "y[t] = s[0];", "does not combine all threads"),
        (TREE_HEAD + HALVING.replace("t < h", "t <= h") + "y[t] = s[0];", "does not combine all threads"),
        (TREE_HEAD + HALVING.replace("s[t + h]", "s[t + h] * 2") + "y[t] = s[0];", "no step of a tree"),
        (TREE_HEAD + HALVING.replace("s[t] +=", "s[t + 1] +=") + "y[t] = s[0];", "no step of a tree"),
        (TREE_HEAD + HALVING.replace("__syncthreads();", "__syncthreads(); y[t] = s[0];"), "no tree"),
        (TREE_HEAD + "y[t] = s[0];", "no loop of it has a barrier"),
    ],
)
def test_shuffles_decline(body: str, why: str) -> None:
    assert why in reason(TREE, source(body))
    assert "power of two" in reason(TREE, source(TREE_HEAD + HALVING, "k<<<n, 96>>>(x, y, z, n, m);"))


def test_split_reduction_adds_a_kernel() -> None:
    body = (
        INDEX
        + "if (i >= n) return;\nfloat s = 2;\nfor (int j = 0; j < m; ++j) s += x[j * n + i];\ny[i] = s / m;"
    )
    made = added(SPLIT, source(body, "k<<<(n + 63) / 64, 64, 0, 0>>>(x, y, z, n, m);"), parts="16")
    assert "__global__ void k_parts(const float* x, float* y, int* z, int n, int m, float* partial) {" in made
    assert "k_parts<<<dim3((n + 63) / 64, parts), 64, 0, 0>>>(x, y, z, n, m, partial);" in made
    assert "s += partial[(size_t)part * n + i];" in made


@pytest.mark.parametrize(
    ("work", "why"),
    [
        ("y[i] = 0; float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s;", "before its loop"),
        ("float s = 0; for (int j = 0; j < 40; ++j) s += x[j]; y[i] = s;", "only 40 turns"),
        (
            "if (m) { float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s; }",
            "inside another statement",
        ),
        ("for (int j = 0; j < m; ++j) y[i * m + j] = x[j];", "stores something"),
        ("float s = 0; for (int j = 0; j < m; ++j) s += x[j]; y[i] = s * blockIdx.y;", "second dimension"),
    ],
)
def test_split_reduction_declines(work: str, why: str) -> None:
    assert why in reason(SPLIT, source(INDEX + f"if (i < n) {{ {work} }}"), Promise.NO_ALIAS)


STRIDED = (
    "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i] + m;"
)


def test_whole_waves() -> None:
    made = added(WAVES, source(STRIDED, "k<<<99, 64>>>(x, y, z, n, m);"), Promise.NO_ALIAS, waves="2")
    assert "cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, k, 64, 0);" in made
    assert "k<<<(unsigned)wave, 64>>>(x, y, z, n, m);" in made


@pytest.mark.parametrize(
    ("body", "launch", "why"),
    [
        (STRIDED, "k<<<99, 64>>>(x, y, z, n, m);", "another turn"),
        (INDEX + "if (i < n) y[i] = 1;", LAUNCH, "grid-stride"),
        (STRIDED.replace("x[i] + m", "blockIdx.x"), "k<<<99, 64>>>(x, y, z, n, m);", "inside the loop"),
        (STRIDED.replace("y[i]", "y[i / 2]"), "k<<<99, 64>>>(x, y, z, n, m);", "another turn"),
    ],
)
def test_whole_waves_declines(body: str, launch: str, why: str) -> None:
    assert why in reason(WAVES, source(body, launch))
