"""Whole runs of sources of every kind: what the user wrote stays as it was, but for what was sped up."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernelskill.runs import RunFolder
from kernelskill.schema.proposal import Proposal
from tests.flow.small_task import KERNEL, TEST, events, kernelskill, of_kind, optimised, section, write_task

pytestmark = pytest.mark.slow
RUN = ["-q", "--no-learn", "--device", "emulated", "--rounds", "1", "--out", "out"]


def run(folder: Path, name: str = "kernel.cu", *options: object) -> str:
    return optimised("run", name, "-t", "test.py", *RUN, *options, cwd=folder).stdout


def rewritten(folder: Path) -> list[str]:
    """The text of every candidate that was tried."""
    run_folder = RunFolder(folder / "out")
    return [
        file.text
        for event in of_kind(folder / "out", "evaluated")
        for file in run_folder.get("proposals", event.proposal, Proposal).candidate.files
    ]


def test_line_ends_marks_and_regions_that_are_off_stay_byte_for_byte(tmp_path: Path) -> None:
    locked = "// kernelskill: off\n__device__ float   odd( float v ){return 0.5*v ;}\t\n// kernelskill: on\n"
    text = (locked + KERNEL).replace("\n", "\r\n")
    write_task(tmp_path, text, name="na\u00efve kernel.cu")
    run(tmp_path, "na\u00efve kernel.cu")
    tried = rewritten(tmp_path)
    assert tried
    result = (tmp_path / "out" / "result" / "na\u00efve kernel.cu").read_bytes()
    for data in (result, *(each.encode() for each in tried)):
        assert locked.replace("\n", "\r\n").encode() in data
        assert data.count(b"\n") == data.count(b"\r\n")
    for patch in sorted((tmp_path / "out" / "patches").glob("*.patch")):
        subprocess.run(["patch", "--binary", "-p1", "-i", patch], cwd=tmp_path, check=True)
    assert (tmp_path / "na\u00efve kernel.cu").read_bytes() == result


def test_a_local_header_goes_along(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "half.cuh").write_text("#pragma once\n#define HALF 0.5\n")
    write_task(tmp_path, '#include "include/half.cuh"\n' + KERNEL.replace("0.5 *", "HALF *"))
    run(tmp_path)
    assert (tmp_path / "out" / "result" / "include" / "half.cuh").is_file()
    subprocess.run(
        ["nvcc", "-arch=sm_90", "-c", "-o", str(tmp_path / "r.o"), "reproducer.cu"],
        cwd=tmp_path / "out" / "result",
        check=True,
        timeout=120,
    )


def test_a_bare_kernel_whose_launch_stands_in_the_test(tmp_path: Path) -> None:
    kernel = KERNEL[: KERNEL.index('extern "C"')]
    test = TEST + (
        "\n\ndef launch(rows, cols):\n    return dict(grid=((cols + 127) // 128,), block=(128,))\n"
    )
    write_task(tmp_path, kernel, test)
    said = run(tmp_path)
    assert "means" in said
    result = (tmp_path / "out" / "result" / "kernel.cu").read_text()
    assert "__global__" in result


def test_sixteen_bit_floats(tmp_path: Path) -> None:
    kernel = (
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        "__global__ void widen(const __half *x, const __nv_bfloat16 *b, float *y, int n)\n{\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i < n) y[i] = 2.0 * __half2float(x[i]) + __bfloat162float(b[i]);\n}\n"
        'extern "C" void widened(const __half *x, const __nv_bfloat16 *b, float *y, int n)\n{\n'
        "    widen<<<(n + 255) / 256, 256>>>(x, b, y, n);\n}\n"
    )
    test = (
        "import ml_dtypes\nimport numpy as np\n\n"
        "CASES = [dict(n=1), dict(n=1000), dict(n=50_000, time=True)]\n\n\n"
        "def make_inputs(rng, n):\n"
        "    values = rng.standard_normal((2, n), dtype=np.float32)\n"
        '    return {"x": values[0].astype(np.float16), "b": values[1].astype(ml_dtypes.bfloat16), "n": n}\n\n\n'
        "def reference(x, b):\n"
        '    return {"y": 2 * x.astype(np.float64) + b.astype(np.float64)}\n'
    )
    write_task(tmp_path, kernel, test)
    run(tmp_path)
    assert of_kind(tmp_path / "out", "evaluated")


def test_where_nothing_applies_the_run_ends_at_once_with_every_reason(tmp_path: Path) -> None:
    kernel = (
        "__global__ void last(const int *x, int *y, int n)\n{\n"
        "    // kernelskill: off\n    if (threadIdx.x == 0) y[0] = x[n - 1];\n    // kernelskill: on\n}\n"
        '// kernelskill: off\nextern "C" void last_of(const int *x, int *y, int n) { last<<<1, 1>>>(x, y, n); }\n'
    )
    test = (
        "import numpy as np\n\nCASES = [dict(n=2), dict(n=100, time=True)]\n\n\n"
        "def make_inputs(rng, n):\n"
        '    return {"x": rng.integers(-9, 9, n, dtype=np.int32), "n": n}\n\n\n'
        'def reference(x):\n    return {"y": x[-1:].copy()}\n'
    )
    write_task(tmp_path, kernel, test)
    said = run(tmp_path, "kernel.cu", "--rounds", "5")
    proposed = sum(len(event.proposals) for event in of_kind(tmp_path / "out", "proposed"))
    finished = of_kind(tmp_path / "out", "run_finished")[0]
    assert (proposed, finished.reason) == (0, "nothing_to_do")
    assert "no change accepted; nothing could be tried" in said
    report = (tmp_path / "out" / "report.md").read_text()
    assert "nothing is left to try" in report
    refused = {r.skill for event in of_kind(tmp_path / "out", "proposed") for r in event.refusals}
    reasons = section(report, "What did not apply to the original")
    assert all(skill in reasons for skill in refused)
    assert len(refused) >= 10


def test_one_kernel_alone_is_rewritten_where_that_is_asked_for(tmp_path: Path) -> None:
    second = KERNEL.replace("means(", "others(").replace("means<<<", "others<<<")
    second = second[: second.index('extern "C"')]
    both = second + KERNEL.replace(
        "    means<<<(cols + 127) / 128, 128>>>(a, m, rows, cols);\n",
        "    others<<<(cols + 127) / 128, 128>>>(a, m, rows, cols);\n"
        "    means<<<(cols + 127) / 128, 128>>>(a, m, rows, cols);\n",
    )
    write_task(tmp_path, both)
    run(tmp_path, "kernel.cu", "--only-kernel", "others")
    labels = [label for event in of_kind(tmp_path / "out", "proposed") for label in event.labels]
    assert labels
    assert all("others" in label for label in labels)
    body = both[both.index("__global__ void means") : both.index('extern "C"')]
    assert all(body in text for text in rewritten(tmp_path))


def test_a_wrong_original_leaves_a_run_that_says_so(tmp_path: Path) -> None:
    write_task(tmp_path, KERNEL.replace("0.5 *", "0.4 *"))
    done = kernelskill("run", "kernel.cu", "-t", "test.py", *RUN, cwd=tmp_path)
    assert done.returncode == 2
    assert "incorrect: case rows=3, cols=5: m[0] is " in done.stderr
    assert events(tmp_path / "out")[-1].kind == "failed"
    report = kernelskill("report", "out", cwd=tmp_path)
    assert report.returncode == 2
    assert "m[0]" in report.stderr
    write_task(tmp_path)
    optimised("run", "kernel.cu", "-t", "test.py", *RUN, "--rounds", "0", cwd=tmp_path)
