"""Kernels on the CPU: sources compiled with a small stand-in for CUDA, called in a child process.

Buffers lie flush against pages that fault, so that reads outside them end the child; misaligned
vector accesses end it too. Threads of a block meet at barriers and shuffles.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelskill.algorithm.types import canonical, numpy_type
from kernelskill.backends.emulated.library import RUNTIME
from kernelskill.source.signature import find_launchers
from kernelskill.source.unit import SourceUnit

DEVICE = Path(__file__).parent / "device"
SWITCH = RUNTIME / "ks_switch.h"
FLAGS = ["-std=c++17", "-O0", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w"]
CHECKS = ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]
_MEETS = re.compile(r"__sync|__shfl|__ballot|__any_sync|__all_sync|__reduce")
_DYNAMIC = re.compile(
    r"extern\s+__shared__\s+(?:__align__\(\d+\)\s+|alignas\(\d+\)\s+)?([\w ]+?)\s+(\w+)\[\];"
)


class CompileFailed(Exception):
    """A source does not compile for the CPU."""


class NotForThisHarness(Exception):
    """A file needs what the stand-in for CUDA has not."""


class RunFailed(Exception):
    """A kernel crashed, read outside its buffers, hung or deadlocked."""


@dataclass(frozen=True)
class Alias:
    """A pointer into the buffer of another parameter."""

    of: str
    offset: int
    """In elements; may be negative."""


@dataclass
class Call:
    """One call of a launcher."""

    library_name: str
    """Name that `Library.build` gave the source."""
    arguments: Mapping[str, Any]
    """Arrays, `Alias`es and scalars by parameter name."""
    reversed: bool = False
    """Whether blocks and threads run last first."""
    flush: str = "end"
    """Which end of a buffer lies against the page that faults; `odd`: near the end, at an odd element."""


@dataclass
class Library:
    """Compiled sources, each under a name."""

    path: Path
    signatures: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Name -> parameters of the launcher: name and declared type."""

    def run(self, calls: Sequence[Call], timeout_s: int = 60) -> list[dict[str, np.ndarray]]:
        """Return, for every call, its buffers afterwards.

        Raises:
            RunFailed: The child did not end well.
        """
        job = struct.pack("<I", len(calls)) + b"".join(self._packed(call) for call in calls)
        # Time of its own: other programs on the machine do not make it late.
        limit = ["prlimit", f"--cpu={timeout_s}"]
        try:
            done = subprocess.run(
                [*limit, runner(), self.path],
                input=job,
                capture_output=True,
                check=False,
                timeout=10 * timeout_s,
            )
        except subprocess.TimeoutExpired:
            raise RunFailed(f"no end after {10 * timeout_s} s") from None
        if done.returncode == -signal.SIGXCPU:
            raise RunFailed(f"no end after {timeout_s} s of its own")
        if done.returncode != 0:
            raise RunFailed(f"exit {done.returncode}: {done.stderr.decode()[-500:]}")
        results, at = [], 0
        for call in calls:
            outputs: dict[str, np.ndarray] = {}
            for name, value in call.arguments.items():
                if isinstance(value, np.ndarray):
                    raw = done.stdout[at : at + value.nbytes]
                    outputs[name] = np.frombuffer(raw, value.dtype).reshape(value.shape)
                    at += value.nbytes + _gap(value, call)
            results.append(outputs)
        return results

    def _packed(self, call: Call) -> bytes:
        signature = self.signatures[call.library_name]
        symbol = f"call_{call.library_name}".encode()
        order = [name for name, _ in signature if name in call.arguments]
        assert set(order) == set(call.arguments), (order, list(call.arguments))
        call.arguments = {name: call.arguments[name] for name in order}
        parts = [struct.pack("<I", len(symbol)), symbol, struct.pack("<II", call.reversed, len(signature))]
        for name, kind in signature:
            value = call.arguments.get(name, 0)
            if isinstance(value, np.ndarray):
                where = 2 if call.flush == "start" else 1
                raw = value.tobytes() + bytes(_gap(value, call))
                parts += [struct.pack("<IQ", where, len(raw)), raw]
            elif isinstance(value, Alias):
                target = call.arguments[value.of]
                offset = value.offset * target.itemsize
                parts.append(struct.pack("<IQIq", 3, 0, order.index(value.of), offset))
            else:
                raw = np.asarray(value).astype(scalar_type(kind)).tobytes()
                parts.append(struct.pack("<IQ", 0, len(raw)) + raw)
        return b"".join(parts)


def _gap(array: np.ndarray, call: Call) -> int:
    """Return the bytes behind a buffer that put it at an address which wide accesses cannot use."""
    return array.itemsize if call.flush == "odd" and array.nbytes % 16 == 0 else 0


