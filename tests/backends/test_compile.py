import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelskill.backends.compile import build_key, compile_candidate
from kernelskill.backends.elf import ElfFile
from kernelskill.backends.entry import ENTRY_SYMBOL
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing, TaskError
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import private_folder
from kernelskill.isolation.confinement import confinement_level
from kernelskill.schema.build import Build, BuildFailure
from tests.backends.sources import SAXPY, SAXPY_SIGNATURE, candidate, signature


@pytest.fixture(scope="module")
def toolchain():
    try:
        return Toolchain.find()
    except CompilerMissing as missing:
        pytest.skip(missing.message)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with BuildCache(tmp_path_factory.mktemp("cache")) as opened:
        yield opened


@pytest.fixture
def compile_(toolchain, cache):
    def run(source, wanted=SAXPY_SIGNATURE, *, flags=(), architecture="sm_90a", cache=cache, timeout_s=120):
        return compile_candidate(
            source if not isinstance(source, str) else candidate(source),
            wanted,
            flags=flags,
            architecture=architecture,
            toolchain=toolchain,
            cache=cache,
            timeout_s=timeout_s,
        )

    return run


def entry_of(build):
    symbols = ElfFile(Path(build.folder, "host.so").read_bytes()).dynamic_symbols
    return [symbol for symbol in symbols if symbol.name == ENTRY_SYMBOL and symbol.section]


def test_a_build_holds_everything(compile_):
    build = compile_(SAXPY)
    assert isinstance(build, Build)
    folder = Path(build.folder)
    assert {"device.cubin", "device.ptx", "host.o", "host.so"} <= {path.name for path in folder.iterdir()}
    (kernel,) = build.kernels
    assert (kernel.name, kernel.display_name, kernel.static_shared_bytes) == (
        "saxpy_kernel",
        "saxpy_kernel",
        1024,
    )
    assert [(p.offset, p.size) for p in kernel.parameters] == [(0, 8), (8, 8), (16, 4), (20, 4)]
    assert 0 < kernel.registers < 64
    assert build.architecture == "sm_90a"
    assert build.compiler.startswith("nvcc 1")
    assert "__cudaRegisterFatBinary" in build.undefined_symbols
    assert all("cuda" in symbol for symbol in build.undefined_symbols)
    assert len(entry_of(build)) == 1


def test_the_ptx_is_for_the_same_architecture_and_names_the_users_lines(compile_):
    ptx = Path(compile_(SAXPY).folder, "device.ptx").read_text()
    assert ".target sm_90a" in ptx
    assert re.search(r'\.file\s+1 "kernel.cu"', ptx)
    assert re.search(r"\.loc\s+1 4 ", ptx)


def test_the_recorded_commands_run_again(compile_, tmp_path):
    build = compile_(SAXPY)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", build.folder, str(copy)], check=True)
    (copy / "host.so").unlink()
    for command in build.commands:
        subprocess.run(
            ["sh", "-c", command.replace(build.folder, str(copy))], check=True, capture_output=True
        )
    assert (copy / "entry.cubin").read_bytes() != b""
    assert (copy / "host.so").exists()


def test_an_equal_build_comes_from_the_cache(compile_):
    first = compile_(SAXPY)
    started = time.monotonic()
    assert compile_(SAXPY) == first
    assert time.monotonic() - started < 0.5


def test_equal_builds_in_two_caches_have_equal_bytes(compile_, tmp_path):
    with BuildCache(tmp_path) as other:
        assert compile_(SAXPY, cache=other).device_code == compile_(SAXPY).device_code


def test_every_input_counts_in_the_key(toolchain):
    def key(text=SAXPY, wanted=SAXPY_SIGNATURE, flags=(), architecture="sm_90a", compiler=toolchain.compiler):
        return build_key(candidate(text), wanted, flags=flags, architecture=architecture, compiler=compiler)

    other = signature("saxpy", ("x", "const float*"))
    keys = {
        key(),
        key(text=SAXPY + "\n"),
        key(wanted=other),
        key(flags=("-O3",)),
        key(architecture="sm_80"),
        key(compiler="nvcc 12.9.86, g++ 12.2.0"),
    }
    assert len(keys) == 6
    assert key() == key()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("void f(float* y) { }", signature("f", ("y", "float*"), c_linkage=False)),
        (
            "static int f(float* y) { return 3; }",
            signature("f", ("y", "float*"), c_linkage=False, returns="int"),
        ),
        ("namespace n { void f() noexcept { } }", signature("n::f", c_linkage=False)),
        (
            "#define N 4\n#define T 5\n#define P 6\n#define type 7\n#define p0 8\nvoid f(float* y) { }",
            signature("f", ("y", "float*"), c_linkage=False),
        ),
        (
            '#include <cuda_fp16.h>\nextern "C" cudaError_t f(__half h, float4 v, cudaStream_t s) '
            "{ return cudaGetLastError(); }",
            signature("f", ("h", "__half"), ("v", "float4"), ("s", "cudaStream_t"), returns="cudaError_t"),
        ),
    ],
    ids=["C++", "static", "namespace and noexcept", "macros of short names", "values and a stream"],
)
def test_every_launcher_is_entered_by_one_name(compile_, text, wanted):
    build = compile_("__global__ void k(float* y) { y[0] = 1; }\n" + text, wanted)
    assert isinstance(build, Build), build
    assert len(entry_of(build)) == 1


