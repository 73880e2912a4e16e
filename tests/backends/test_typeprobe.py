import time

import pytest

from kernelskill.backends.toolchain import Toolchain
from kernelskill.backends.typeprobe import probe_signature
from kernelskill.errors import CompilerMissing, TaskError
from tests.backends.sources import candidate

HEADER = """\
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuComplex.h>
typedef float real;
using count_t = unsigned;
template <class T> using pointer_to = T*;
#define DOUBLE double
enum Mode { FAST, SLOW };
enum class Small : short { A };
struct Pair { int a, b; };
"""
LOWER_CASE = (
    "value",
    "type",
    "element",
    "result",
    "list",
    "count",
    "parameters",
    "p0",
    "size",
    "code",
    "first",
)
# Spelling, kind, canonical name, dtype, lanes, bytes, const.
SPELLINGS = [
    ("const real* __restrict__", "pointer", "float", "float32", 1, 4, True),
    ("float* const", "pointer", "float", "float32", 1, 4, False),
    ("half*", "pointer", "__half", "float16", 1, 2, False),
    ("__half", "scalar", "__half", "float16", 1, 2, False),
    ("const __nv_bfloat16*", "pointer", "__nv_bfloat16", "bfloat16", 1, 2, True),
    ("nv_bfloat162*", "pointer", "__nv_bfloat162", "bfloat16", 2, 4, False),
    ("__nv_fp8_e4m3*", "pointer", "__nv_fp8_e4m3", "float8_e4m3fn", 1, 1, False),
    ("float4*", "pointer", "float4", "float32", 4, 16, False),
    ("uchar4", "scalar", "uchar4", "uint8", 4, 4, False),
    ("float3*", "pointer", "float3", "float32", 3, 12, False),
    ("cuComplex", "scalar", "float2", "float32", 2, 8, False),
    ("cuDoubleComplex*", "pointer", "double2", "float64", 2, 16, False),
    ("size_t", "scalar", "unsigned long", "uint64", 1, 8, False),
    ("long long", "scalar", "long long", "int64", 1, 8, False),
    ("int64_t*", "pointer", "long", "int64", 1, 8, False),
    ("uint8_t", "scalar", "unsigned char", "uint8", 1, 1, False),
    ("const unsigned short", "scalar", "unsigned short", "uint16", 1, 2, False),
    ("count_t", "scalar", "unsigned int", "uint32", 1, 4, False),
    ("pointer_to<const count_t>", "pointer", "unsigned int", "uint32", 1, 4, True),
    ("DOUBLE", "scalar", "double", "float64", 1, 8, False),
    ("bool", "scalar", "bool", "bool", 1, 1, False),
    ("bool*", "pointer", "bool", "bool", 1, 1, False),
    ("void*", "pointer", "void", "uint8", 1, 1, False),
    ("const void*", "pointer", "void", "uint8", 1, 1, True),
    ("char*", "pointer", "char", "int8", 1, 1, False),
    ("const volatile int*", "pointer", "int", "int32", 1, 4, True),
    ("Mode", "scalar", "unsigned int", "uint32", 1, 4, False),
    ("Small", "scalar", "short", "int16", 1, 2, False),
    ("cudaStream_t", "stream", None, None, None, None, False),
    ("CUstream_st*", "stream", None, None, None, None, False),
]


@pytest.fixture(scope="module")
def toolchain():
    try:
        return Toolchain.find()
    except CompilerMissing as missing:
        pytest.skip(missing.message)


@pytest.fixture
def probe(toolchain):
    def run(text, names=("x",), symbol="f", flags=()):
        return probe_signature(candidate(text), symbol, tuple(names), flags, toolchain, c_linkage=True)

    return run