def scalar_type(kind: str) -> np.dtype:
    """Return the numpy type of a scalar parameter's declared type."""
    plain = canonical(kind)
    return np.dtype(np.uint64) if "cudaStream_t" in kind or "*" in kind else np.dtype(numpy_type(plain))


def build(
    sources: Mapping[str, str],
    folder: Path,
    launchers: Mapping[str, str] | None = None,
) -> Library:
    """Compile sources that each have one launcher (or name it) into one library.

    Raises:
        CompileFailed: With what the compiler says.
    """
    library = Library(folder / "kernels.so")
    parts = []
    for name, source in sources.items():
        text, signature = _serial(source, name, (launchers or {}).get(name))
        parts.append(text)
        library.signatures[name] = signature
    (folder / "kernels.cpp").write_text("\n".join(parts))
    command = ["g++", *FLAGS, *CHECKS, "-shared", f"-I{DEVICE / 'include'}", "-include", header()]
    command += ["kernels.cpp", "-o", str(library.path)]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise CompileFailed(built.stderr[:3000])
    return library


def _serial(source: str, name: str, launcher: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Return a source with its launches as calls, in a namespace, and its launcher's parameters."""
    unit = SourceUnit.parse(source)
    data = unit.data
    meets = "true" if _MEETS.search(source) else "false"
    for launch in sorted(unit.launches, key=lambda entry: -entry.span.start):
        arguments = ", ".join(argument.text for argument in launch.arguments)
        called = unit.text_of(launch.name_span)
        grid, block = unit.text_of(launch.grid.span), unit.text_of(launch.block.span)
        shared = launch.shared.text if launch.shared is not None else "0"
        call = f"device::run_grid(dim3({grid}), dim3({block}), {shared}, {meets}, [&] {{ {called}({arguments}); }})"
        data = data[: launch.span.start] + call.encode() + data[launch.span.end :]
    declared = find_launchers(unit)
    found = [entry for entry in declared if launcher is None or entry.name == launcher]
    assert len(found) == 1, [entry.name for entry in declared]
    parameters = [(p.name, p.type_text) for p in found[0].parameters]
    includes = [line for line in data.decode().splitlines() if line.startswith("#include")]
    body = "\n".join(line for line in data.decode().splitlines() if not line.startswith("#include"))
    body = _DYNAMIC.sub(r"\1* \2 = (\1*)dynamic_shared;", body.replace('extern "C" ', ""))
    undefined = "\n".join(f"#undef {macro.name}" for macro in unit.macros)
    unpacked = ", ".join(
        f"*(std::remove_cv_t<std::remove_reference_t<decltype(device::argument<{i}>(&{name}::{found[0].name}))>>*)p[{i}]"
        for i in range(len(parameters))
    )
    adaptor = (
        f'extern "C" void call_{name}(void** p, int reversed) '
        f"{{ device::reversed = reversed; {name}::{found[0].name}({unpacked}); }}\n"
    )
    return "\n".join([*includes, f"namespace {name} {{\n{body}\n}}", adaptor, undefined]), parameters


@cache
def _tools() -> Path:
    """Return the folder of the precompiled header and the runner, made once for all workers."""
    home = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "kernelskill-cpu-device"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = home / "done"
        wanted = repr([path.read_text() for path in (*sorted(DEVICE.glob("*.?pp")), SWITCH)]) + repr(
            FLAGS + CHECKS
        )
        if not stamp.exists() or stamp.read_text() != wanted:
            (home / "device.hpp").write_text((DEVICE / "device.hpp").read_text())
            header_command = [
                "g++",
                *FLAGS,
                *CHECKS,
                "-x",
                "c++-header",
                "device.hpp",
                "-o",
                "device.hpp.gch",
            ]
            runner_command = ["g++", "-std=c++17", "-O1", "-rdynamic", f"-I{RUNTIME}"]
            runner_command += [str(DEVICE / "runner.cpp"), "-o", "runner", "-ldl"]
            for command in (header_command, runner_command):
                subprocess.run(command, cwd=home, check=True)
            stamp.write_text(wanted)
    return home


def header() -> str:
    """Return the path of the header, precompiled beside it."""
    return str(_tools() / "device.hpp")


def runner() -> str:
    """Return the path of the program that calls launchers."""
    return str(_tools() / "runner")


def run_one(source: str, arguments: Mapping[str, Any], folder: Path, **options: Any) -> dict[str, np.ndarray]:
    """Compile one source and call it once."""
    return build({"k": source}, folder).run([Call("k", arguments, **options)])[0]


def names(prefix: str, sources: Iterable[str]) -> dict[str, str]:
    """Return sources under names of their own."""
    return {f"{prefix}{index}": source for index, source in enumerate(sources)}
