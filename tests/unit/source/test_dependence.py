import pytest

from kernelskill.source.dependence import (
    effects,
    has_side_effects,
    is_loop_invariant,
    may_alias,
    variables_modified,
)
from kernelskill.source.expressions import find_literals, find_math_calls, static_type
from kernelskill.source.literals import read_number
from kernelskill.source.loops import find_loops
from kernelskill.source.names import NameSource, fresh_name
from kernelskill.source.syntax import walk
from kernelskill.source.unit import SourceUnit
from kernelskill.source.writes import is_pointer_written, is_reduction


def _kernel(body, head="", parameters="const float* __restrict__ x, float* y, float* z, int n"):
    unit = SourceUnit.parse(f"{head}\n__global__ void k({parameters}) {{\n{body}\n}}\n")
    assert unit.problems == ()
    return unit, unit.kernels[0]


def _node(unit, text):
    return next(node for node in walk(unit.root) if unit.text_of(node) == text)


DEVICE = (
    "__device__ void put(float* p) { p[0] = 1; }\n__device__ float get(const float* p) { return p[0]; }\n"
    "#define SET(p, i) p[i]\n#define GET(p, i) (p[i] + 1)\nstruct S { float* q; };\n"
)


@pytest.mark.parametrize(
    ("body", "certainty"),
    [
        ("y[0] = 1;", "yes"),
        ("float* p = y + n; *p += 1;", "yes"),
        ("atomicAdd(y, 1.f);", "yes"),
        ("put(y + 2);", "yes"),
        ("SET(y, 3) = 1;", "yes"),
        ("reinterpret_cast<float4*>(y)[n] = make_float4(0, 0, 0, 0);", "yes"),
        ("z[0] = y[0] + get(y) * GET(y, 2);", "no"),
        ("float* p = n ? y : z; *p = 1;", "unknown"),
        ("foreign(y);", "unknown"),
        ("foreign(y[0], n);", "no"),
        ("float* p = n ? y : z; foreign(p);", "unknown"),
        ("S s; s.q = y; s.q[0] = 1;", "unknown"),
        ("S s{y}; s.q[0] = 1;", "unknown"),
        ('asm volatile("st.global.f32 [%0], 0f00000000;" ::"l"(y));', "unknown"),
        ("auto f = [=] { y[0] = 1; }; f();", "yes"),
    ],
)
def test_pointer_written(body, certainty):
    unit, kernel = _kernel(body, DEVICE)
    assert is_pointer_written(unit, kernel, "y").certainty.value == certainty


@pytest.mark.parametrize(
    ("body", "operator"),
    [
        ("float s = 0; for (int i = 0; i < n; ++i) s += x[i];", "+"),
        ("float s = 0; for (int i = 0; i < n; ++i) s = x[i] + s;", "+"),
        ("float s = 0; for (int i = 0; i < n; ++i) s = fmaf(x[i], x[i], s);", "+"),
        ("float s = 0; for (int i = 0; i < n; ++i) s = fmaxf(s, x[i]);", "max"),
        ("float s = 0; for (int i = 0; i < n; ++i) if (x[i] < s) s = x[i];", "min"),
        ("float s = 0; for (int i = 0; i < n; ++i) { s += x[i]; y[i] = s; }", ""),
        ("float s = 0; for (int i = 0; i < n; ++i) { s += s * x[i]; }", ""),
        ("for (int i = 0; i < n; ++i) { float s = 0; s += x[i]; }", ""),
    ],
)
def test_reductions(body, operator):
    unit, kernel = _kernel(body)
    (loop,) = find_loops(unit, kernel)
    found = is_reduction(unit, kernel, loop, "s")
    assert found.operator == operator
    assert found.answer.is_yes == bool(operator)


def test_aliasing():
    unit, kernel = _kernel(
        "__shared__ float a[4], b[4]; extern __shared__ float c[]; extern __shared__ float d[];"
    )
    answers = {
        pair: may_alias(unit, kernel, *pair).certainty.value
        for pair in [("x", "y"), ("y", "z"), ("a", "b"), ("c", "d"), ("a", "y"), ("y", "y"), ("y", "w")]
    }
    assert list(answers.values()) == ["no", "unknown", "no", "yes", "no", "yes", "unknown"]


