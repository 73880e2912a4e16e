"""A workbench: one nvcc run for a file of launchers, then each of them recorded."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelskill.backends.base import Call, PointerArgument, Unrecordable
from kernelskill.backends.cubin import read_cubin
from kernelskill.backends.element_types import element_type
from kernelskill.backends.elf import ElfFile
from kernelskill.backends.entry import ENTRY_SYMBOL
from kernelskill.backends.recorder import record
from kernelskill.backends.toolchain import Toolchain
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.base import sha256_bytes
from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.task import Parameter, Signature

HERE = Path(__file__).parent
SIZE = 4096


def pointer(name: str) -> Parameter:
    return Parameter(name=name, kind="pointer", element=element_type("float"), declared="float*")


def scalar(name: str, kind: str) -> Parameter:
    return Parameter(name=name, kind="scalar", element=element_type(kind), declared=kind)


STREAM = Parameter(name="stream", kind="stream", element=None, declared="cudaStream_t")
ORDINARY = (pointer("x"), pointer("y"), scalar("n", "int"))


@dataclass(frozen=True)
class Source:
    """A file of launchers, compiled once; any of them can be made the entry."""

    folder: Path
    toolchain: Toolchain

    def build(self, launcher: str) -> Build:
        folder = self.folder / launcher
        if not folder.exists():
            folder.mkdir()
            link = [self.toolchain.gxx, "-shared", f"-Wl,--defsym,{ENTRY_SYMBOL}={launcher}"]
            subprocess.run([*link, self.folder / "host.o", "-o", folder / "host.so"], check=True)
        cubin = (self.folder / "device.cubin").read_bytes()
        kernels, variables = read_cubin(cubin)
        return Build(
            key="0" * 64,
            folder=str(folder),
            architecture="sm_90a",
            device_code=sha256_bytes(cubin),
            kernels=kernels,
            variables=variables,
            undefined_symbols=ElfFile((folder / "host.so").read_bytes()).unprovided_symbols(),
        )

    def record(
        self,
        launcher: str,
        *,
        parameters: tuple[Parameter, ...] = ORDINARY,
        returns: str = "void",
        buffers: dict[str, int] | None = None,
        places: dict[str, PointerArgument] | None = None,
        scalars: dict[str, int | float | bool | str] | None = None,
        gpu: str = "h200",
        timeout_s: float = 15,
    ) -> LaunchPlan | Unrecordable:
        names = [p.name for p in parameters if p.kind == "pointer"]
        call = Call(
            buffers=buffers or dict.fromkeys(names, 4 * SIZE),
            pointers=places or {name: PointerArgument(buffer=name) for name in names},
            scalars={"n": SIZE} if scalars is None else scalars,
        )
        signature = Signature(symbol=launcher, parameters=parameters, returns=returns)
        return record(
            self.build(launcher),
            signature,
            call,
            gpu=find_gpu(gpu),
            toolchain=self.toolchain,
            timeout_s=timeout_s,
        )


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return Toolchain.find()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Callable[..., Source]:
    """Compile a file of this folder, as candidates are compiled."""
    done: dict[tuple[str, ...], Source] = {}

    def compile_file(name: str, *flags: str) -> Source:
        key = (name, *flags)
        if key not in done:
            folder = tmp_path_factory.mktemp(Path(name).stem)
            command = [toolchain.nvcc, "-gencode", "arch=compute_90a,code=sm_90a", "-cudart", "none", "-w"]
            command += ["-Xcompiler", "-fPIC,-fno-tree-sra,-ftrivial-auto-var-init=zero", *flags]
            command += ["--keep", "--keep-dir", folder, "-c", HERE / name, "-o", folder / "host.o"]
            subprocess.run(command, check=True, cwd=folder)
            next(folder.glob("*.cubin")).rename(folder / "device.cubin")
            done[key] = Source(folder, toolchain)
        return done[key]

    return compile_file


@pytest.fixture(scope="session")
def launchers(compiled: Callable[..., Source]) -> Source:
    return compiled("launchers.cu")


@pytest.fixture(scope="session")
def refused(compiled: Callable[..., Source]) -> Source:
    return compiled("refused.cu")


@pytest.fixture(scope="session")
def library(compiled: Callable[..., Source]) -> Source:
    return compiled("library.cu")
