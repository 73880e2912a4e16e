import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.source.definitions import FunctionKind
from kernelskill.source.syntax import parse_syntax, walk
from kernelskill.source.unit import SourceUnit


def _types(unit):
    return [node.type for node in walk(unit.root)]


def test_kernel_parameters_and_bounds():
    unit = SourceUnit.parse(
        "template <typename T, int B = 4>\n"
        "__global__ void __launch_bounds__(256, 2) k(const T* __restrict__ a, T *const b, float4 v, int m[]) {\n"
        "  __shared__ float s[B][B + 1]; extern __shared__ float d[];\n"
        "  int row = 1, col;\n}\n"
    )
    (kernel,) = unit.kernels
    assert kernel.kind is FunctionKind.KERNEL
    assert kernel.launch_bounds == ("256", "2")
    assert [p.name for p in kernel.template_parameters] == ["T", "B"]
    assert [
        (p.name, p.pointee_type, p.pointer_depth, p.is_const, p.is_restrict) for p in kernel.parameters
    ] == [
        ("a", "T", 1, True, True),
        ("b", "T", 1, False, False),
        ("v", "float4", 0, False, False),
        ("m", "int", 1, False, False),
    ]
    assert kernel.parameters[0].type_text == "const T* __restrict__"
    assert [(v.name, v.storage.value, len(v.dimensions)) for v in kernel.locals] == [
        ("s", "shared", 2),
        ("d", "dynamic_shared", 1),
        ("row", "local", 0),
        ("col", "local", 0),
    ]
    assert unit.text_of(kernel.span).startswith("template")


def test_qualifier_macros_are_seen_through():
    unit = SourceUnit.parse(
        "#define RESTRICT __restrict__\n#define DEV static __device__ __forceinline__\n#define KERNEL __global__ void\n"
        "DEV float f(float x) { return x; }\nKERNEL k(const float* RESTRICT a) { a[0]; }\n"
    )
    assert unit.problems == ()
    assert [f.kind.value for f in unit.all_functions] == ["device", "kernel"]
    assert unit.kernels[0].parameters[0].is_restrict
    assert unit.text_of(unit.functions[0].span).startswith("DEV float")


def test_comparisons_are_not_templates():
    unit = SourceUnit.parse(
        "__global__ void k(int x, int y, int w, int h) {\n"
        "  if (x < 0 || y < 0 || x >= w || y >= h) return;\n  if (x < w && y > (h)) return;\n"
        "  x >>= 1; y = x >= (w);\n}\n"
    )
    assert "template_function" not in _types(unit)
    operators = [unit.operator(n) for n in walk(unit.root) if n.type == "binary_expression"]
    assert operators.count(">=") == 3
    assert operators.count(">") == 1
    assert [unit.operator(n) for n in walk(unit.root) if n.type == "assignment_expression"] == [">>=", "="]


def test_attributes_and_pragmas_do_not_break_the_tree():
    unit = SourceUnit.parse(
        "__global__ void k(float* a, const __grid_constant__ int n) {\n  extern __shared__ __align__(16) float s[];\n"
        "  for (int i = 0; i < 4; ++i)\n    #pragma unroll\n    for (int j = 0; j < 4; ++j) a[j] = s[i];\n}\n"
    )
    assert unit.problems == ()
    assert unit.kernels[0].local("s").storage.value == "dynamic_shared"


def test_broken_kernel_is_opaque_and_others_are_not():
    unit = SourceUnit.parse("__global__ void a(int n) { int x = ; }\n__global__ void b(int n) { n = 1; }\n")
    assert unit.problems
    assert unit.kernel("a").is_opaque
    assert "line 1" in unit.kernel("a").opaque_reason
    assert not unit.kernel("b").is_opaque


def test_conditionals_and_repeats_are_opaque():
    unit = SourceUnit.parse(
        "__global__ void a(int n) {\n#ifdef X\n n = 1;\n#endif\n}\n"
        "#if 0\n__global__ void b() {}\n#endif\n__global__ void c(int) {}\n__global__ void c(float) {}\n"
    )
    reasons = {k.name: k.opaque_reason for k in unit.kernels}
    assert "defined(X)" in reasons["a"]
    assert "#if 0" in reasons["b"]
    assert "2 definitions" in reasons["c"]


def test_include_guard_is_not_opaque():
    unit = SourceUnit.parse(
        '#ifndef A\n#define A\n#include "b.h"\n#include <c.h>\n__global__ void k() {}\n#endif\n'
    )
    assert not unit.kernels[0].is_opaque
    assert [(i.path, i.is_local) for i in unit.includes] == [("b.h", True), ("c.h", False)]


