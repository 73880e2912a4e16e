"""Traps: what looks liftable and means something else must be refused, or kept exactly as it is."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.expression import Binary, Reduce, Select, walk
from tests.unit.algorithm.lifting_samples import INDEX, LAUNCH, axes, body, kernel, lifted, refusal, stores

UNSIGNED = """
__global__ void k(const float* a, float* c, unsigned n) {{ unsigned i = blockIdx.x * blockDim.x + threadIdx.x; {statements} }}
extern "C" void f(const float* a, float* c, unsigned n) {{ k<<<(n + 31) / 32, 32>>>(a, c, n); }}
"""


def refused(statements: str) -> str:
    return refusal(f"{kernel(statements)}\n{LAUNCH}")


def test_loads_mean_memory_at_entry() -> None:
    found = body("c[2 * i] = c[2 * i] + 1.f; c[2 * i + 1] = c[2 * i] * 2.f;")
    assert stores(found) == ["c[2*i] = c[2*i] + 1.f", "c[2*i + 1] = (c[2*i] + 1.f) * 2.f"]


def test_conditional_loads_stay_under_their_condition() -> None:
    found = body("float v = 0.f; if (i + m < n) v = a[i + m]; c[i] = v;").stores[0].value
    assert isinstance(found, Select)
    found = body("c[i] = i > 0 && a[i - 1] > 0.f ? a[i] : 0.f;").stores[0].value
    assert isinstance(found, Select)
    assert isinstance(found.condition, Binary)
    assert found.condition.op == "&&"


def test_a_comparison_is_not_a_template() -> None:
    found = body(
        "int x = i - 1, y = m; if (x < 0 || y < 0 || x >= n || y >= n) c[i] = 0.f; else c[i] = a[x];"
    )
    assert isinstance(found.stores[0].value, Select)


def test_division_truncates() -> None:
    negative = body("int d = i - m; c[i] = d / 3 + (2 * d + 1) / 2;")
    kept = {
        (node.op)
        for node in walk(negative.stores[0].value)
        if isinstance(node, Binary) and node.kind == "int"
    }
    assert kept == {"/"}
    exact = body("int d = i - m; c[i] = 6 * d / 3;")
    assert stores(exact) == ["c[i] = float(-2*m + 2*i)"]


def test_names_are_not_captured() -> None:
    source = """
__global__ void k(const float* in, float* out, int row, int i) {
    int n = blockIdx.x * 32 + threadIdx.x; if (n >= row) return;
    float s = 0; for (int out2 = 0; out2 < i; ++out2) { int row = out2 + 1; s += in[row * i + n]; }
    out[n] = s;
}
extern "C" void f(const float* in, float* out, int rows, int depth) { k<<<(rows + 31) / 32, 32>>>(in, out, rows, depth); }
"""
    found = lifted(source).algorithm
    assert axes(found) == ["n in 0..row"]
    assert stores(found) == ["out[n] = reduce[+; out2 in 0..i](in[i*out2 + i + n])"]


@pytest.mark.parametrize(
    ("grid", "upper"),
    [
        ("(n + 127) / 128", "n"),
        ("(n - 1) / 128 + 1", "n"),
        ("cdiv(n, 128)", "n"),
        ("(n + 128 - 1) >> 7", "n"),
        ("max(1, (n + 127) / 128)", "n"),
        ("n", "n"),
        ("n / 128", None),
        ("(n + 126) / 128", None),
        ("64", None),
        ("min((n + 127) / 128, 1024)", None),
    ],
)
def test_guards_bound_an_axis_only_where_the_grid_reaches(grid: str, upper: str | None) -> None:
    helper = "static inline int cdiv(int a, int b) { return (a + b - 1) / b; }\n"
    launch = LAUNCH.replace("(n + 127) / 128", grid)
    found = lifted(f"{helper}{kernel('c[i] = a[i];')}\n{launch}").algorithm
    if upper is not None:
        assert axes(found) == [f"i in 0..{upper}"]
        assert not found.stores[0].guard
    else:
        assert axes(found) != ["i in 0..n"]
        assert stores(found) == ["c[i] = a[i] if i < n"]


def test_a_grid_stride_loop_covers_its_range_with_any_grid() -> None:
    source = """
