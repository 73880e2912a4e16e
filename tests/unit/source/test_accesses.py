import pytest

from kernelskill.source.accesses import StrideKind, find_accesses, likely_thread_stride, thread_stride
from kernelskill.source.affine import index_polynomial
from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit


def _accesses(body, head="", parameters="const float* x, float* y, int n, int m"):
    unit = SourceUnit.parse(f"{head}\n__global__ void k({parameters}) {{\n{body}\n}}\n")
    assert unit.problems == ()
    return find_accesses(unit, unit.kernels[0])


def _index(body, head=""):
    return str(_accesses(body, head)[0].index)


GLOBAL_ID = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


@pytest.mark.parametrize(
    ("body", "index"),
    [
        (f"{GLOBAL_ID} x[i];", "blockDim.x*blockIdx.x + threadIdx.x"),
        ("int r = threadIdx.y, c = threadIdx.x; x[(size_t)r * n + c];", "n*threadIdx.y + threadIdx.x"),
        ("x[(n + 1) * m - m];", "m*n"),
        ("const float* p = x + n; *(p + m);", "m + n"),
        ("const float* p = &x[n]; p[2];", "2 + n"),
        (f"{GLOBAL_ID} int r = i / n, c = i % n; x[r * n + c];", "blockDim.x*blockIdx.x + threadIdx.x"),
        ("int t = threadIdx.x; x[(t >> 5) * 32 + (t & 31)];", "threadIdx.x"),
        ("for (int k = 0; k < n; ++k) x[k * m];", "k*m"),
        ("for (int k = threadIdx.x; k < n; k += blockDim.x) x[k];", "blockDim.x*loop:k + threadIdx.x"),
        ("int v = 1; v = threadIdx.x; x[v];", "threadIdx.x"),
    ],
)
def test_index_forms(body, index):
    assert _index(body) == index


def test_macros_and_inline_functions_are_seen_through():
    head = "#define IDX(i, j, ld) ((i) * (ld) + (j))\n#define W 7\n__device__ int at(int r, int c, int w) { return r * w + c; }"
    assert _index("x[IDX(threadIdx.y + 1, n, W)];", head) == "7 + n + 7*threadIdx.y"
    assert _index("x[at(n, threadIdx.x, m)];", head) == "m*n + threadIdx.x"


@pytest.mark.parametrize(
    "body",
    [
        "int v = 0; if (n) v = threadIdx.x; x[v];",
        "int v = 0; for (int k = 0; k < n; ++k) { x[v]; v += threadIdx.x; }",
        "int v = 0; for (int k = 0; k < n; ++k) { x[v]; v = threadIdx.x; }",
        "int v = 0; auto f = [&] { v = threadIdx.x; }; f(); x[v];",
        "int v = 0; set(&v); x[v];",
        "int v = 0; if (threadIdx.x > 3) v = 1; x[v];",
        "x[(int)y[threadIdx.x]];",
        "x[threadIdx.x * threadIdx.x];",
    ],
)
def test_what_is_not_linear_is_irregular(body):
    found = next(a for a in _accesses(body) if a.base == "x")
    assert thread_stride(found).kind is StrideKind.IRREGULAR


def test_shadowed_names_are_told_apart():
    assert _index("int v = n; { int v = threadIdx.x; x[v]; }") == "threadIdx.x"
    assert _index("int v = n; { int v = threadIdx.x; } x[v];") == "n"


def test_strides():
    column, row = _accesses("x[threadIdx.x * n + threadIdx.y]; x[threadIdx.y * 32 + threadIdx.x * 2];")
    assert thread_stride(column).kind is StrideKind.SYMBOLIC
    assert thread_stride(column).text == "n"
    assert thread_stride(column, "y").is_coalesced
    assert thread_stride(row).elements == 2
    (bound,) = _accesses("x[threadIdx.x * blockDim.y];")
    assert thread_stride(bound, "x", {"blockDim.y": 1}).kind is StrideKind.UNIT


def test_likely_stride_sees_through_division_by_a_run_time_value():
    (access,) = _accesses(f"{GLOBAL_ID} x[i / n * m + i % n];")
    assert thread_stride(access).kind is StrideKind.IRREGULAR
    assert likely_thread_stride(access).kind is StrideKind.UNIT


def test_modes_spaces_and_members():
    found = _accesses(
        "__shared__ float s[4][9]; s[threadIdx.y][n] = x[0]; y[1] += 2; y[2]++; atomicAdd(&y[3], 1.f); p[n].b = __ldg(x + 4);",
        "struct P { float a, b; };",
        "const float* x, float* y, P* p, int n",
    )
    assert [(a.base, a.space.value, a.mode.value, str(a.index), a.member) for a in found] == [
        ("s", "shared", "write", "n + 9*threadIdx.y", ""),
        ("x", "global", "read", "0", ""),
        ("y", "global", "read_write", "1", ""),
        ("y", "global", "read_write", "2", ""),
        ("y", "global", "atomic", "3", ""),
        ("p", "global", "write", "n", ".b"),
        ("x", "global", "read", "4", ""),
    ]


def test_vector_view_keeps_root_and_changes_element():
    (access,) = _accesses("reinterpret_cast<const float4*>(x)[n];")
    assert (access.root_name, access.element_type, str(access.index)) == ("x", "float4", "n")
    (moved,) = _accesses("reinterpret_cast<const float4*>(x + m)[n];")
    assert moved.index is None


def test_macro_element_is_an_access():
    head = "#define AT(p, i, j) p[(i) * n + (j)]"
    write, read = _accesses("AT(y, threadIdx.y, threadIdx.x) = AT(x, threadIdx.x, 3);", head)
    assert (write.root_name, write.mode.value, str(write.index)) == (
        "y",
        "write",
        "n*threadIdx.y + threadIdx.x",
    )
    assert (read.root_name, read.mode.value, str(read.index)) == ("x", "read", "3 + n*threadIdx.x")


def test_walking_pointer_keeps_its_root():
    (access,) = _accesses("const float* p = x; for (int k = 0; k < n; ++k) { *p; p += m; }")
    assert access.root_name == "x"
    assert access.index is None


def test_polynomials_of_two_spellings_are_equal():
    unit = SourceUnit.parse(
        "__global__ void k(int a, int b, int c) { c = (a + b) * 2; c = b + a + (b + a); }"
    )
    kernel = unit.kernels[0]
    values = [n.child_by_field_name("right") for n in walk(kernel.body) if n.type == "assignment_expression"]
    first, second = (index_polynomial(unit, kernel, value) for value in values)
    assert first == second