def test_locked_regions():
    text = "int a;\n// kernelskill: off\nint b;\n// kernelskill: on\nint c;\n/* kernelskill: off */\nint d;\n"
    unit = SourceUnit.parse(text)
    assert [unit.text_of(span) for span in unit.locked] == [
        "// kernelskill: off\nint b;\n// kernelskill: on",
        "/* kernelskill: off */\nint d;\n",
    ]


def test_bom_crlf_and_non_ascii_keep_offsets():
    text = "\ufeff// größer\r\n__global__ void k(int n) {\r\n\tn = 1; // é\r\n}\r\n"
    unit = SourceUnit.parse(text)
    assert unit.problems == ()
    assert unit.newline == "\r\n"
    assert unit.text_of(unit.kernels[0].body_span).startswith("{\r\n\tn")
    assert unit.data == text.encode()
    assert unit.indent_of(unit.kernels[0].body.named_children[0]) == "\t"


def test_namespaces_and_linkage():
    unit = SourceUnit.parse(
        'namespace a { namespace { __global__ void k() {} } }\nextern "C" { void f(); void g() {} }\n'
        'extern "C" int h(int n) { return n; }\n'
    )
    assert unit.kernels[0].qualified_name == "a::::k"
    assert {f.name: f.c_linkage for f in unit.all_functions} == {"k": False, "f": True, "g": True, "h": True}


@given(st.text(alphabet=st.sampled_from("<>=&|()x0{};,*\"'\\\n/# é"), max_size=60))
def test_any_text_parses_with_true_offsets(text):
    unit = SourceUnit.parse(text)
    assert unit.text_of(unit.root) in text
    for node in walk(unit.root):
        assert 0 <= node.start_byte <= node.end_byte <= len(unit.data)


@pytest.mark.parametrize("rest", ["&& (b) + 1 < c", "& b < 3", "& (b) % 2", "&& (b) & a < c"])
@pytest.mark.parametrize(
    "place", ["if (%s) b = 1;", "while (%s) b = 1;", "c = %s;", "x[%s] = 1;", "g(%s, 1);"]
)
def test_a_kernel_with_a_variable_that_is_taken_for_a_type_is_left_alone(place, rest):
    kernel = f"__global__ void f(int *x, int a, int b, int c) {{ {place % f'(a) {rest}'} }}"
    unit = SourceUnit.parse(kernel + "\n__global__ void g(int *x, int a) { x[(a) + 1] = (a) * 2; }")
    read = {unit.text_of(n) for n in walk(unit.syntax.root) if n.type == "type_identifier"}
    first, second = unit.kernels
    assert first.opaque_reason.startswith("line 1: (") == bool(read)
    assert not second.opaque_reason


@pytest.mark.parametrize(
    "declaration",
    ["typedef int a;", "using a = int;", "struct a { int v; };", "enum a { NONE };", "template <class a>"],
)
def test_a_cast_to_a_type_of_the_file_is_one(declaration):
    text = (
        f"{declaration} __device__ int f(int b, int c) {{ return (a) & b < c; }} int g(int a) {{ return a; }}"
    )
    syntax = parse_syntax(text)
    assert [n.type for n in walk(syntax.root)].count("cast_expression") == 1
    assert not syntax.false_casts


@pytest.mark.parametrize("kind", ["unsigned", "signed", "short", "long", "int", "float"])
@pytest.mark.parametrize(
    "text", ["(%s(i) + 2)", "((%s (i + 1) * 3) ^ i) == 0 ? 1 : 2", "(%s(i))", "x[%s(i)]", "%s(i) * 3"]
)
def test_calls_of_types_are_casts(kind, text):
    unit = SourceUnit.parse(f"__global__ void f(int i, int *x) {{ x[0] = {text % kind}; }}")
    assert not unit.problems
    assert not unit.kernels[0].is_opaque
    calls = [node for node in walk(unit.syntax.root) if node.type == "call_expression"]
    assert [unit.text_of(call).split("(")[0].strip() for call in calls] == [kind]


def test_types_of_function_pointers_are_no_casts():
    unit = SourceUnit.parse(
        "typedef unsigned (*F)(int); typedef long long (*G)(int); unsigned (&r)[3] = q; long f(int);"
    )
    assert not [node for node in walk(unit.syntax.root) if node.type == "call_expression"]
