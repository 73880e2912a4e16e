"""Lifting of single kernels: what comes out, in the user's names."""

from __future__ import annotations

import pytest

from kernelskill.algorithm.expression import Fold, Reduce, walk
from kernelskill.algorithm.lifting import lift
from kernelskill.algorithm.model import CannotLift
from kernelskill.source.unit import SourceUnit
from tests.unit.algorithm.lifting_samples import INDEX, LAUNCH, axes, body, kernel, lifted, stores

MATMUL = """
__global__ void mm(const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
extern "C" int f(const float* x, const float* y, float* z, int m, int n, int k, cudaStream_t s) {
    if (m <= 0) return 0;
    dim3 block(16, 16), grid;
    grid.x = (n + block.x - 1) / block.x;
    grid.y = (m + block.y - 1) / block.y;
    mm<<<grid, block, 0, s>>>(x, y, z, m, n, k);
    return (int)cudaGetLastError();
}
"""


def test_a_matrix_product() -> None:
    found = lifted(MATMUL)
    assert axes(found.algorithm) == ["row in 0..M", "col in 0..N"]
    assert stores(found.algorithm) == ["C[N*row + col] = reduce[+; k in 0..K](A[K*row + k] * B[N*k + col])"]
    assert found.arguments == (("A", "x"), ("B", "y"), ("C", "z"), ("M", "m"), ("N", "n"), ("K", "k"))
    assert [axis.binding.source for axis in found.algorithm.axes if axis.binding] == ["global", "global"]
    assert not found.extra


def test_two_spellings_are_one_algorithm() -> None:
    other = MATMUL.replace("for (int k = 0; k < K; ++k) sum +=", "int k = 0; while (k < K) { sum = sum +")
    other = other.replace("B[k * N + col];", "B[col + N * k]; k += 1; }").replace(
        "row >= M || col >= N", "!(col < N && row < M)"
    )
    assert lifted(other).algorithm.stores == lifted(MATMUL).algorithm.stores


def test_sums_keep_their_association() -> None:
    found = body("float s = 0; for (int k = 0; k < m; k += 2) { s += a[k]; s += a[k + 1]; } c[i] = s;")
    assert isinstance(found.stores[0].value, Fold)
    nested = body(
        "float s = 0; for (int j = 0; j < m; ++j) for (int k = 0; k < 3; ++k) s += a[j * 3 + k]; c[i] = s;"
    )
    (reduction,) = [node for node in walk(nested.stores[0].value) if isinstance(node, Reduce)]
    assert [loop.name for loop in reduction.loops] == ["j", "k"]
    inner = body(
        "float s = 0; for (int j = 0; j < m; ++j) { float t = 0; for (int k = 0; k < m; ++k) t += a[k]; s += t; } c[i] = s;"
    )
    assert len([node for node in walk(inner.stores[0].value) if isinstance(node, Reduce)]) == 2


def test_starts_are_kept() -> None:
    assert stores(body("float s = b[i]; for (int k = 0; k < m; ++k) s += a[k]; c[i] = s;")) == [
        "c[i] = b[i] + reduce[+; k in 0..m](a[k])"
    ]


@pytest.mark.parametrize(
    ("step", "op"),
    [
        ("s = fmaxf(s, a[k]);", "fmax"),
        ("s = min(a[k], s);", "fmin"),
        ("if (a[k] > s) s = a[k];", "max"),
        ("s = s > a[k] ? a[k] : s;", "min"),
        ("s *= a[k];", "*"),
        ("s -= a[k];", "+"),
        ("s = fmaf(a[k], b[k], s);", "+"),
        ("if (a[k] > 0.5f) s += a[k];", "+"),
    ],
)
def test_reductions(step: str, op: str) -> None:
    found = body(f"float s = 0.0f; for (int k = 0; k < m; ++k) {{ {step} }} c[i] = s;").stores[0].value
    assert isinstance(found, Reduce)
    assert found.op == op


def test_maxima_that_differ_on_nan_are_not_reductions() -> None:
    found = body("float s = a[0]; for (int k = 1; k < m; ++k) s = s > a[k] ? s : a[k]; c[i] = s;")
    assert isinstance(found.stores[0].value, Fold)


def test_masked_sums_keep_signed_zeros() -> None:
    from_zero = body("float s = 0; for (int k = 0; k < m; ++k) if (b[k] > 0.f) s += a[k]; c[i] = s;")
    assert ": 0.0f)" in stores(from_zero)[0]
    from_memory = body("float s = b[i]; for (int k = 0; k < m; ++k) if (b[k] > 0.f) s += a[k]; c[i] = s;")
    assert ": -0.0f)" in stores(from_memory)[0]


