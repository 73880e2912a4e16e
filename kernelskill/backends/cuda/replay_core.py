"""The replay loop in C++: compiled once into the user's cache, called through ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_int32, c_uint32, c_uint64, c_void_p
from pathlib import Path

from kernelskill.backends.sandbox import require_not_killed
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing, HarnessError
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import Limits, run_child
from kernelskill.schema.base import sha256_text

_SOURCE = Path(__file__).with_name("replay.cpp")
_LIBRARY = "replay.so"
_COMPILE_S = 120.0

LAUNCH, MEMSET, COPY_DEVICE, COPY_HOST, COPY_2D, RECORD, WAIT, GRAPH = range(8)
COOPERATIVE, PROGRAMMATIC, CLUSTER = 1, 2, 4


class Operation(ctypes.Structure):
    """One operation as `replay.cpp` lays it out."""

    _fields_ = (
        ("kind", c_int32),
        ("flags", c_int32),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("cluster", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("handle", c_uint64),
        ("stream", c_uint64),
        ("parameters", c_void_p),
        ("destination", c_uint64),
        ("source", c_uint64),
        ("size", c_uint64),
        ("value", c_uint64),
        ("destination_pitch", c_uint64),
        ("source_pitch", c_uint64),
        ("height", c_uint64),
    )


OperationArray = ctypes.Array[Operation]


class ReplayCore:
    """The loaded loop. The driver library must have been loaded globally before.

    Raises:
        HarnessError: The library cannot be loaded or lays operations out differently.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise HarnessError(f"the replay core cannot be loaded: {error}") from error
        self._library.replay.argtypes = (c_void_p, c_int, POINTER(c_int))
        self._library.timed.argtypes = (
            *(c_void_p, c_int, c_int, c_uint64, c_uint64, c_uint64, c_int, c_uint64, c_uint64),
            POINTER(c_int),
        )
        if self._library.operation_size() != ctypes.sizeof(Operation):
            raise HarnessError(
                "the replay core lays operations out differently", remedy="clear the cache folder"
            )

    def replay(self, operations: OperationArray, count: int) -> tuple[int, int]:
        """Carry out `count` operations; return the driver's result code and where it stopped."""
        where = c_int(-1)
        code = self._library.replay(ctypes.addressof(operations), count, byref(where))
        return int(code), where.value

    def timed(
        self,
        operations: OperationArray,
        count: int,
        *,
        repeats: int,
        stream: int,
        flush: tuple[int, int],
        ahead: int,
        events: tuple[int, int],
    ) -> tuple[int, int]:
        """Queue `repeats` replays between two events behind `ahead` fills of the flush buffer."""
        where = c_int(-1)
        code = self._library.timed(
            ctypes.addressof(operations), count, repeats, stream, *flush, ahead, *events, byref(where)
        )
        return int(code), where.value


def compile_core(toolchain: Toolchain, cache: BuildCache) -> Path:
    """Return the compiled loop, made on first use with the toolchain's host compiler.

    Raises:
        CompilerMissing: It does not compile here.
    """
    source = _SOURCE.read_text(encoding="utf-8")
    key = "replay-" + sha256_text(f"{source}\n{toolchain.compiler}\n{toolchain.cuda_include}")[:32]

    def build(folder: Path) -> None:
        command = [
            *(str(toolchain.gxx), "-O2", "-std=c++17", "-shared", "-fPIC"),
            *(f"-I{toolchain.cuda_include}", str(_SOURCE), "-o", str(folder / _LIBRARY)),
        ]
        done = run_child(command, limits=Limits(wall_s=_COMPILE_S), cwd=folder)
        require_not_killed(done, "the compiler of the replay core")
        if done.returncode != 0 or done.timed_out:
            first = done.stderr.strip().partition("\n")[0] or f"exit status {done.returncode}"
            raise CompilerMissing(
                f"the replay core does not compile: {first}", remedy="install g++ and CUDA's headers"
            )

    return cache.get_or_build(key, build) / _LIBRARY