@pytest.fixture(scope="module")
def all_spellings(toolchain):
    names = tuple(f"p{number}" for number in range(len(SPELLINGS)))
    parameters = ", ".join(f"{row[0]} {name}" for row, name in zip(SPELLINGS, names, strict=True))
    text = HEADER + f'extern "C" void f({parameters}) {{}}\n'
    return probe_signature(candidate(text), "f", names, (), toolchain, c_linkage=True)


@pytest.mark.parametrize("number", range(len(SPELLINGS)), ids=[row[0] for row in SPELLINGS])
def test_spellings(all_spellings, number):
    _, kind, name, dtype, lanes, size, const = SPELLINGS[number]
    found = all_spellings.parameters[number]
    assert found.name == f"p{number}"
    assert (found.kind, found.is_const) == (kind, const)
    assert found.declared
    if name is None:
        assert found.element is None
    else:
        element = found.element
        assert (element.name, element.dtype, element.lanes, element.size_bytes) == (name, dtype, lanes, size)


def test_short_names_may_be_macros(probe):
    text = "".join(f"#define {name} 7\n" for name in (*"ABCDEFGHIKLMNPRSTUVWXYZ", *LOWER_CASE))
    found = probe(f"{text} int f(const float* x, cudaStream_t y) {{ return 0; }}", ("x", "y"))
    assert [p.kind for p in found.parameters] == ["pointer", "stream"]
    assert found.returns == "int"


@pytest.mark.parametrize("returns", ["void", "int", "cudaError_t"])
def test_results(probe, returns):
    assert probe(f"{returns} f(int x) {{ return {returns}(0); }}").returns == returns


def test_arrays_defaults_namespaces_and_noexcept(probe):
    found = probe("namespace n { void f(float x[], int k = 3) noexcept {} }", ("x", "k"), "n::f")
    assert [p.kind for p in found.parameters] == ["pointer", "scalar"]
    assert probe("void f() {}", ()).parameters == ()


def test_flags_decide_types(probe):
    text = "#ifdef WIDE\ntypedef double T;\n#else\ntypedef float T;\n#endif\nvoid f(T x) {}"
    assert probe(text, flags=("-DWIDE",)).parameters[0].element.name == "double"
    assert probe(text).parameters[0].element.name == "float"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("void f(float** x) {}", r"parameter 'x' of 'f' has the type 'float \*\*'"),
        ("void f(float*& x) {}", r"parameter 'x' of 'f' has the type 'float \*&'"),
        ("void f(const int& x) {}", "parameter 'x' of 'f' has the type 'const int &'"),
        ("struct Pair { int a, b; }; void f(Pair x) {}", "parameter 'x' of 'f' has the type 'Pair'"),
        ("void f(void (*x)(int)) {}", r"parameter 'x' of 'f' has the type 'void \(\*\)\(int\)'"),
        ("float f(int x) { return 1; }", "'f' returns 'float'"),
        ("int* f(int x) { return 0; }", r"'f' returns 'int \*'"),
        ("void f(int x) {} void f(float x) {}", "overloaded"),
        ("template <class T> void f(T x) {}", "template"),
        ("namespace n { void f(int x) {} }", "knows no function 'f'"),
        ("int f;", "not a function"),
        ("void f(int x) {\n  y = 3;\n}", 'kernel.cu:2: identifier "y" is undefined: y = 3;'),
        ("void f(int x) {\n", "kernel.cu:1: .*not closed"),
        ("#include <gone.h>\nvoid f(int x) {}", "kernel.cu:1: gone.h: No such file"),
        ("void f(int x, int y) {}", "2 parameters for the compiler, but 1 names"),
        ("void f() {}", "0 parameters for the compiler, but 1 names"),
    ],
)
def test_what_cannot_be_used_is_named(probe, text, told):
    with pytest.raises(TaskError, match=told) as refused:
        probe(text)
    assert refused.value.remedy


def test_a_probe_is_quick(probe):
    started = time.monotonic()
    probe(HEADER + "void f(int x) {}")
    assert time.monotonic() - started < 15  # 1.2 s on an idle machine