@pytest.mark.parametrize(
    ("body", "certainty"),
    [
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; }", "yes"),
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; n = 3; }", "no"),
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; set(n); }", "no"),
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; z[i] = fmaxf(n, i); }", "yes"),
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; STEP(n); }", "no"),
        ("for (int i = 0; i < n; ++i) { y[i] = n * 2; z[i] = TWICE(n); }", "yes"),
    ],
)
def test_invariant_variables(body, certainty):
    unit, kernel = _kernel(body, "#define STEP(v) v++\n#define TWICE(v) (2 * (v))")
    (loop,) = find_loops(unit, kernel)
    assert is_loop_invariant(unit, kernel, _node(unit, "n * 2"), loop).certainty.value == certainty


def test_invariant_loads_need_memory_that_stays():
    unit, kernel = _kernel("for (int i = 0; i < n; ++i) { y[i] = x[0] + z[0]; }")
    (loop,) = find_loops(unit, kernel)
    assert is_loop_invariant(unit, kernel, _node(unit, "x[0]"), loop).is_yes
    assert is_loop_invariant(unit, kernel, _node(unit, "z[0]"), loop).is_unknown


def test_effects_and_modified_variables():
    unit, kernel = _kernel(
        "int a = 0, b; for (int i = 0; i < n; ++i) { int c = i; a += c; y[i] = x[i]; foreign(b); }"
    )
    (loop,) = find_loops(unit, kernel)
    assert variables_modified(unit, kernel, loop.span) == {"a", "b"}
    found = effects(unit, kernel, loop.span)
    assert [a.base for a in found.memory_writes] == ["y"]
    assert found.unknown_calls == ("foreign",)
    assert has_side_effects(unit, _node(unit, "a += c")).is_yes
    assert has_side_effects(unit, _node(unit, "x[i]")).is_no
    assert has_side_effects(unit, _node(unit, "foreign(b)")).is_unknown


def test_an_answer_is_no_truth_value():
    unit, kernel = _kernel("")
    with pytest.raises(TypeError):
        bool(may_alias(unit, kernel, "x", "y"))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.5", "double", 1.5),
        ("1'000.5f", "float", 1000.5),
        ("0x1.8p3f", "float", 12.0),
        ("1e-3L", "long double", 1e-3),
        (".5", "double", 0.5),
        ("3ull", "unsigned long long", 3),
        ("3LLU", "unsigned long long", 3),
        ("0x1F", "int", 31),
        ("017", "int", 15),
        ("0b101u", "unsigned", 5),
        ("0xFFFFFFFF", "unsigned", 0xFFFFFFFF),
        ("4294967296", "long", 1 << 32),
    ],
)
def test_literals(text, kind, value):
    number = read_number(text)
    assert (number.type_name, number.value) == (kind, value)


@pytest.mark.parametrize("text", ["", "x", "1.5q", "1_km", "09", "1f"])
def test_what_is_no_literal(text):
    assert read_number(text) is None


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("x[0] * 2.0", "double"),
        ("x[0] * 2.0f + n", "float"),
        ("exp(x[0])", "float"),
        ("exp(1.0 * x[0])", "double"),
        ("pow(x[0], 2)", "double"),
        ("sqrtf(x[0])", "float"),
        ("n / 2", "int"),
        ("n * 2ll", "long long"),
        ("threadIdx.x * n", "unsigned"),
        ("(double)x[0]", "double"),
        ("v.x + 1.f", "float"),
        ("foreign(x)", ""),
        ("n ? 1.f : 2.f", "float"),
    ],
)
def test_static_types(expression, kind):
    unit, kernel = _kernel(f"float4 v; auto r = {expression};")
    declared = kernel.local("r").initialiser
    assert static_type(unit, kernel, declared) == kind


def test_maths_calls_and_double_literals():
    unit, kernel = _kernel("y[0] = tanh(0.5 * x[0]) + expf(x[1]) * 2.f + std::sqrt(x[2]);")
    calls = find_math_calls(unit, kernel)
    assert [(c.base, c.is_double, c.float_name) for c in calls] == [
        ("tanh", True, "tanhf"),
        ("exp", False, "expf"),
        ("sqrt", False, "sqrtf"),
    ]
    assert [s.number.text for s in find_literals(unit, kernel.body) if s.number.is_double] == ["0.5"]


def test_fresh_names():
    unit = SourceUnit.parse("#define tile other\nint a_2, a; // b in a comment\n")
    assert fresh_name(unit, "a") == "a_3"
    assert fresh_name(unit, "tile") == "tile_2"
    assert fresh_name(unit, "other") == "other_2"
    assert fresh_name(unit, "float") == "float_2"
    assert fresh_name(unit, "9 é__x") == "v9_x"
    names = NameSource(unit)
    assert [names.fresh("acc"), names.fresh("acc")] == ["acc", "acc_2"]
