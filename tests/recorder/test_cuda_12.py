"""What CUDA 12 does otherwise, where `KERNELSKILL_CUDA12` names a toolkit of it.

The folder is a toolkit (with `bin/nvcc`), or a virtual environment with pip's `nvidia-cuda-runtime-cu12` and
`nvidia-cuda-nvcc-cu12`, which have headers and ptxas but no nvcc; only the recorder is tried with those. With a
toolkit first on the PATH, the other tests of `tests/recorder` and `tests/emulated` are tried with it too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelskill.backends.toolchain import Toolchain
from kernelskill.schema.launch_plan import LaunchPlan
from tests.flow.small_task import environment, kernelskill, of_kind, write_task
from tests.recorder.conftest import Source

VARIABLE = "KERNELSKILL_CUDA12"
HOME = Path(os.environ.get(VARIABLE) or "/nonexistent")
LAUNCHERS = ("simple", "cluster", "graph", "symbols")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(VARIABLE not in os.environ, reason=f"set {VARIABLE} to a toolkit of CUDA 12"),
]
needs_nvcc = pytest.mark.skipif(
    not (HOME / "bin" / "nvcc").is_file(),
    reason=f"{str(HOME / 'bin')!r} has no nvcc (pip's packages bring none)",
)


def header_folders() -> Iterator[Path]:
    """Yield where the headers lie: all below one folder, or a folder a package."""
    yield from (folder for folder in (HOME / "include", *HOME.glob("targets/*/include")) if folder.is_dir())
    yield from sorted(HOME.glob("lib/python3.*/site-packages/nvidia/cuda_*/include"))


@pytest.fixture(scope="module")
def include(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with all of the headers."""
    together = tmp_path_factory.mktemp("cuda12")
    for folder in header_folders():
        for header in folder.iterdir():
            if not (together / header.name).exists():
                (together / header.name).symlink_to(header)
    return together


@pytest.fixture(scope="module")
def older(include: Path, toolchain: Toolchain) -> Toolchain:
    """This machine's compilers with the headers of CUDA 12."""
    found = re.search(r"#define CUDART_VERSION\s+(\d+)", (include / "cuda_runtime_api.h").read_text())
    assert found, "no version in cuda_runtime_api.h"
    major, minor = divmod(int(found[1]) // 10, 100)
    assert major == 12, f"CUDA {major}.{minor}"
    return replace(toolchain, cuda_include=include, nvcc_version=f"{major}.{minor}.0")


@pytest.mark.parametrize("flags", [(), ("-D__NV_LEGACY_LAUNCH", "-Xcompiler", "-D__NV_LEGACY_LAUNCH")])
def test_a_recorder_with_its_headers_records_either_stubs(
    compiled: Callable[..., Source], older: Toolchain, flags: tuple[str, ...]
) -> None:
    source = compiled("launchers.cu", *flags)
    for launcher in LAUNCHERS:
        plan = replace(source, toolchain=older).record(launcher)
        assert isinstance(plan, LaunchPlan), plan
        assert plan == source.record(launcher)


@needs_nvcc
def test_a_run_with_its_compiler(tmp_path: Path) -> None:
    write_task(tmp_path)
    env = environment(PATH=f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}")
    checked = kernelskill(
        "check", "kernel.cu", "-t", "test.py", "--device", "emulated", cwd=tmp_path, env=env
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    arguments = (
        "kernel.cu",
        "-t",
        "test.py",
        "--device",
        "emulated",
        "--rounds",
        "1",
        "--no-learn",
        "--out",
        "run",
    )
    done = kernelskill("run", *arguments, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| compiler | 12." in (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    evaluated = of_kind(tmp_path / "run", "evaluated")
    assert evaluated
    assert all(event.status.value == "passed" for event in evaluated), [event.status for event in evaluated]
