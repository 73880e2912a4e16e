"""Every kind of bad input ends with one clear line, a remedy and its exit code, and loses nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flow.small_task import kernelskill, program

KERNEL = """\
__global__ void scale_kernel(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

extern "C" void scale(const float *x, float *y, int n)
{
    scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""

TEST = """\
import numpy as np

CASES = [dict(n=1), dict(n=1000), dict(n=4096, time=True)]


def make_inputs(rng, n):
    return {"x": rng.standard_normal(n, dtype=np.float32), "n": n}


def reference(x, n):
    return {"y": 2 * x}
"""

MAIN_ONLY = """\
#include <cstdio>
__global__ void k(float *y) { y[threadIdx.x] = 1.0f; }
int main() { float *y; cudaMalloc(&y, 128); k<<<1, 32>>>(y); return 0; }
"""


def write(folder: Path, kernel: str = KERNEL, test: str = TEST) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.cu").write_text(kernel, encoding="utf-8")
    (folder / "test.py").write_text(test, encoding="utf-8")
    return folder / "kernel.cu", folder / "test.py"


RACE = """\
__global__ void scale_kernel(const float *x, float *y, int n)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (i < n) y[i] = tile[threadIdx.x] + tile[(threadIdx.x + 32) % 256] * 0.0f + x[i];
}

extern "C" void scale(const float *x, float *y, int n)
{
    scale_kernel<<<(n + 255) / 256, 256>>>(x, y, n);
}
"""

BAD = {
    "does not compile": (KERNEL.replace("2.0f * x[i]", "2.0f * q[i]"), TEST, ["kernel.cu:4", "q"]),
    "no launcher": ("__device__ int f() { return 1; }\n", TEST, ["launcher"]),
    "only main": (MAIN_ONLY, TEST, ["main"]),
    "syntax error": (KERNEL, TEST + "\ndef broken(:\n", ["test.py:13"]),
    "raises": (KERNEL, "raise RuntimeError('no data here')\n" + TEST, ["no data here"]),
    "no reference": (KERNEL, TEST.split("def reference")[0], ["reference"]),
    "zero cases": (
        KERNEL,
        TEST.replace("[dict(n=1), dict(n=1000), dict(n=4096, time=True)]", "[]"),
        ["CASES"],
    ),
    "wrong name": (KERNEL, TEST.replace('"x": rng', '"xx": rng'), ["xx", "x"]),
    "wrong dtype": (KERNEL, TEST.replace(", dtype=np.float32", ""), ["float64", "float"]),
    "wrong shape": (
        KERNEL,
        TEST.replace('return {"y": 2 * x}', 'return {"y": np.zeros(n)[:-1] if n > 1 else 2 * x}'),
        ["y"],
    ),
    "reference raises": (KERNEL, TEST.replace("2 * x", "1 / 0"), ["division by zero"]),
    "original is wrong": (KERNEL.replace("2.0f * x[i]", "3.0f * x[i]"), TEST, ["y[0]", "expected"]),
    "original writes past the end": (
        KERNEL.replace("i < n", "i <= n").replace("n + 255", "n + 256"),
        TEST,
        ["out_of_bounds", "n=1", "buffer"],
    ),
    "original races": (RACE, TEST, ["sanitizer_error", "n=1", "race:", "line 6"]),
    "the gpu has too little memory": (
        KERNEL.replace("scale_kernel<<<", "float *t; cudaMalloc(&t, 1ull << 42); scale_kernel<<<"),
        TEST,
        ["out_of_memory", "n=1", "4398046511104 bytes", "make the cases smaller"],
    ),
    "weak test": (KERNEL, TEST + "\nTOLERANCE = dict(rtol=1e9, atol=1e9)\n", ["zeros"]),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_task_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    kernel, test, words = BAD[name]
    files = write(tmp_path / "my task \u00fc", kernel, test)
    result = kernelskill(
        "run", files[0], "--tests", files[1], "--device", "emulated", "--out", "out", cwd=tmp_path
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr
    assert files[0].read_text() == kernel


def test_a_test_that_hangs_is_stopped_and_named(tmp_path: Path) -> None:
    files = write(tmp_path, test="while True:\n    pass\n")
    script = (
        "from pathlib import Path\n"
        "from kernelskill.tasks.load import load_task\n"
        "from kernelskill.errors import TaskError\n"
        "try:\n"
        f"    load_task(Path({str(files[0])!r}), Path({str(files[1])!r}), timeout_s=2)\n"
        "except TaskError as error:\n"
        "    print(error.message)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "2" in result.stdout
    assert "test.py" in result.stdout


def test_missing_files_and_wrong_options(tmp_path: Path) -> None:
    files = write(tmp_path)
    wrong = [
        (["run", "nothing.cu", "--tests", files[1]], 2, "nothing.cu"),
        (["run", files[0], "--tests", "nothing.py"], 2, "nothing.py"),
        (["run", files[0]], 2, "--tests"),
        (["run", files[0], "--tests", files[1], "--device", "tpu"], 2, "tpu"),
        (["run", files[0], "--tests", files[1], "--device", "emulated:h20"], 2, "h200"),
        (["run", files[0], "--tests", files[1], "--budget", "soon"], 2, "soon"),
        (
            ["run", files[0], "--tests", files[1], "--device", "emulated", "--only-kernel", "nope"],
            2,
            "scale_kernel",
        ),
        (["resume", tmp_path], 2, "holds no run"),
        (["report", tmp_path], 2, "holds no run"),
        (["skills", "show", "unrol"], 2, "unroll"),
        (["bench", tmp_path / "none"], 2, "none"),
        (["frobnicate"], 2, "frobnicate"),
    ]
    for arguments, code, word in wrong:
        result = kernelskill(*arguments, cwd=tmp_path)
        assert result.returncode == code, (arguments, result.stderr)
        assert word in result.stderr, (arguments, result.stderr)
        assert "Traceback" not in result.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_an_output_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    files = write(tmp_path)
    (tmp_path / "file").write_text("in the way")
    result = program(
        "run",
        files[0],
        "--tests",
        files[1],
        "--device",
        "emulated",
        "--out",
        tmp_path / "file" / "out",
        cwd=tmp_path,
    )
    assert result.returncode == 2
    assert "--out" in result.stderr


def test_errors_are_json_where_json_was_asked_for(tmp_path: Path) -> None:
    result = program("run", "nothing.cu", "--tests", "t.py", "--json", cwd=tmp_path)
    assert result.returncode == 2
    assert '"kind": "error"' in result.stdout
    assert '"exit_code": 2' in result.stdout