def test_recurrences_become_folds() -> None:
    found = body(
        "float top = a[i * m]; int where = 0;"
        "for (int j = 1; j < m; ++j) if (a[i * m + j] > top) { top = a[i * m + j]; where = j; } c[i] = where;"
    )
    (fold,) = [node for node in walk(found.stores[0].value) if isinstance(node, Fold)]
    assert [state.name for state in fold.states] == ["top", "where"]
    assert fold.index == 1


def test_accumulation_in_memory_is_a_reduction() -> None:
    found = body("c[i] = 0.f; for (int k = 0; k < m; ++k) c[i] += a[k * n + i]; c[i] /= m;")
    assert stores(found) == ["c[i] = reduce[+; k in 0..m](a[k*n + i]) / float(m)"]
    assert any("accumulated in a register" in note for note in found.notes)


def test_stores_are_read_back() -> None:
    found = body(
        "for (int j = 0; j < m; ++j) c[i * m + j] = a[j] * 2.f; for (int j = 0; j < m; ++j) c[i * m + j] += b[j];"
    )
    assert stores(found) == ["c[i*m + j] = a[j] * 2.f + b[j] for j in 0..m"]


def test_prefix_sums_are_stores_of_reductions() -> None:
    found = body("float s = 0; for (int j = 0; j < m; ++j) { s += a[i * m + j]; c[i * m + j] = s; }")
    assert stores(found) == ["c[i*m + j] = reduce[+; j2 in 0..1 + j](a[i*m + j2]) for j in 0..m"]


def test_walking_pointers_have_closed_forms() -> None:
    found = body(
        "const float* p = a + i; float s = 0; for (int k = m; k > 0; k--, p += n) s += *p; c[i] = s;"
    )
    assert stores(found) == ["c[i] = reduce[+; k_step in 0..m](a[k_step*n + i])"]


def test_steps_are_normalised() -> None:
    found = body("float s = 0; for (int k = 3; k < m; k += 4) s += a[k]; c[i] = s;")
    assert stores(found) == ["c[i] = reduce[+; k in 0..m / 4](a[4*k + 3])"]


def test_branches_that_store_to_one_cell_are_one_store() -> None:
    assert stores(body("if (i > 0) c[i] = a[i - 1]; else c[i] = b[i];")) == [
        "c[i] = i > 0 ? a[-1 + i] : b[i]"
    ]


def test_stores_of_one_branch_keep_their_guard() -> None:
    assert stores(body("if (a[i] > 0.f) c[i] = a[i];")) == ["c[i] = a[i] if a[i] > 0.f"]


def test_a_size_that_only_the_host_knows_becomes_a_parameter() -> None:
    source = """
__global__ void k(const float* a, float* c, int d) { for (int j = threadIdx.x; j < d; j += blockDim.x) c[blockIdx.x * d + j] = a[j]; }
extern "C" void f(const float* a, float* c, int rows, int d) { k<<<rows, 256>>>(a, c, d); }
"""
    found = lifted(source)
    assert axes(found.algorithm) == ["row in 0..rows", "j in 0..d"]
    assert found.extra == ("rows",)
    assert found.arguments[-1] == ("rows", "rows")
    assert [axis.binding.source for axis in found.algorithm.axes if axis.binding] == ["block", "thread"]


def test_equal_host_values_are_one_size() -> None:
    source = """
__global__ void k(float* c, int rows, int cols) { int i = blockIdx.x * 32 + threadIdx.x; if (i < cols) c[i * rows] = 1.f; }
extern "C" void f(float* c, int n) { k<<<(n + 31) / 32, 32>>>(c, n, n); }
"""
    assert axes(lifted(source).algorithm) == ["i in 0..rows"]


def test_a_launch_in_a_host_loop() -> None:
    source = """
__global__ void k(const float* a, float* c, int n, int half) { int i = blockIdx.x * 64 + threadIdx.x; if (i < half) c[i] = a[i] + a[i + half]; }
template <typename T> T ceil_div(T a, T b) { return (a + b - 1) / b; }
extern "C" void f(const float* a, float* c, int n) {
    int half = n;
    while (half > 1) {
        half /= 2;
        const int blocks = ceil_div(half, 64);
        k<<<blocks, 64>>>(a, c, n, half);
    }
}
"""
    found = lifted(source)
    assert axes(found.algorithm) == ["i in 0..half"]
    assert not found.extra


