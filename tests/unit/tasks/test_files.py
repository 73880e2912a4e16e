"""Kernel sources, test sources, snapshots and suites on disk."""

from pathlib import Path

import pytest

from kernelskill.errors import ArtifactCorrupt, TaskError, UnknownNameError
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Case, Role, Task, Tolerance
from kernelskill.tasks.snapshot import read_snapshot, write_snapshot
from kernelskill.tasks.sources import read_kernel, require_file
from kernelskill.tasks.suite import load_suite, packaged_suites
from kernelskill.tasks.testsource import MAX_DATA_BYTES, read_test_source
from tests.unit.tasks.test_values import SAXPY


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_local_headers_are_collected_recursively(tmp_path):
    write(tmp_path, kernel_cu='#include "a.h"\n#include <vector>\n', a_h='# include "sub/b.h"\n', other_h="")
    write(tmp_path, sub__b_h='#include "c.h"\n#include "../a.h"\n', sub__c_h='#include "missing.h"\n')
    candidate = read_kernel(tmp_path / "kernel.cu").candidate
    assert [file.path for file in candidate.files] == ["a.h", "kernel.cu", "sub/b.h", "sub/c.h"]


def test_a_header_above_the_kernel_moves_the_root(tmp_path):
    write(tmp_path, src__k_cu='#include "../common/x.h"\n', common__x_h="", src__inc__y_h="")
    read = read_kernel(tmp_path / "src" / "k.cu", ("-Iinc", "-DX", "-I", "nowhere"))
    assert read.candidate.main == "src/k.cu"
    assert [file.path for file in read.candidate.files] == ["common/x.h", "src/k.cu"]
    assert read.flags == ("-Isrc/inc", "-DX", "-Inowhere")


def test_include_folders_are_searched_for_both_forms(tmp_path):
    write(tmp_path, k_cu='#include <lib/x.h>\n#include "y.h"\n', inc__lib__x_h="", inc__y_h="")
    paths = [file.path for file in read_kernel(tmp_path / "k.cu", ("-Iinc",)).candidate.files]
    assert paths == ["inc/lib/x.h", "inc/y.h", "k.cu"]


def test_byte_order_mark_and_line_ends_are_read(tmp_path):
    (tmp_path / "k.cu").write_bytes(b"\xef\xbb\xbfint a;\r\nint b;\r\n")
    assert read_kernel(tmp_path / "k.cu").candidate.source == "int a;\r\nint b;\r\n"


@pytest.mark.parametrize(("data", "message"), [(b"ok\n\xff", "k.cu:2: not UTF-8"), (b"a\0b", "binary file")])
def test_files_that_are_no_text_are_refused(tmp_path, data, message):
    (tmp_path / "k.cu").write_bytes(data)
    with pytest.raises(TaskError, match=message):
        read_kernel(tmp_path / "k.cu")


def test_a_missing_file_names_the_nearest_and_a_folder_is_no_file(tmp_path):
    write(tmp_path, kernel_cu="")
    with pytest.raises(TaskError, match="no kernel file") as caught:
        require_file(tmp_path / "kernal.cu", "kernel")
    assert "kernel.cu" in caught.value.remedy
    with pytest.raises(TaskError, match="is a folder"):
        require_file(tmp_path, "kernel")
    with pytest.raises(TaskError, match="no test file"):
        require_file(tmp_path / "nowhere" / "test.py", "test")


def test_a_test_source_holds_what_the_test_may_load(tmp_path):
    write(
        tmp_path,
        test_py='import a\nfrom pkg import b\nDATA = "data"\nX = "x.dat"\nk = "kernel.cu"\n',
        a_py="import deep\n",
        deep_py="",
        unused_py="",
        pkg____init___py="",
        notes_txt="",
        kernel_cu="",
        data__x_dat="1",
        data__y_dat="2",
    )
    (tmp_path / "pkg").mkdir(exist_ok=True)
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "b.py").write_text("")
    source = read_test_source(tmp_path / "test.py")
    assert source.files == (
        *("a.py", "data/x.dat", "deep.py", "notes.txt", "pkg/__init__.py", "pkg/b.py", "test.py"),
    )
    before = source.digest
    (tmp_path / "unused.py").write_text("changed")
    assert read_test_source(tmp_path / "test.py").digest == before
    (tmp_path / "deep.py").write_text("changed")
    assert read_test_source(tmp_path / "test.py").digest != before


def test_large_data_stays_behind_and_is_listed(tmp_path):
    write(tmp_path, test_py="")
    (tmp_path / "big.npy").write_bytes(bytes(MAX_DATA_BYTES + 1))
    source = read_test_source(tmp_path / "test.py")
    assert (source.files, source.left_behind) == (("test.py",), ("big.npy",))


def task_of(original: Candidate, tests: str) -> Task:
    return Task(
        name="saxpy",
        signature=SAXPY,
        cases=(Case(index=0, arguments={"n": 4}, timed=True),),
        roles={"x": Role.INPUT, "y": Role.INOUT, "tmp": Role.SCRATCH},
        tolerances={"y": Tolerance(rtol=0, atol=0)},
        original=original.digest,
        tests=tests,
    )


def test_a_snapshot_is_read_back_elsewhere(tmp_path):
    home, away = tmp_path / "home", tmp_path / "away"
    write(home, k_cu='#include "h.h"\r\n', h_h="", test_py="import a\n", a_py="")
    original = read_kernel(home / "k.cu").candidate
    tests = read_test_source(home / "test.py")
    assert write_snapshot(tmp_path / "run", task_of(original, tests.digest), original, tests) == ()
    (tmp_path / "run").rename(away)
    stored = read_snapshot(away)
    assert stored.original == original
    assert stored.task == task_of(original, tests.digest)
    assert (stored.tests.digest, stored.tests.folder) == (tests.digest, str(away / "tests"))
    write_snapshot(away, stored.task, stored.original, stored.tests)
    assert read_snapshot(away) == stored


def test_a_damaged_snapshot_is_refused(tmp_path):
    write(tmp_path / "home", k_cu="", test_py="")
    original = read_kernel(tmp_path / "home" / "k.cu").candidate
    tests = read_test_source(tmp_path / "home" / "test.py")
    run = tmp_path / "run"
    with pytest.raises(TaskError, match=r"holds no task.json"):
        read_snapshot(run)
    write_snapshot(run, task_of(original, tests.digest), original, tests)
    (run / "tests" / "test.py").write_text("changed")
    with pytest.raises(ArtifactCorrupt, match="the tests in"):
        read_snapshot(run)
    (run / "original" / "k.cu").write_text("changed")
    with pytest.raises(ArtifactCorrupt, match="the sources in"):
        read_snapshot(run)
    (run / "task.json").write_text("{")
    with pytest.raises(ArtifactCorrupt, match="cannot be read back"):
        read_snapshot(run)


def test_a_suite_is_a_folder_of_task_folders(tmp_path):
    write(tmp_path, b__kernel_cu="", b__test_py="", a__own_cu="", a__test_py="", README_md="")
    suite = load_suite(tmp_path)
    assert [entry.name for entry in suite.entries] == ["a", "b"]
    write(tmp_path, c__test_py="")
    with pytest.raises(TaskError, match=r"has no kernel.cu"):
        load_suite(tmp_path)
    with pytest.raises(TaskError, match="no task folders"):
        load_suite(tmp_path / "a")


def test_the_packaged_suite_is_found_by_name():
    assert "core" in packaged_suites()
    assert len(load_suite("core").entries) >= 12
    with pytest.raises(UnknownNameError, match="no suite folder 'coer'; did you mean 'core'"):
        load_suite("coer")
