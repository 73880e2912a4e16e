"""A build counts only while the files that it included are as they were."""

import os
import time
from pathlib import Path

import pytest

from kernelskill.backends.compile import compile_candidate
from kernelskill.backends.inputs import are_unchanged, recorded_inputs, states
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.schema.build import Build, BuildFailure
from tests.backends.sources import candidate, signature

SOURCE = """\
#include "factor.h"
__global__ void k(float* y, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) y[i] *= FACTOR; }
extern "C" void f(float* y, int n) { k<<<(n + 31) / 32, 32>>>(y, n); }
"""
SIGNATURE = signature("f", ("y", "float*"), ("n", "int"))


@pytest.fixture
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("outside")
    root.chmod(0o755)
    made = [root / "first", root / "second"]
    for folder in made:
        folder.mkdir()
    return made


def write(folder: Path, factor: str) -> None:
    """Write the header as if that had been a while ago."""
    path = folder / "factor.h"
    path.write_text(f"#define FACTOR {factor}\n")
    os.utime(path, (time.time() - 60, time.time() - 60))


@pytest.mark.slow
def test_an_included_header_that_changes_makes_another_build(folders, tmp_path):
    flags = tuple(f"-I{folder}" for folder in folders)
    toolchain = Toolchain.find()
    with BuildCache(tmp_path / "cache") as cache:

        def build() -> Build | BuildFailure:
            return compile_candidate(
                candidate(SOURCE),
                SIGNATURE,
                flags=flags,
                architecture="sm_90a",
                toolchain=toolchain,
                cache=cache,
            )

        assert isinstance(build(), BuildFailure), "the header is not there"
        write(folders[1], "2.0f")
        two = build()
        assert isinstance(two, Build), "the failure was not kept"
        assert build() == two
        write(folders[1], "3.0f")
        three = build()
        assert three.machine_code != two.machine_code
        assert Path(three.folder) != Path(two.folder)
        write(folders[1], "2.0f")
        assert build() == two, "what it was before is still there"
        write(folders[0], "4.0f")
        four = build()
        assert four.machine_code not in (two.machine_code, three.machine_code), "one that comes first counts"


def test_states_tell_files_apart(tmp_path):
    toolchain = Toolchain.find()
    path = tmp_path / "x.h"
    before = states([str(path)], toolchain)
    path.write_text("a")
    with_a = states([str(path)], toolchain)
    assert before != with_a
    assert are_unchanged(with_a, toolchain)
    path.write_text("b")
    assert not are_unchanged(with_a, toolchain)


def test_a_file_that_changes_while_it_is_read_is_never_the_same(tmp_path):
    toolchain = Toolchain.find()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.h").write_text("a")
    work = tmp_path / "work"
    work.mkdir()
    (work / "entry.cpp4.ii").write_text(f'# 1 "{outside}/x.h" 1\na\n')
    calm = recorded_inputs(work, (), toolchain, time.time() + 60)
    assert are_unchanged(calm, toolchain)
    changing = recorded_inputs(work, (), toolchain, time.time() - 60)
    assert not are_unchanged(changing, toolchain)