__global__ void k(const float* a, float* c, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) c[i] = a[i];
}
extern "C" void f(const float* a, float* c, long n) { k<<<min((n + 255) / 256, 1024L), 256>>>(a, c, n); }
"""
    assert axes(lifted(source).algorithm) == ["i in 0..n"]


def test_unsigned_bounds_that_wrap_stay_as_they_are() -> None:
    found = lifted(UNSIGNED.format(statements="if (i < n && i < n - 1u) c[i] = a[i + 1];")).algorithm
    assert axes(found) == ["i in 0..n"]
    (test,) = found.stores[0].guard
    assert isinstance(test, Binary)
    assert isinstance(test.right, Binary)
    assert test.right.kind == "unsigned"


def test_hashes_are_no_polynomials() -> None:
    found = lifted(
        UNSIGNED.format(statements="if (i < n) c[i] = (float)((i * 2654435761u ^ 7u) >> 8);")
    ).algorithm
    operations = [node.op for node in walk(found.stores[0].value) if isinstance(node, Binary)]
    assert operations == [">>", "^", "*"]
    assert all(node.kind == "unsigned" for node in walk(found.stores[0].value) if isinstance(node, Binary))


def test_negative_integers_compared_unsigned_are_converted() -> None:
    found = body("if ((unsigned)(i - 2) < (unsigned)m) c[i] = a[i - 2];")
    (test,) = found.stores[0].guard
    assert isinstance(test, Binary)
    assert test.left.type == "unsigned"
    assert isinstance(test.left, Binary)


def test_flat_indices_split_only_where_the_divisor_fits() -> None:
    split = lifted(
        f"{kernel('c[i] = a[i % m];').replace('i >= n', 'i >= n * m')}\n{LAUNCH.replace('n + 127', 'n * m + 127')}"
    )
    assert axes(split.algorithm) == ["row in 0..n", "col in 0..m"]
    flat = body("c[i] = a[i % m];")
    assert axes(flat) == ["i in 0..n"]
    assert stores(flat) == ["c[i] = a[i % m]"]


def test_literals_of_double_stay_double() -> None:
    assert stores(body("c[i] = 0.5 * a[i];")) == ["c[i] = float(0.5 * double(a[i]))"]
    assert stores(body("c[i] = exp(a[i]) + expf(b[i]);")) == ["c[i] = expf(a[i]) + expf(b[i])"]


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("c[i] = c[i + 1];", "race"),
        ("if (i > 0 && i < n - 1) c[i] = 0.5f * (c[i - 1] + c[i + 1]);", "race"),
        ("for (int j = 1; j < m; ++j) c[i * m + j] += c[i * m + j - 1];", "depend on one another"),
        ("for (int j = 0; j < m; ++j) for (int k = 0; k < m; ++k) c[i * m + k] += a[j];", "outer loop"),
        ("int j = 0; while (a[j] > 0.f) ++j; c[i] = j;", "loop"),
        ("for (int j = 0; j < m; ++j) { if (a[j] < 0.f) break; c[i * m + j] = 1.f; }", "break"),
        (
            "for (int j = 0; j < m; ++j) { if (a[j] < 0.f) return; c[i * m + j] = 1.f; }",
            "return inside a loop",
        ),
        ("do { c[i] = a[i]; } while (a[i] > 1.f);", "loop"),
        ("int j = 0; do { if (a[j] > 1.f) break; ++j; } while (j < m); c[i] = j;", "ends early, by break"),
        ("__shared__ float s[128]; s[threadIdx.x] = a[i]; c[i] = s[0];", "cooperative"),
        ("__syncthreads(); c[i] = a[i];", "cooperative"),
        ("c[i] = __shfl_down_sync(0xffffffff, a[i], 1);", "cooperative"),
        ("c[i] = atomicAdd(&c[0], 1.f);", "is used"),
        ('asm("nop;"); c[i] = a[i];', "assembly"),
        ('printf("%d", i); c[i] = a[i];', "printf"),
        ("c[i] = clock();", "clock"),
        ("c[i] = unknown(a[i]);", "unknown"),
        ("goto end; end: c[i] = a[i];", "goto"),
        ("c[0] = a[i];", "different values"),
        (
            "for (int j = 0; j < m; ++j) { c[i * m + j] = a[j]; c[i * m + j + 1] = b[j]; }",
            "store to one element",
        ),
        ("for (int j = 0; j < m; ++j) { c[i * m] = a[j]; c[i * m + j] = b[j]; }", "store to one element"),
        ("for (int j = 0; j < m; ++j) { c[i * m + j] = b[j]; c[i * m] = a[j]; }", "store to one element"),
        (
            "for (int j = 0; j < m; ++j) { c[i + j] = b[j]; atomicAdd(&c[i + j + 1], a[j]); }",
            "store to one element",
        ),
        ("for (int j = 0; j < m; ++j) c[i * m + j / 2] = a[j];", "store to one element"),
        ("for (int j = 0; j < m; ++j) c[i * m + (int)a[j]] = b[j];", "store to one element"),
        (
            "for (int j = 0; j < m; ++j) for (int k = 0; k < m; ++k) { c[i * m * m + j * m + k] = a[j];"
            " c[i * m * m + k * m + j] = b[j]; }",
            "store to one element",
        ),
        ("float v; c[i] = v;", "before it has a value"),
        ("float t[4]; t[m] = 1.f; c[i] = t[0];", "index that is not known"),
        ("c[i] = ((const int*)a)[i];", "read as int"),
        ("int* p = new int[4]; c[i] = p[0];", "understood"),
        ("for (float x = 0; x < 1.f; x += 0.1f) c[i] += x;", "loop"),
        ("int* q; c[i] = *q;", "value"),
        (";", "stores nothing"),
    ],
)
def test_must_be_refused(statements: str, words: str) -> None:
    assert words in refused(statements)


def test_recursion_is_refused() -> None:
    helper = "__device__ float again(float v, int d) { return d == 0 ? v : again(v, d - 1); }\n"
    assert "recursive" in refusal(f"{helper}{kernel('c[i] = again(a[i], m);')}\n{LAUNCH}")


def test_one_buffer_under_two_names_is_refused() -> None:
    launch = LAUNCH.replace("(a, b, c, n, m)", "(c, b, c, n, m)").replace(
        "void f(const float* a", "void f(float* a"
    )
    assert "one buffer" in refusal(f"{kernel('c[i] = a[i];')}\n{launch}")


def test_atomics_that_every_thread_repeats_are_refused() -> None:
    launch = LAUNCH.replace("128>>>", "dim3(128, 2)>>>")
    assert "repeats the same atomic" in refusal(f"{kernel('atomicAdd(c, a[i]);')}\n{launch}")


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("extern __shared__ float s[]; s[threadIdx.x] = a[i]; c[i] = s[0];", "cooperative"),
        (
            "extern __shared__ float s[]; extern __shared__ int t[]; s[threadIdx.x] = a[i]; __syncthreads(); c[i] = s[0];",
            "another array",
        ),
        (
            "extern __shared__ float s[]; int* t = (int*)s; t[threadIdx.x] = 1; __syncthreads(); c[i] = s[0];",
            "read as int",
        ),
        ("extern __shared__ float4 s[]; c[i] = a[i];", "not understood"),
    ],
)
def test_dynamic_shared_memory_that_is_not_one_array_is_refused(statements: str, words: str) -> None:
    launch = LAUNCH.replace("128>>>", "128, 512>>>")
    whole_blocks = kernel(statements).replace("if (i >= n) return;", "")
    assert words in refusal(f"{whole_blocks}\n{launch}")


def test_loops_that_only_some_threads_reach_are_not_shared() -> None:
    source = f"""
