import pytest

from kernelskill.source.launches import block_shape, grid_shape
from kernelskill.source.signature import find_kernels, find_launchers, has_main
from kernelskill.source.unit import SourceUnit

HEAD = (
    "#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))\n#define N 16\nconstexpr int TS = N * 2;\nenum { E1 = 3, E2 };\n"
    "template <int B> __global__ void k(const float* x, int n) {}\n"
)


def _launch(body, parameters="const float* x, int n"):
    unit = SourceUnit.parse(f'{HEAD}extern "C" void run({parameters}) {{\n{body}\n}}\n')
    assert unit.problems == ()
    return unit.launches[0]


@pytest.mark.parametrize(
    ("body", "grid", "block"),
    [
        ("k<1><<<1, 256>>>(x, n);", (1, 1, 1), (256, 1, 1)),
        ("dim3 b(16, N); k<1><<<dim3(2, CEIL_DIV(100, TS)), b>>>(x, n);", (2, 4, 1), (16, 16, 1)),
        ("dim3 b = {8, E2}; k<1><<<n, b>>>(x, n);", (None, 1, 1), (8, 4, 1)),
        ("dim3 b{TS}; b.y = 2; k<1><<<1, b>>>(x, n);", (1, 1, 1), (32, 2, 1)),
        ("dim3 b(8, 8); b = dim3(4); k<1><<<1, b>>>(x, n);", (1, 1, 1), (4, 1, 1)),
        ("dim3 b(8, 8); if (n) b.x = 4; k<1><<<1, b>>>(x, n);", (1, 1, 1), (None, None, None)),
        ("dim3 b(8); for (;;) { k<1><<<1, b>>>(x, n); b.x /= 2; }", (1, 1, 1), (None, None, None)),
        ("dim3 b(8); for (;;) { k<1><<<1, b>>>(x, n); b.x = 2; }", (1, 1, 1), (None, None, None)),
        ("const int T = 64; int u = T / 2; k<1><<<1, u>>>(x, n);", (1, 1, 1), (32, 1, 1)),
        ("int u = 64; u = n; k<1><<<1, u>>>(x, n);", (1, 1, 1), (None, 1, 1)),
        ("cudaLaunchKernel((void*)k<1>, dim3(2), TS, args, 0, 0);", (2, 1, 1), (32, 1, 1)),
    ],
)
def test_shapes(body, grid, block):
    launch = _launch(body)
    assert grid_shape(launch) == grid
    assert block_shape(launch) == block


def test_shape_passed_in_is_unknown():
    assert block_shape(_launch("k<1><<<1, b>>>(x, n);", "const float* x, int n, dim3 b")) == (
        None,
        None,
        None,
    )


def test_launch_parts():
    launch = _launch("k<N><<<CEIL_DIV(n, 256), 256, 4 * sizeof(float), s>>>(x + 1, n);")
    assert (launch.kernel, launch.template_arguments, launch.function) == ("k", ("N",), "run")
    assert launch.shared.text == "4 * sizeof(float)"
    assert launch.stream.text == "s"
    assert [argument.text for argument in launch.arguments] == ["x + 1", "n"]
    assert launch.grid.components[0].text == "CEIL_DIV(n, 256)"


def test_api_launch_reads_the_argument_array():
    launch = _launch("void* a[] = {&x, (void*)&n}; cudaLaunchKernel((const void*)&k<2>, 1, 2, a, 0, 0);")
    assert launch.uses_api
    assert launch.kernel == "k"
    assert [argument.text for argument in launch.arguments] == ["x", "n"]
    unread = _launch("cudaLaunchKernel((void*)k<2>, 1, 2, make(), 0, 0);")
    assert not unread.arguments_readable


def test_launchers_are_ordered_and_follow_calls():
    unit = SourceUnit.parse(
        f"{HEAD}static void inner(const float* x) {{ k<1><<<1, 1>>>(x, 1); }}\n"
        'extern "C" int outer(const float *x, unsigned long long n, cudaStream_t s) { inner(x); return 0; }\n'
        "float helper(float v) { return v; }\nint main() { outer(0, 1, 0); }\n"
    )
    found = find_launchers(unit)
    assert [(f.name, f.kernels, f.c_linkage) for f in found] == [
        ("outer", ("k",), True),
        ("inner", ("k",), False),
    ]
    assert found[0].return_type == "int"
    assert [(p.name, p.type_text) for p in found[0].parameters] == [
        ("x", "const float *"),
        ("n", "unsigned long long"),
        ("s", "cudaStream_t"),
    ]
    assert found[1].is_static
    assert has_main(unit)
    assert [(k.name, k.template_parameters, k.is_launched) for k in find_kernels(unit)] == [
        ("k", ("B",), True)
    ]