def test_a_launcher_without_kernels_builds(compile_):
    text = "void f(float* y) { cudaMemsetAsync(y, 0, 4, 0); }"
    build = compile_(text, signature("f", ("y", "float*"), c_linkage=False))
    assert isinstance(build, Build), build
    assert build.kernels == ()
    assert "cudaMemsetAsync" in build.undefined_symbols


def test_odd_names_and_relative_includes_survive(compile_):
    source = candidate(
        '#include "../in clude/wörter.cuh"\n' + SAXPY.replace("a * tile", "SCALE * a * tile"),
        main="src dir/kérnel (1).cu",
        **{
            "in clude/wörter.cuh": '#pragma once\n#include "deeper/more.cuh"\n',
            "in clude/deeper/more.cuh": "#define SCALE 1.0f\n",
        },
    )
    build = compile_(source)
    assert isinstance(build, Build), build
    assert '1 "src dir/k' in Path(build.folder, "device.ptx").read_text()


def test_relative_include_flags_mean_the_candidates_folder(compile_):
    source = candidate(
        "#include <scale.h>\n" + SAXPY.replace("a * tile", "SCALE * tile"),
        **{"inc/scale.h": "#define SCALE a\n"},
    )
    assert isinstance(compile_(source, flags=("-Iinc",)), Build)
    failure = compile_(source)
    assert isinstance(failure, BuildFailure)
    assert failure.diagnostics[0].message.startswith("scale.h: No such file")


def test_spills_stack_and_launch_bounds_are_read(compile_):
    text = """
__global__ void __launch_bounds__(1024, 2) heavy(float* y, int n) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = y[i * n];
  for (int i = 0; i < 64; ++i) y[i * n + 1] = v[i] * v[63 - i] + v[(i * n) & 63];
}
void f(float* y, int n) { heavy<<<1, 1024>>>(y, n); }
"""
    build = compile_(text, signature("f", ("y", "float*"), ("n", "int"), c_linkage=False))
    (kernel,) = build.kernels
    assert kernel.max_threads == 1024
    assert kernel.registers <= 32
    assert kernel.stack_bytes >= 256


def test_variables_and_libraries_are_seen(compile_):
    text = """
#include <cmath>
#include <string>
struct cublasContext; extern "C" int cublasSgemm_v2(cublasContext*);
__device__ int counter; __constant__ float weights[8];
__global__ void k(float* y) { y[0] = weights[1]; counter = 1; }
void f(float* y) { std::string s("x"); cublasSgemm_v2(nullptr); k<<<1, (int)std::sin(s.size())>>>(y); }
"""
    build = compile_(text, signature("f", ("y", "float*"), c_linkage=False))
    assert [(v.name, v.size_bytes, v.constant) for v in build.variables] == [
        ("counter", 4, False),
        ("weights", 32, True),
    ]
    assert "cublasSgemm_v2" in build.undefined_symbols
    assert all("cuda" in symbol or symbol == "cublasSgemm_v2" for symbol in build.undefined_symbols)


@pytest.mark.parametrize(
    ("break_", "line", "message"),
    [
        (lambda text: text.replace("a * tile", "b * tile"), 6, 'identifier "b" is undefined'),
        (lambda text: '#include "gone.h"\n' + text, 1, "gone.h: No such file"),
        (lambda text: text.replace("tile[256]", "tile[100000]"), 0, "too much shared data"),
        (lambda text: text.replace("  __syncthreads();", '  asm("nonsense.f32;");'), 5, "nonsense"),
        (lambda text: text.rstrip().removesuffix("}"), 8, 'expected a "}"'),
        (lambda text: text.replace("saxpy(const", "other(const"), 10, 'identifier "saxpy" is undefined'),
    ],
    ids=["undefined", "include", "shared memory", "PTX", "brace", "no launcher"],
)
def test_a_refusal_names_the_users_line(compile_, break_, line, message):
    failure = compile_(break_(SAXPY))
    assert isinstance(failure, BuildFailure)
    first = failure.diagnostics[0]
    assert message in first.message
    assert first.line == line
    if line:
        assert first.file == "kernel.cu"
    assert "/tmp/" not in failure.log
    assert failure.commands
    assert not failure.timed_out


