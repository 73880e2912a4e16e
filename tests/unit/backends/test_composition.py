"""What shows that a candidate is made of something forbidden, and what only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.composition.device_rules import (
    joined_opcodes,
    ptx_constructs,
    reads_family,
    sass_constructs,
)
from kernelskill.backends.composition.host_symbols import is_allowed
from kernelskill.backends.composition.own_text import host_parts, own_parts
from kernelskill.backends.composition.source_rules import (
    directive_constructs,
    host_constructs,
    source_constructs,
)
from kernelskill.source.tokens import tokens

FOLDER = "/private/work"


def families(text):
    """Return the families in a text of the candidate's own, macros expanded."""
    return [construct.family for construct in source_constructs("k.cu", list(tokens(text)))]


def in_ptx(*instructions):
    """Return the families that need permission."""
    text = "".join(f"\t{instruction};\n" for instruction in instructions)
    return [construct.family for construct in ptx_constructs(text) if not construct.harmless]


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("y = __expf(x);", "fast exponential"),
        ("y = __fdividef(x, 2.f);", "fast division"),
        ("y = __nv_fast_sinf(x);", "fast sine"),
        ("y = __nvvm_lg2_approx_ftz_f(x);", "fast logarithm"),
        ('asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));', "fast exponential"),
        ('asm volatile ("{.reg .f32 t;\\n" "rcp .approx" ".f32 %0, %1;}" : : );', "fast division"),
        ("cub::DeviceReduce::Sum(a, b, x, y, n);", "CUB and Thrust"),
        ("using namespace cub; DeviceScan::ExclusiveSum(a);", "CUB and Thrust"),
        ("::thrust::sort(thrust::device, y, y + n);", "CUB and Thrust"),
        ("__attribute__((constructor)) void f();", "code that runs unasked"),
        ("[[gnu::__constructor__]] void f();", "code that runs unasked"),
        ('__attribute__ ((used, section(".init_array"))) void (*p)() = f;', "code that runs unasked"),
        ('get("cuModuleLoadData", &p);', "call of cuModuleLoadData"),
    ],
)
def test_sources_that_show_it(text, family):
    assert family in families(text)


@pytest.mark.parametrize(
    "text",
    [
        "y = expf(x) + __frsqrt_rn(x) + __fdiv_rn(x, y) + __frcp_rn(x) + __fsqrt_rn(x) + __fmaf_rn(x, y, z);",
        "y = rsqrtf(x) + exp2f(x);",
        'asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));',
        'asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(a));',
        'asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(a));',
        'print("ex2.approx.f32");',
        "cub::BlockReduce<float, 256>(t).Sum(v);",
        "thrust::pair<int, float> best; thrust::complex<float> c = thrust::conj(c);",
        "namespace cub { int x; }",
        "__attribute__((launch_bounds(256))) void k();",
        "int constructor = 3, section = 4;",
    ],
)
def test_sources_that_only_look_like_it(text):
    assert families(text) == []


@pytest.mark.parametrize(
    ("instruction", "family"),
    [
        ("sin.approx.f32 %f1, %f2", "fast sine"),
        ("tanh.approx.f32 %f1, %f2", "fast hyperbolic tangent"),
        ("div.full.f32 %f1, %f2, %f3", "fast division"),
        ("sqrt.approx.ftz.f32 %f1, %f2", "fast square root"),
        ("fma.rn.ftz.f32 %f1, %f2, %f3, %f4", "flushing of denormals"),
        ("@%p1 mul.f16 %rs1, %rs2, %rs3", "half arithmetic"),
        ("{fma.rn.bf16x2 %r1,%r2,%r3,%r4", "bfloat16 arithmetic"),
        ("red.global.add.noftz.f16x2 [%rd1], %r1", "half arithmetic"),
        ("cvt.rn.f16.f32 %rs1, %f1", "half values"),
        ("cvt\t.rn\n.bf16x2 .f32 %r1, %f1, %f2", "bfloat16 values"),
        ("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2", "8-bit floating point values"),
        ("cvt.rna.tf32.f32 %r1, %f1", "TF32 values"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f1}", "half values"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r1}", "half arithmetic"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}", "TF32 values"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}", "8-bit integer products"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}", "bfloat16 values"),
        ("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%f1}", "8-bit floating point values"),
        ("tcgen05.mma.cta_group::1.kind::tf32 [%r1], %rd1, %rd2, %r2, %p1", "TF32 values"),
        ("tcgen05.mma.cta_group::2.kind::f8f6f4 [%r1], %rd1, %rd2, %r2, %p1", "8-bit floating point values"),
        ("dp4a.s32.s32 %r1, %r2, %r3, %r4", "8-bit integer products"),
    ],
)
def test_instructions_that_prove_it(instruction, family):
    assert family in in_ptx(instruction)


