"""A worker on a stand-in driver: everything but the GPU is real."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelskill.backends.cuda.client import CudaWorker
from kernelskill.backends.cuda.prepared import WorkerProcess
from kernelskill.backends.cuda.replay_core import compile_core
from kernelskill.backends.toolchain import Toolchain
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.schema.base import sha256_bytes
from kernelskill.schema.build import Build, DeviceVariable, KernelParameter, KernelResources

KERNELS = ("add_one", "overrun", "underrun", "count", "illegal", "hang")


@pytest.fixture(scope="session")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_core(Toolchain.find(), BuildCache(tmp_path_factory.mktemp("cores")))


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    toolchain = Toolchain.find()
    source = Path(__file__).with_name("fake_driver.cpp")
    command = [str(toolchain.gxx), "-O1", "-std=c++17", "-shared", "-fPIC", f"-I{toolchain.cuda_include}"]
    subprocess.run([*command, str(source), "-o", str(folder / "libcuda.so.1")], check=True)
    return folder / "libcuda.so.1"


@pytest.fixture
def fake_driver(driver_library: Path) -> Iterator[Path]:
    """Put the stand-in driver on the library path of children; return its log of calls."""
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = str(driver_library.parent)
    log = driver_library.parent / "calls.log"
    log.unlink(missing_ok=True)
    yield log
    if before is None:
        del os.environ["LD_LIBRARY_PATH"]
    else:
        os.environ["LD_LIBRARY_PATH"] = before


@pytest.fixture
def build(tmp_path: Path) -> Build:
    image = b"not a real cubin"
    (tmp_path / "device.cubin").write_bytes(image)
    parameters = (KernelParameter(offset=0, size=8), KernelParameter(offset=8, size=4))
    kernels = tuple(
        KernelResources(
            name=name, display_name=name, registers=16, static_shared_bytes=0, parameters=parameters
        )
        for name in KERNELS
    )
    return Build(
        key="f" * 64,
        folder=str(tmp_path),
        architecture="sm_90a",
        device_code=sha256_bytes(image),
        kernels=kernels,
        variables=(DeviceVariable(name="counter", size_bytes=4, constant=False),),
    )


@pytest.fixture
def open_worker(fake_driver: Path, core: Path, build: Build) -> Iterator[Callable[[], CudaWorker]]:
    workers: list[CudaWorker] = []

    def start() -> CudaWorker:
        workers.append(CudaWorker(WorkerProcess(0, core), build))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()