def test_a_refusal_comes_from_the_cache_too(compile_):
    broken = SAXPY.replace("a * tile", "c * tile")
    first = compile_(broken)
    started = time.monotonic()
    assert compile_(broken) == first
    assert time.monotonic() - started < 0.5


def test_a_timeout_is_a_failure_that_is_not_kept(compile_, tmp_path):
    with BuildCache(tmp_path) as empty:
        failure = compile_(SAXPY, cache=empty, timeout_s=0.3)
        assert isinstance(failure, BuildFailure)
        assert failure.timed_out
        assert isinstance(compile_(SAXPY, cache=empty), Build)


def test_a_compilation_without_end_is_stopped(compile_, tmp_path):
    endless = "template <int N, int M> struct T { static const int v = T<N - 1, M * 2>::v + T<N - 1, M * 2 + 1>::v; };\n"
    endless += "template <int M> struct T<0, M> { static const int v = M; };\nint x = T<40, 1>::v;\n"
    started = time.monotonic()
    with BuildCache(tmp_path) as empty:
        failure = compile_(endless + SAXPY, cache=empty, timeout_s=2)
    assert isinstance(failure, BuildFailure)
    assert time.monotonic() - started < 8


@pytest.mark.skipif(confinement_level() < 1, reason="this kernel cannot confine processes")
@pytest.mark.parametrize(
    "way", ['#include "{path}"\n', 'asm(".incbin \\"{path}\\"");\n'], ids=["include", "incbin"]
)
def test_the_compiler_sees_no_file_of_the_task(compile_, way):
    with private_folder() as secrets:
        secrets.chmod(0o755)
        (secrets / "test.py").write_text("int secret = 42;\n")
        (secrets / "test.py").chmod(0o644)
        failure = compile_(way.format(path=secrets / "test.py") + SAXPY)
    assert isinstance(failure, BuildFailure)
    assert re.search("Permission denied|file not found", failure.diagnostics[0].message)


def test_an_absolute_include_folder_of_the_users_is_visible(compile_, tmp_path):
    with private_folder() as library:
        library.chmod(0o755)
        (library / "scale.h").write_text("#define SCALE a\n")
        source = "#include <scale.h>\n" + SAXPY.replace("a * tile", "SCALE * tile")
        assert isinstance(compile_(source, flags=(f"-I{library}",)), Build)


def test_a_host_compiler_too_new_is_no_fault_of_the_candidate(compile_):
    with pytest.raises(CompilerMissing, match="unsupported GNU version") as missing:
        compile_(SAXPY, flags=("-U__GNUC__", "-D__GNUC__=99"))
    assert "-ccbin" in missing.value.remedy


def test_two_threads_build_at_once(compile_):
    results = []
    texts = [SAXPY + f"// {number % 2}\n" for number in range(4)]
    threads = [threading.Thread(target=lambda text=text: results.append(compile_(text))) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({build.key for build in results}) == 2
    assert all(isinstance(build, Build) for build in results)


def test_other_architectures(compile_):
    build = compile_(SAXPY, architecture="sm_80")
    assert ".target sm_80" in Path(build.folder, "device.ptx").read_text()
    failure = compile_(SAXPY, architecture="sm_12345")
    assert isinstance(failure, BuildFailure)
    assert "nvcc" in failure.diagnostics[0].message


@pytest.mark.parametrize("path", ["../outside.h", "/etc/x.h", "a//b.h", "./x.h"])
def test_files_outside_the_candidates_folder_are_refused(compile_, path):
    with pytest.raises(TaskError, match="inside"):
        compile_(candidate(SAXPY, **{path: ""}))


def test_a_flag_that_cannot_be_passed_on_is_refused(compile_):
    with pytest.raises(TaskError, match="architecture"):
        compile_(SAXPY, flags=("-arch=sm_80",))


def test_no_environment_variable_of_ours_reaches_the_compiler(toolchain, tmp_path):
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from pathlib import Path
from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from tests.backends.sources import SAXPY, SAXPY_SIGNATURE, candidate
result = compile_candidate(candidate(SAXPY), SAXPY_SIGNATURE, flags=(), architecture="sm_90a",
    toolchain=Toolchain.find(), cache=BuildCache(Path({str(tmp_path)!r})))
print(type(result).__name__)
"""
    environment = dict(os.environ, NVCC_APPEND_FLAGS="-DBROKEN(", CPATH="/nowhere")
    shown = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "Build\n"