def test_instructions_that_exact_functions_use_too_prove_nothing():
    assert in_ptx(
        "ex2.approx.ftz.f32 %f1, %f2", "lg2.approx.f32 %f1, %f2", "rcp.approx.ftz.f64 %fd1, %fd2",
        "rsqrt.approx.f32 %f1, %f2", "div.approx.f32 %f1, %f2, %f3", "cvt.f32.f16 %f1, %rs1",
        "max.f16 %rs1, %rs2, %rs3", "neg.bf16x2 %r1, %r2", "mov.b16 %rs1, %rs2", "ld.global.nc.b16 %rs1, [%rd1]",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1}", "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}",
        "atom.global.add.f32 %f1, [%rd1], %f2", "cvt.rn.f32.s32 %f1, %r1", "cvt.f16x2.f16x2 %r1, %r2",
        "cvt.rn.f16x2.e4m3x2 %r1, %rs1",
    ) == []  # fmt: skip


def test_a_comment_in_ptx_is_none():
    assert in_ptx("// mul.f16 %rs1, %rs2, %rs3\n", "/* sin.approx.f32 */") == []


def test_the_line_is_looked_for_through_what_was_inlined():
    text = (
        '.file 1 "kernel.cu"\n.file 2 "/usr/include/cuda_fp16.hpp"\n.visible .entry k(\n)\n{\n.loc 1 3 0\n'
        ".loc 2 90 1, function_name $x, inlined_at 1 7 9\n{mul.f16 %rs1,%rs2,%rs3;\n}\n"
    )
    (construct,) = ptx_constructs(text)
    assert construct.place == "kernel.cu:7"


def test_constants_and_conversions_in_sass_are_no_arithmetic():
    clean = (
        "/*0570*/ HFMA2.MMA R11, -RZ, RZ, 0, 0 ;\n/*0080*/ HADD2.F32 R0, -RZ, R2.H0_H0 ;\n"
        "/*0090*/ MUFU.EX2 R0, R1 ;\n/*00a0*/ DMMA.8x8x4 R4, R2, R2, R4 ;\n"
    )
    assert list(sass_constructs(clean)) == []
    found = sass_constructs(
        "/*0010*/ @!P0 HFMA2 R1, R2, R3, R4 ;\n/*0020*/ HMMA.1684.F32.TF32 R4, R4, R6, R4 ;\n"
        "/*0030*/ QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24, gsb0 ;\n/*0040*/ MUFU.SIN R1, R2 ;\n"
        "/*0050*/ F2FP.BF16.F32.PACK_AB R0, R1, R2 ;\n/*0060*/ IMMA.16816.S8.S8 R8, R4, R8, RZ ;\n"
    )
    assert [construct.family for construct in found] == [
        "half arithmetic", "TF32 values", "8-bit floating point values", "fast sine", "bfloat16 values",
        "8-bit integer products",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "malloc",
        "memcpy",
        "printf",
        "stderr",
        "exit",
        "_Znwm",
        "_ZdlPvm",
        "__cxa_guard_acquire",
        "_Unwind_Resume",
        "sqrtf",
        "pow",
        "__popcountdi2",
        "__udivti3",
        "cudaMalloc",
        "__cudaRegisterFatBinary",
        "cudaGetDriverEntryPoint",
        "cuTensorMapEncodeTiled",
        "_ZSt4cout",
        "_ZNSolsEi",
        "_ZSt20__throw_length_errorPKc",
        "pthread_mutex_lock",
        "_ZSt15__once_callable",
        "_ZSt21ios_base_library_initv",
        "__cxa_call_terminate",
        "cpow",
        "__muldc3",
    ],
)
def test_what_honest_launchers_call(name):
    assert is_allowed(name)