__global__ void k(const float* a, float* c, int n) {{ {INDEX}
    if (threadIdx.x < 7) for (int j = threadIdx.x; j < n; j += blockDim.x) c[j] = a[j]; }}
extern "C" void f(const float* a, float* c, int n) {{ k<<<1, 32>>>(a, c, n); }}
"""
    assert "only some threads" in refusal(source)


def test_parts_of_a_reduction_are_not_the_reduction() -> None:
    source = """
__global__ void k(const float* a, float* c, int n) {
    float s = 0; for (int j = threadIdx.x; j < n; j += blockDim.x) s += a[j];
    if (threadIdx.x == 0) c[blockIdx.x] = s;
}
extern "C" void f(const float* a, float* c, int n) { k<<<4, 32>>>(a, c, n); }
"""
    assert "part of a reduction" in refusal(source)


def test_shared_iterations_that_know_their_block_are_refused() -> None:
    source = """
__global__ void k(const float* a, float* c, int n) {
    for (int j = blockIdx.x * blockDim.x + threadIdx.x; j < n; j += blockDim.x * gridDim.x) atomicAdd(&c[blockIdx.x], a[j]);
}
extern "C" void f(const float* a, float* c, int n) { k<<<4, 32>>>(a, c, n); }
"""
    assert "in another way" in refusal(source)


def test_cells_that_no_iteration_may_store_to_are_guarded() -> None:
    found = body("for (int k = 0; k < m; ++k) if (i + k < m) c[i] += a[k];")
    (test,) = found.stores[0].guard
    assert isinstance(test, Reduce)
    assert test.op == "||"
    assert not body("c[i] = 0.f; for (int k = 0; k < m; ++k) if (i + k < m) c[i] += a[k];").stores[0].guard


def test_parts_that_only_some_threads_add_are_refused() -> None:
    source = """
