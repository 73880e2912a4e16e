"""The compilers and binary tools of this machine, found once."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernelskill.errors import CompilerMissing

_NVCC_REMEDY = "pip install 'kernelskill[nvcc]'"
_GXX_REMEDY = "apt install g++"
_NVCC_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")
_ASK_S = 60.0


@dataclass(frozen=True)
class Toolchain:
    """What compiles candidates: nvcc with its headers, and the host compiler beneath it."""

    nvcc: Path
    """The driver as found; may be a shell script that calls the real one."""
    nvcc_version: str
    """For example `13.0.88`."""
    root: Path
    """Folder of the toolkit that nvcc belongs to; all that it reads lies below."""
    cuda_include: Path
    """Folder of `cuda_runtime.h`."""
    gxx: Path
    gxx_version: str
    """For example `12.2.0`."""
    cuobjdump: Path | None = None
    nvdisasm: Path | None = None

    @property
    def compiler(self) -> str:
        """Name and versions, as they enter build keys and conditions."""
        return f"nvcc {self.nvcc_version}, g++ {self.gxx_version}"

    @property
    def nvcc_major(self) -> int:
        """12 or 13."""
        return int(self.nvcc_version.split(".")[0])

    def is_too_new_for(self, cuda: str) -> bool:
        """Whether a driver need not load what this nvcc makes.

        Args:
            cuda: The newest CUDA that the driver serves, for example `12.4`; it serves all of that major version.
        """
        return self.nvcc_major > int(cuda.split(".")[0])

    @staticmethod
    def find() -> Toolchain:
        """Return the toolchain; the same answer for the whole life of the process.

        nvcc is looked for on PATH, in $CUDA_HOME and $CUDA_PATH, in /usr/local/cuda, then among the
        installed Python packages.

        Raises:
            CompilerMissing: There is no nvcc or no g++, or one of them does not run.
        """
        return _find(
            os.environ.get("PATH", ""), os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")
        )


@functools.cache
def _find(path: str, cuda_home: str, cuda_path: str) -> Toolchain:
    nvcc = _first_program("nvcc", path, (cuda_home, cuda_path, "/usr/local/cuda"))
    if nvcc is None:
        without = " (nvidia-cuda-nvcc-cu12 brings none, only ptxas)" if _has_ptxas_alone() else ""
        raise CompilerMissing(
            f"nvcc was found neither on PATH nor among the Python packages{without}", remedy=_NVCC_REMEDY
        )
    gxx = shutil.which("g++", path=path)
    if gxx is None:
        raise CompilerMissing("no host compiler: g++ was not found on PATH", remedy=_GXX_REMEDY)
    version = _NVCC_VERSION.search(_ask(nvcc, ["--version"], _NVCC_REMEDY))
    if version is None:
        raise CompilerMissing(f"{str(nvcc)!r} does not say its version as nvcc does", remedy=_NVCC_REMEDY)
    root = _toolkit_root(nvcc)
    return Toolchain(
        nvcc=nvcc,
        nvcc_version=version.group(1),
        root=root,
        cuda_include=_include_folder(root),
        gxx=Path(gxx),
        gxx_version=_ask(Path(gxx), ["-dumpfullversion"], _GXX_REMEDY).strip(),
        cuobjdump=_first_program("cuobjdump", path, (str(root), cuda_home, cuda_path)),
        nvdisasm=_first_program("nvdisasm", path, (str(root), cuda_home, cuda_path)),
    )


def _first_program(name: str, path: str, roots: tuple[str, ...]) -> Path | None:
    on_path = shutil.which(name, path=path)
    if on_path is not None:
        return Path(on_path)
    candidates = [Path(root, "bin", name) for root in roots if root]
    candidates += packaged_programs(name)
    return next((program for program in candidates if os.access(program, os.X_OK)), None)


def packaged_programs(name: str, package: str = "") -> list[Path]:
    """Return where pip's `nvidia-*` packages keep a program of the toolkit, the newest first.

    Args:
        name: The program.
        package: What its package for CUDA 12 is named after, where that is not the program.
    """
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    folders = [
        folder
        for root in roots
        for folder in (*sorted(root.glob("cu[0-9]*"), reverse=True), root / f"cuda_{package or name}")
    ]
    return [program for folder in folders if (program := folder / "bin" / name).is_file()]


def _has_ptxas_alone() -> bool:
    """Whether the package for CUDA 12 is installed, whose name promises more than it holds."""
    return any(program.parents[1].name == "cuda_nvcc" for program in packaged_programs("ptxas", "nvcc"))


def _toolkit_root(nvcc: Path) -> Path:
    """Ask nvcc where it lives: a script on PATH may call one that lies elsewhere."""
    said = _ask(nvcc, ["--dryrun", "-E", "-x", "cu", os.devnull], _NVCC_REMEDY)
    here = re.search(r"^#\$ _HERE_=(.+)$", said, re.MULTILINE)
    return (Path(here.group(1)) if here else nvcc.resolve().parent).parent


def _include_folder(root: Path) -> Path:
    places = [
        root / "include",
        *sorted(root.glob("targets/*/include")),
        root.parent / "cuda_runtime" / "include",
        Path("/usr/include"),
    ]
    for place in places:
        if (place / "cuda_runtime.h").is_file():
            return place
    raise CompilerMissing(f"the CUDA toolkit in {str(root)!r} lacks cuda_runtime.h", remedy=_NVCC_REMEDY)


def _ask(program: Path, arguments: list[str], remedy: str) -> str:
    try:
        done = subprocess.run(
            [str(program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_ASK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompilerMissing(f"{str(program)!r} does not run: {error}", remedy=remedy) from error
    if done.returncode != 0:
        first = done.stdout.strip().partition("\n")[0]
        raise CompilerMissing(f"{str(program)!r} does not run: {first}", remedy=remedy)
    return done.stdout