@pytest.mark.parametrize(
    "name",
    [
        "dlopen",
        "dlsym",
        "system",
        "fork",
        "vfork",
        "popen",
        "execve",
        "ptrace",
        "mprotect",
        "mmap",
        "socket",
        "open",
        "fopen",
        "read",
        "syscall",
        "signal",
        "sigaction",
        "pthread_create",
        "clone",
        "getenv",
        "clock_gettime",
        "time",
        "rand",
        "_ZNSt6thread6detachEv",
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE",
        "_ZNSt6chrono3_V212system_clock3nowEv",
        "cuModuleLoadData",
        "cudaLibraryLoadData",
        "nvrtcCompileProgram",
        "cublasSgemm_v2",
        "cudnnCreate",
        "cudaIpcOpenMemHandle",
        "unheard_of",
        "_ZN3foo3barEv",
        "sgemm_",
        "longjmp",
    ],
)
def test_everything_else_is_refused(name):
    assert not is_allowed(name)


def test_only_the_candidates_own_lines_count():
    text = (
        '# 1 "/usr/include/x.h" 1\n__expf\n# 1 "../sources/kernel.cu" 1\nmine\n# 1 "/usr/include/y.h" 1 3\ntheirs\n'
        '# 3 "../sources/kernel.cu" 2\nagain\n# 2 "../entry.cu" 2\ngenerated\n'
    )
    assert [(part.file, part.line, part.text) for part in own_parts(text, FOLDER)] == [
        ("kernel.cu", 1, "mine\n"),
        ("kernel.cu", 3, "again\n"),
    ]


@pytest.mark.parametrize(
    "hiding",
    [
        'const char* s = R"(\n# 1 "/usr/include/x.h" 1 3\n)";',
        'char c = u\'"\'; const char* s = R"q(\n# 1 "/usr/include/x.h" 1 3\n)q";',
        'const char* a = "\\""; const char* s = u8R"(\n# 1 "/usr/include/x.h" 1 3\n)";',
    ],
)
def test_a_string_is_no_line_marker(hiding):
    text = f'# 1 "../sources/kernel.cu" 1\n{hiding}\n__expf(x);\n'
    assert "__expf(x)" in "".join(part.text for part in own_parts(text, FOLDER))


def test_device_bodies_are_no_host_code():
    text = (
        '# 5 "../sources/kernel.cu"\nvoid k(float *y) ;\n#if 0\n# 5\n{ __asm__ volatile("nop"); } \n#endif\n'
        '# 7 "../sources/kernel.cu"\nvoid f() { __asm__ volatile("syscall"); } \n'
    )
    (construct,) = host_constructs(host_parts(text, FOLDER))
    assert (construct.family, construct.place) == ("assembly in host code", "kernel.cu:7")


def test_the_body_of_a_lambda_ends_no_device_body():
    inner = '#if 0\n# 6\n{ __asm__ volatile("nop"); } \n#endif\n'
    text = (
        f'# 5 "../sources/kernel.cu"\nvoid k(float *y) ;\n#if 0\n# 5\n{{ \n{inner}{inner}'
        '# 8\n__asm__ volatile("nop"); } \n#endif\n# 9\nvoid f() { __asm__ volatile("syscall"); } \n'
    )
    (construct,) = host_constructs(host_parts(text, FOLDER))
    assert construct.place == "kernel.cu:9"


@pytest.mark.parametrize(
    "text",
    [
        '#line 5 "x.h"',
        '  # 5 "x.h" 3',
        "/* a */ #line 5",
        '%:line 5 "x.h"',
        "int a;\n??=line 5",
        "#\\\nline 7",
        "#if 0\n#line 2\n#endif",
    ],
)
def test_directives_that_give_code_another_origin(text):
    assert list(directive_constructs("k.cu", f"int x;\n{text}\n"))


@pytest.mark.parametrize(
    "text", ["#define line 5", "#pragma unroll 4", "a # 5", "// #line 5", '"\\n#line 5"', "a % b % 5"]
)
def test_ordinary_directives(text):
    assert list(directive_constructs("k.cu", f"int x;\n{text}\n")) == []


def test_types_tell_what_data_a_task_has():
    assert reads_family("float16") == "half values"
    assert reads_family("float8_e4m3fn") == "8-bit floating point values"
    assert reads_family("int8") == "8-bit integer products"
    assert reads_family("float32") == reads_family("int32") == ""


@given(st.text(alphabet=st.sampled_from("abc.{}/* \n%$;f16mul")))
def test_any_text_is_read_as_ptx(text):
    joined_opcodes(text)
    list(ptx_constructs(text))
    list(sass_constructs(text))
    list(own_parts(text, FOLDER))
