from pathlib import Path

import pytest

from kernelskill.backends.flags import check_flags, named_paths
from kernelskill.errors import TaskError


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-std=c++17", "-Iinclude", "-O3", "--use_fast_math", "-DN=4", "-D", "M", "-maxrregcount=64"),
        ("-Xcompiler", "-fopenmp", "-Xptxas", "-O2", "-lineinfo", "--extended-lambda", "-lcublas"),
        ("-include", "prelude.cu", "-isystem", "/opt/include", "-t", "2", "-ccbin", "g++-12"),
        ("--expt-relaxed-constexpr", "-ftz=true", "-diag-suppress", "177", "-rdc=false"),
    ],
)
def test_flags_that_say_how_to_compile_pass(flags):
    check_flags(flags)


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("-arch=sm_80",), "architecture"),
        (("-gencode", "arch=compute_80,code=sm_80"), "architecture"),
        (("--gpu-architecture=native",), "architecture"),
        (("-o", "x"), "what is built"),
        (("-ptx",), "what is built"),
        (("--keep-dir=/tmp",), "what is built"),
        (("-cudart=shared",), "what is built"),
        (("-rdc=true",), "separate compilation"),
        (("-dc",), "what is built"),
        (("-dlto",), "what is built"),
        (("other.cu",), "input file"),
        (("-I", "x", "lib.a"), "input file"),
        (("@options.txt",), "from a file"),
    ],
)
def test_flags_that_change_what_is_built_are_refused(flags, why):
    with pytest.raises(TaskError, match=why):
        check_flags(flags)


def test_absolute_include_paths_are_found():
    flags = (
        "-I/a/b",
        "-I",
        "/c",
        "-Irelative",
        "-isystem=/d",
        "--include-path",
        "/e",
        "-DX=/f",
        "-include",
        "/g.h",
    )
    assert named_paths(flags) == tuple(Path(p) for p in ("/a/b", "/c", "/d", "/e", "/g.h"))