__global__ void k(const float* a, float* c, int n) {
    float s = 0; int t = blockIdx.x * 32 + threadIdx.x;
    for (int j = t; j < n; j += gridDim.x * 32) s += a[j];
    if (t < 7) atomicAdd(c, s);
}
extern "C" void f(const float* a, float* c, int n) { k<<<4, 32>>>(a, c, n); }
"""
    assert "only some threads" in refusal(source)
    start = source.replace("if (t < 7) ", "").replace("float s = 0", "float s = a[0]")
    assert "starts with something else" in refusal(start)


def test_variables_that_a_call_may_change_are_not_known() -> None:
    source = """
void widen(int& blocks);
__global__ void k(const float* a, float* c, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) c[i] = a[i]; }
extern "C" void f(const float* a, float* c, int n) { int blocks = (n + 31) / 32; widen(blocks); k<<<blocks, 32>>>(a, c, n); }
"""
    found = lifted(source)
    assert found.extra == ("blocks",)
    assert stores(found.algorithm) == ["c[i] = a[i] if i < n"]


def test_volatile_buffers_are_refused() -> None:
    assert "volatile" in refusal(
        f"{kernel('c[i] = a[i];').replace('float* c', 'volatile float* c')}\n{LAUNCH}"
    )


@pytest.mark.parametrize(
    ("statements", "count"),
    [
        ("for (int j = 1; j < m; ++j) { c[i * m + j] = a[j]; c[i * m + j - 1] = b[j]; }", 2),
        ("for (int j = 0; j < m; ++j) { c[2 * (i * m + j)] = a[j]; c[2 * (i * m + j) + 1] = b[j]; }", 2),
        ("for (int j = 0; j < m; ++j) { c[2 * i * m + j] = a[j]; c[2 * i * m + m + j] = b[j]; }", 2),
        ("for (int j = 0; j < m; ++j) { c[i * m + j] = a[j]; if (b[j] > 0.f) c[i * m + j] = b[j]; }", 2),
        ("for (int j = 0; j < m; ++j) { c[i] = a[j]; c[i] += b[j]; }", 1),
    ],
)
def test_stores_of_a_loop_in_their_order_are_lifted(statements: str, count: int) -> None:
    assert len(body(statements).stores) == count
