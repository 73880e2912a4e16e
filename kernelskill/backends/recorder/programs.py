"""The recorder and the callers of launchers, compiled on first use and kept in the user's cache."""

from __future__ import annotations

import functools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernelskill.backends.elf import ElfFile
from kernelskill.backends.recorder.caller import caller_source
from kernelskill.backends.sandbox import require_not_killed
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import ToolchainError
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import Limits, clean_environment, run_child
from kernelskill.resources import cache_dir
from kernelskill.schema.base import canonical_json, sha256_bytes, sha256_text
from kernelskill.schema.task import Signature

_SOURCES = Path(__file__).parent
_COMPILE_S = 300.0
_FLAGS = (
    "-std=c++17", "-O1", "-fvisibility=hidden",
    # own_heap.cpp tells by these hooks whether the recorder or the candidate asks for memory.
    "-finstrument-functions", "-finstrument-functions-exclude-file-list=own_heap,include/c++",
)  # fmt: skip
_LINK_FLAGS = ("-rdynamic", "-Wl,--no-as-needed", "-ldl", "-lm", "-lpthread", "-lrt")
"""The host object finds the C and C++ libraries in the recorder, whether or not that uses them itself."""
_WORKERS = 4
_SYMBOL = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*\Z")


def recorder_program(toolchain: Toolchain) -> Path:
    """Return the recorder, compiled with this toolchain's headers.

    Raises:
        ToolchainError: The host compiler refuses it.
    """
    return _recorder_program(cache_dir(), toolchain)


def caller_library(signature: Signature, toolchain: Toolchain) -> Path:
    """Return the library that calls a launcher of this signature with the C ABI.

    Raises:
        ToolchainError: The host compiler refuses it.
    """
    return _caller_library(cache_dir(), caller_source(signature), toolchain)


def stand_ins(undefined: tuple[str, ...], toolchain: Toolchain) -> Path | None:
    """Return a library that refuses, by name and only when called, what the recorder does not have.

    Args:
        undefined: Symbols that a host object asks for.
        toolchain: Compiles it.

    Raises:
        ToolchainError: The host compiler refuses it.
    """
    known = _provided(recorder_program(toolchain))
    names = sorted({n for n in undefined if _SYMBOL.match(n)} - known)
    return _stand_ins(cache_dir(), tuple(names), toolchain) if names else None


@functools.cache
def _provided(program: Path) -> frozenset[str]:
    symbols = ElfFile(program.read_bytes(), "the recorder").dynamic_symbols
    return frozenset(symbol.name for symbol in symbols if symbol.section != 0)


@functools.lru_cache(maxsize=256)
def _stand_ins(home: Path, names: tuple[str, ...], toolchain: Toolchain) -> Path:
    lines = ['extern "C" [[noreturn]] void kernelskill_missing(const char* name);']
    for n, name in enumerate(names):
        lines.append(
            f'extern "C" __attribute__((visibility("default"))) void missing_{n}() __asm__("{name}");'
        )
        lines.append(f'void missing_{n}() {{ kernelskill_missing("{name}"); }}')
    source = "\n".join(lines) + "\n"
    key = sha256_text(canonical_json([source, toolchain.gxx_version]))

    def build(folder: Path) -> None:
        (folder / "missing.cpp").write_text(source, encoding="utf-8")
        _run(
            toolchain,
            ["-O1", "-shared", "-fPIC", "-fvisibility=hidden", "missing.cpp", "-o", "missing.so"],
            folder,
        )

    return _cache(home).get_or_build(key, build) / "missing.so"


@functools.cache
def _recorder_program(home: Path, toolchain: Toolchain) -> Path:
    files = sorted((*_SOURCES.glob("*.cpp"), *_SOURCES.glob("*.h")))
    key = canonical_json(
        [
            [(file.name, sha256_bytes(file.read_bytes())) for file in files],
            [*_FLAGS, *_LINK_FLAGS],
            toolchain.compiler,
            str(toolchain.cuda_include),
        ]
    )

    def build(folder: Path) -> None:
        objects = [f"{file.stem}.o" for file in files if file.suffix == ".cpp"]
        with ThreadPoolExecutor(_WORKERS) as pool:
            list(pool.map(lambda name: _compile_object(toolchain, folder, name), objects))
        _run(toolchain, [*objects, "-o", "recorder", *_LINK_FLAGS, *_library_path(toolchain)], folder)
        for name in objects:
            (folder / name).unlink()

    return _cache(home).get_or_build(sha256_text(key), build) / "recorder"


def _compile_object(toolchain: Toolchain, folder: Path, name: str) -> None:
    source = _SOURCES / f"{Path(name).stem}.cpp"
    include = f"-I{toolchain.cuda_include}"
    _run(toolchain, [*_FLAGS, include, "-c", str(source), "-o", name], folder)


@functools.cache
def _caller_library(home: Path, source: str, toolchain: Toolchain) -> Path:
    key = sha256_text(canonical_json([source, toolchain.gxx_version]))

    def build(folder: Path) -> None:
        (folder / "caller.cpp").write_text(source, encoding="utf-8")
        _run(toolchain, ["-O1", "-shared", "-fPIC", "caller.cpp", "-o", "caller.so"], folder)

    return _cache(home).get_or_build(key, build) / "caller.so"


@functools.cache
def _cache(home: Path) -> BuildCache:
    return BuildCache(home / "recorder")


@functools.cache
def _library_path(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the linker option that makes the recorder find the compiler's own C++ library."""
    command = [str(toolchain.gxx), "-print-file-name=libstdc++.so.6"]
    found = run_child(
        command, limits=Limits(wall_s=60), cwd=Path("/"), env=clean_environment()
    ).stdout.strip()
    folder = Path(found).parent
    return (f"-Wl,-rpath,{folder.resolve()}",) if folder.is_absolute() else ()


def _run(toolchain: Toolchain, arguments: list[str], folder: Path) -> None:
    command = [str(toolchain.gxx), *arguments]
    result = run_child(command, limits=Limits(wall_s=_COMPILE_S), cwd=folder, env=clean_environment())
    require_not_killed(result, toolchain.gxx.name)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or [result.stderr[-500:]]
        raise ToolchainError(
            f"g++ {toolchain.gxx_version} cannot compile the recorder: {lines[0]}",
            remedy="install a g++ with C++17 and the headers of CUDA 12 or 13",
        )