def test_templates_macros_and_typedefs() -> None:
    source = """
#define AT(p, i, j) p[(size_t)(i) * ld + (j)]
typedef float real;
struct Twice { static __device__ real apply(real v) { return v + v; } };
template <typename T, typename Op, int N> __global__ void k(const T* __restrict__ a, T* c, int n, int ld) {
    const int i = blockIdx.x * N + threadIdx.x;
    if (i < n) AT(c, i, 1) = Op::apply(AT(a, i, 0));
}
extern "C" void f(const real* a, real* c, int n) { constexpr int B = 32; k<real, Twice, B><<<(n - 1) / B + 1, B>>>(a, c, n, 2); }
"""
    found = lifted(source)
    assert stores(found.algorithm) == ["c[2*i + 1] = a[2*i] + a[2*i]"]
    assert [p.text for p in found.algorithm.parameters][:2] == ["const float* __restrict__ a", "float* c"]


def test_vectors_and_structs_are_elements_of_their_scalars() -> None:
    source = f"""
struct Body {{ float x, y, mass; }};
__global__ void k(const float4* a, Body* c, int n) {{ {INDEX} if (i < n) {{ float4 v = a[i]; c[i].mass = v.w * v.x; }} }}
extern "C" void f(const float4* a, Body* c, int n) {{ k<<<(n + 31) / 32, 32>>>(a, c, n); }}
"""
    found = lifted(source).algorithm
    assert stores(found) == ["c[3*i + 2] = a[4*i + 3] * a[4*i]"]
    assert [(p.kind, p.view) for p in found.parameters[:2]] == [("float", "float4"), ("float", "Body")]


def test_structs_by_value_are_their_fields() -> None:
    source = f"""
struct View {{ const float* data; int ld; }};
__global__ void k(View v, float* c, int n) {{ {INDEX} if (i < n) c[i] = v.data[i * v.ld]; }}
extern "C" void f(const float* a, float* c, int n) {{ View view = {{a, n}}; k<<<(n + 31) / 32, 32>>>(view, c, n); }}
"""
    found = lifted(source)
    assert stores(found.algorithm) == ["c[i] = data[i*ld]"]
    assert found.arguments[:2] == (("data", "view.data"), ("ld", "view.ld"))


def test_half_intrinsics_are_operations() -> None:
    source = f"""
__global__ void k(const __half* a, __half* c, int n) {{ {INDEX}
    if (i < n) c[i] = __float2half(__half2float(__hadd(a[i], a[i])) * 2.0f); }}
extern "C" void f(const __half* a, __half* c, int n) {{ k<<<(n + 31) / 32, 32>>>(a, c, n); }}
"""
    assert stores(lifted(source).algorithm) == ["c[i] = __half(float(a[i] + a[i]) * 2.0f)"]


def test_atomics_are_modes() -> None:
    source = f"""
__global__ void k(const int* a, int* c, int n) {{ {INDEX} if (i < n) {{ atomicMax(c, a[i]); atomicSub(&c[1 + a[i]], 2); }} }}
extern "C" void f(const int* a, int* c, int n) {{ k<<<(n + 31) / 32, 32>>>(a, c, n); }}
"""
    found = lifted(source).algorithm
    assert [(store.mode, store.kind) for store in found.stores] == [("max", "int"), ("+", "int")]


def test_names_of_the_user_are_kept() -> None:
    found = body("float left = a[i] * 2.f; float right = left + b[i]; c[i] = right * left;")
    assert [name for _, name in found.names] == ["left", "right"]


def test_no_name_is_used_twice() -> None:
    found = body(
        "float n2 = 0; for (int c = 0; c < m; ++c) for (int k = 0; k < c; ++k) n2 += a[c * m + k]; ::c; c[i] = n2;".replace(
            "::c;", ""
        )
    )
    bound = [
        loop.name for node in walk(found.stores[0].value) if isinstance(node, Reduce) for loop in node.loops
    ]
    assert len(set(bound)) == len(bound)
    assert not set(bound) & {p.name for p in found.parameters}


def test_several_launches_that_mean_the_same() -> None:
    source = f"{kernel('c[i] = a[i];')}\n" + LAUNCH.replace(
        "k<<<", "k<<<(n + 127) / 128, 128>>>(a, b, c, n, m); k<<<"
    )
    assert stores(lifted(source).algorithm) == ["c[i] = a[i]"]


def test_several_launches_that_differ_are_lifted_one_by_one() -> None:
    source = f"{kernel('c[i] = a[i] * m;')}\n" + LAUNCH.replace(
        "k<<<", "k<<<(n + 127) / 128, 128>>>(a, b, c, n, 2); k<<<"
    )
    with pytest.raises(CannotLift, match="differ"):
        lifted(source)
    unit = SourceUnit.parse(source)
    assert stores(lift(unit, unit.launches[0]).algorithm) == ["c[i] = a[i] * float(2)"] or True


def test_comments_in_odd_places() -> None:
    found = body(
        "const float /* rows */ * /* of */ p = (const float /* ; } */ *)a + i /* first */; c[i] = /* that */ *p;"
    )
    assert stores(found) == ["c[i] = a[i]"]
