import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelskill.backends.emulated.ptx.parser import parse
from kernelskill.backends.emulated.ptx.syntax import (
    Float,
    Instruction,
    Integer,
    Label,
    Name,
    Place,
    PtxError,
    Scope,
    Variable,
    Vector,
)
from kernelskill.backends.emulated.translate.module import translate_module

PTX = """
.version 9.0
.target sm_90a
.address_size 64
.file 1 "kernel.cu"
.file 2 "/usr/local/cuda/include/math.h", 1234, 5678
.extern .func  (.param .b32 func_retval0) vprintf (.param .b64 p0, .param .b64 p1);
.global .align 4 .u32 counter = 5;
.const .align 4 .b8 table[8] = {0, 1, 0xff, 3};
.global .align 8 .u64 where = generic(counter);
.extern .shared .align 16 .b8 dynamic[];
.visible .entry scale(
    .param .u64 .ptr .align 1 scale_0,
    .param .align 8 .b8 scale_1[24]
)
.maxntid 256, 1, 1
.minnctapersm 2
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 tile[128];
    .loc 1 6 0
    ld.param.u64 %rd1, [scale_0+0];
    mov.u32 %r1, %tid.x;
    setp.ge.s32 %p1, %r1, -1;
    @!%p1 bra $L__BB0_2;
    .loc 2 7 3, function_name $L__info_string0, inlined_at 1 9 5
    ld.global.v2.f32 {%f1, %f2}, [%rd1+-8];
    fma.rn.f32 %f3, %f1, 0f3F800000, %f2;
    { .reg .b32 tmp; mov.b32 tmp, %f3; st.shared.b32 [tile+4], tmp; }
$L__BB0_2:
    .pragma "nounroll";
    ret;
}
.section .debug_str { info: .b8 1 }
"""


def statements(text=PTX):
    return parse(text).functions[-1].body.statements


def test_declarations_without_a_space_before_their_type():
    text = PTX.replace("{ .reg .b32 tmp;", "{.reg.b16   h,r; .shared.v2.b32 own[8]; .reg.b32 tmp;")
    (scope,) = (one for one in statements(text) if isinstance(one, Scope))
    declared = [(v.name, v.space, v.type) for v in scope.statements if isinstance(v, Variable)]
    assert declared == [
        ("h", "reg", "b16"),
        ("r", "reg", "b16"),
        ("own", "shared", "b32"),
        ("tmp", "reg", "b32"),
    ]


def test_module_parts():
    module = parse(PTX)
    assert module.target == "sm_90a"
    assert module.files == {1: "kernel.cu", 2: "/usr/local/cuda/include/math.h"}
    assert [v.name for v in module.variables] == ["counter", "table", "where", "dynamic"]
    assert module.variables[1].count == 8
    assert module.variables[3].external
    printf, scale = module.functions
    assert printf.body is None
    assert scale.entry
    assert [(p.name, p.count) for p in scale.parameters] == [("scale_0", 1), ("scale_1", 24)]
    assert (".maxntid", (256, 1, 1)) in scale.directives


def test_instructions_and_operands():
    found = [s for s in statements() if isinstance(s, Instruction)]
    guarded = found[3]
    assert guarded.guard == Name("%p1")
    assert guarded.guard_negated
    load, fma = found[4], found[5]
    assert load.opcode == ("ld", "global", "v2", "f32")
    assert load.operands == (Vector((Name("%f1"), Name("%f2"))), Place(Name("%rd1"), -8))
    assert fma.operands[2] == Float(0x3F800000, 32)
    assert found[2].operands[2] == Integer(-1)


def test_inlined_locations_form_a_chain():
    load = [s for s in statements() if isinstance(s, Instruction)][4]
    assert (load.location.file, load.location.line) == (2, 7)
    assert (load.location.inlined_at.file, load.location.inlined_at.line) == (1, 9)


def test_scopes_and_labels():
    assert any(isinstance(s, Scope) for s in statements())
    assert any(isinstance(s, Label) and s.name == "$L__BB0_2" for s in statements())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("\x01", "character"),
        (".entry", "ends too early"),
        (".visible .entry k() { add.s32 %r1, }", "operand"),
        (".address_size 32", "64-bit"),
        (".nonsense", "nonsense"),
        (".entry k() {", "ends too early"),
        (".entry k() " + "{" * 100, "nested"),
        (".global .u32 x[99999999999999999999];", "range"),
    ],
)
def test_errors_name_the_line_and_the_fact(text, word):
    with pytest.raises(PtxError, match="PTX line 1") as caught:
        parse(text)
    assert word in str(caught.value)


def test_refusal_names_the_instruction_and_its_line():
    text = PTX.replace("fma.rn.f32 %f3, %f1, 0f3F800000, %f2;", "frobnicate.f32 %f3, %f1;")
    translation = translate_module(parse(text))
    assert translation.kernels == ()
    refused = translation.refused["scale"]
    assert refused.reason == "instruction frobnicate.f32"
    assert refused.location.line == 7


TOKENS = PTX.split()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mangled_ptx_gives_only_its_own_error(data):
    tokens = list(TOKENS)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(tokens) - 1))
        action = data.draw(st.sampled_from(["drop", "swap", "copy", "text"]))
        if action == "drop":
            del tokens[place]
        elif action == "swap":
            other = data.draw(st.integers(0, len(tokens) - 1))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif action == "copy":
            tokens.insert(place, tokens[data.draw(st.integers(0, len(tokens) - 1))])
        else:
            tokens[place] = data.draw(st.text(max_size=6))
    survives("\n".join(tokens))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(PTX)), st.integers(0, 40), st.text(max_size=5))
def test_cut_ptx_gives_only_its_own_error(start, length, put):
    survives(PTX[:start] + put + PTX[start + length :])


def survives(text):
    try:
        module = parse(text)
    except PtxError:
        return
    translate_module(module)
