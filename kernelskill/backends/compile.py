"""From a candidate to a Build: one nvcc call for device code and host object, one link against nothing.

The finished folder holds `device.cubin`, `device.ptx` (with the user's paths in `.file`), `host.o`,
`host.so`, and the sources with the generated `entry.cu`, so that the recorded commands can be run
again there. `host.so` is entered through `backends.entry.ENTRY_SYMBOL`.
"""

from __future__ import annotations

import shlex
import shutil
import time
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kernelskill.backends.composition import find_constructs
from kernelskill.backends.cubin import machine_code_digest, read_cubin
from kernelskill.backends.diagnostics import (
    SourceNames,
    compiler_was_killed,
    first_bytes,
    parse_errors,
    parse_warnings,
)
from kernelskill.backends.elf import ElfFile
from kernelskill.backends.entry import ENTRY_FILE, SOURCES, entry_source
from kernelskill.backends.flags import check_flags, named_paths
from kernelskill.backends.inputs import are_unchanged, recorded_inputs, states
from kernelskill.backends.ptxas_log import KernelUsage, parse_usage
from kernelskill.backends.sandbox import run_compiler, write_text, written_sources
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.isolation.build_cache import BuildCache
from kernelskill.isolation.child import ChildResult
from kernelskill.schema.base import canonical_json, sha256_bytes, sha256_text
from kernelskill.schema.build import Build, BuildFailure, KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Signature

_VERSION = 4
"""Raised whenever a build of the same inputs would come out otherwise."""
_CHANGES = 8
"""How many states of the included files are followed before we give up."""
_RECORD = "build.json"
_INPUTS = "inputs.json"
_FAILURE = "failure.json"
_STATES = TypeAdapter(dict[str, str])
_HOST_FLAGS = "-fPIC,-fno-tree-sra,-ftrivial-auto-var-init=zero"
"""The last two clear the padding of structs that are passed to kernels, which would else be garbage."""


def build_key(
    candidate: Candidate, signature: Signature, *, flags: tuple[str, ...], architecture: str, compiler: str
) -> str:
    """Return the key of a build; no compiler is needed for it.

    Args:
        candidate: All its files count.
        signature: Its entry function counts.
        flags: In their order.
        architecture: For example `sm_90a`.
        compiler: `Toolchain.compiler`.
    """
    generated = entry_source(candidate, signature)
    parts = [
        _VERSION,
        candidate.digest,
        generated,
        signature.canonical(),
        list(flags),
        architecture,
        compiler,
    ]
    return sha256_text(canonical_json(parts))


def compile_candidate(
    candidate: Candidate,
    signature: Signature,
    *,
    flags: tuple[str, ...],
    architecture: str,
    toolchain: Toolchain,
    cache: BuildCache,
    timeout_s: float = 120,
) -> Build | BuildFailure:
    """Compile a candidate, or return what came of an equal one before.

    A refusal of the compiler is kept too; a time-out is not.

    Args:
        candidate: Its files are written with their relative paths; relative include options mean its root.
        signature: What the launcher must be; its entry function is made from the launcher's own type.
        flags: The user's, checked by `backends.flags.check_flags`.
        architecture: `sm_XX`; the PTX is for the `compute_XX` that belongs to it.
        toolchain: The compilers to use.
        cache: Where finished builds are kept; the folder stays in use until `cache.release(build.key)`.
        timeout_s: For the whole compilation.

    Raises:
        TaskError: A flag or a file name cannot be used.
        CompilerMissing: The compiler cannot be run safely, or does not support the host compiler.
        HarnessError: It could not be started.
    """
    check_flags(flags)
    first = build_key(
        candidate, signature, flags=flags, architecture=architecture, compiler=toolchain.compiler
    )
    key = first
    for _ in range(_CHANGES):
        job = _Job(candidate, signature, flags, architecture, toolchain, key, timeout_s)
        try:
            folder = cache.get_or_build(key, job.build_into)
        except _NotKept as end:
            return end.failure
        inputs = _inputs_of(folder)
        if are_unchanged(inputs, toolchain):
            return _read_back(folder)
        # Included files are others now than they were for this build: it stays for when they change back.
        cache.release(key)
        key = sha256_text(canonical_json([first, states(inputs, toolchain)]))
    raise HarnessError("files that the kernel includes kept changing while it was compiled")


class _NotKept(Exception):
    """Carries a result past the cache, which must not publish it."""

    def __init__(self, failure: BuildFailure) -> None:
        super().__init__("not kept")
        self.failure = failure


class _Job:
    """One compilation."""

    def __init__(
        self,
        candidate: Candidate,
        signature: Signature,
        flags: tuple[str, ...],
        architecture: str,
        toolchain: Toolchain,
        key: str,
        timeout_s: float,
    ) -> None:
        self._candidate = candidate
        self._signature = signature
        self._flags = flags
        self._architecture = architecture
        self._toolchain = toolchain
        self._key = key
        self._timeout_s = timeout_s
        self._commands: list[str] = []
        self._began = 0.0

    def build_into(self, published: Path) -> None:
        """Fill a folder of the cache with a build, or with the record of its failure."""
        started = time.monotonic()
        self._began = time.time()
        entry = {ENTRY_FILE: entry_source(self._candidate, self._signature)}
        with written_sources(self._candidate, entry, name=self._key[:24]) as work:
            nvcc = self._run(self._nvcc_command(), work, self._timeout_s)
            if nvcc.returncode != 0 or nvcc.timed_out:
                self._publish_failure(published, work, nvcc)
                return
            left_s = max(1.0, self._timeout_s - (time.monotonic() - started))
            link = self._run(self._link_command(), work, left_s)
            if link.returncode != 0 or link.timed_out:
                self._publish_failure(published, work, link)
                return
            self._publish(published, work, nvcc, time.monotonic() - started)

    def _nvcc_command(self) -> list[str]:
        virtual = self._architecture.replace("sm_", "compute_")
        return [
            str(self._toolchain.nvcc),
            "-gencode",
            f"arch={virtual},code={self._architecture}",
            "-cudart",
            "none",
            "-lineinfo",
            "-Xptxas",
            "-v",
            "-Xcompiler",
            _HOST_FLAGS,
            *self._flags,
            "--keep",
            "--keep-dir",
            "..",
            "-c",
            f"../{ENTRY_FILE}",
            "-o",
            "../host.o",
        ]

    def _link_command(self) -> list[str]:
        return [str(self._toolchain.gxx), "-shared", "../host.o", "-o", "../host.so"]

    def _run(self, command: list[str], work: Path, timeout_s: float) -> ChildResult:
        self._commands.append(shlex.join(command))
        return run_compiler(command, work, self._toolchain, named_paths(self._flags), timeout_s)

    def _publish_failure(self, published: Path, work: Path, result: ChildResult) -> None:
        log = self._without_folder(result.stderr + result.stdout, work)
        failure = BuildFailure(
            diagnostics=parse_errors(
                log, self._names(work), "".join(_text(path) for path in work.glob("*.ptx"))
            ),
            log=first_bytes(log),
            commands=self._shown_commands(published),
            timed_out=result.timed_out,
        )
        if named_paths(self._flags) or result.timed_out or result.returncode < 0 or compiler_was_killed(log):
            raise _NotKept(failure)
        (published / _FAILURE).write_text(failure.canonical(), encoding="utf-8")
        self._keep_sources(published, work)

    def _publish(self, published: Path, work: Path, nvcc: ChildResult, seconds: float) -> None:
        log = nvcc.stderr + nvcc.stdout
        cubin = _only(work, "*.cubin").read_bytes()
        kernels, variables = read_cubin(cubin)
        host = (work / "host.so").read_bytes()
        usage = parse_usage(log)
        ptx = self._without_folder(_text(_only(work, "*.ptx")), work)
        build = Build(
            key=self._key,
            folder="",
            architecture=self._architecture,
            device_code=sha256_bytes(cubin),
            machine_code=machine_code_digest(cubin),
            kernels=tuple(_with_usage(kernel, usage.get(kernel.name)) for kernel in kernels),
            variables=variables,
            undefined_symbols=ElfFile(host, "host.so").unprovided_symbols(),
            constructs=find_constructs(
                self._candidate,
                work,
                ptx=ptx,
                cubin=_only(work, "*.cubin"),
                kernels=kernels,
                toolchain=self._toolchain,
            ),
            commands=self._shown_commands(published),
            compiler=f"nvcc {self._toolchain.nvcc_version}",
            warnings=parse_warnings(self._without_folder(log, work), self._names(work)),
            seconds=round(seconds, 3),
        )
        (published / "device.cubin").write_bytes(cubin)
        write_text(published / "device.ptx", ptx)
        (published / "host.so").write_bytes(host)
        shutil.copyfile(work / "host.o", published / "host.o", follow_symlinks=False)
        self._keep_sources(published, work)
        inputs = recorded_inputs(work, self._flags, self._toolchain, self._began)
        (published / _INPUTS).write_text(canonical_json(inputs), encoding="utf-8")
        (published / _RECORD).write_text(build.canonical(), encoding="utf-8")

    def _keep_sources(self, published: Path, work: Path) -> None:
        write_text(published / ENTRY_FILE, _text(work / ENTRY_FILE))
        for file in self._candidate.files:
            write_text(published / SOURCES / file.path, file.text)

    def _shown_commands(self, published: Path) -> tuple[str, ...]:
        folder = published.parent.parent / "entries" / self._key / SOURCES
        return tuple(f"cd {shlex.quote(str(folder))} && {command}" for command in self._commands)

    def _names(self, work: Path) -> SourceNames:
        files = {file.path: file.text for file in self._candidate.files}
        return SourceNames(files, self._candidate.main, str(work / SOURCES), ENTRY_FILE)

    @staticmethod
    def _without_folder(text: str, work: Path) -> str:
        """Take our private folder out of paths, so that the user's own remain."""
        for prefix in (f"{work}/{SOURCES}/", f"../{SOURCES}/", f"{work}/"):
            text = text.replace(prefix, "")
        return text


def _with_usage(kernel: KernelResources, usage: KernelUsage | None) -> KernelResources:
    """Add what only the compiler's log says, and prefer its figures."""
    if usage is None:
        return kernel
    return kernel.model_copy(
        update={
            "registers": usage.registers,
            "static_shared_bytes": usage.shared_bytes,
            "stack_bytes": usage.stack_bytes,
            "spill_store_bytes": usage.spill_store_bytes,
            "spill_load_bytes": usage.spill_load_bytes,
        }
    )


def _inputs_of(folder: Path) -> dict[str, str]:
    """Return what a build read from outside; nothing for the record of a failure."""
    try:
        return _STATES.validate_json((folder / _INPUTS).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        raise ArtifactCorrupt(
            f"the build in {str(folder)!r} cannot be read back", remedy="delete that folder"
        ) from error


def _read_back(folder: Path) -> Build | BuildFailure:
    try:
        if (folder / _FAILURE).is_file():
            return BuildFailure.model_validate_json((folder / _FAILURE).read_bytes())
        build = Build.model_validate_json((folder / _RECORD).read_bytes())
    except (OSError, ValidationError) as error:
        raise ArtifactCorrupt(
            f"the build in {str(folder)!r} cannot be read back", remedy="delete that folder"
        ) from error
    return build.model_copy(update={"folder": str(folder.absolute())})


def _only(work: Path, pattern: str) -> Path:
    found = sorted(work.glob(pattern))
    if len(found) != 1:
        raise ArtifactCorrupt(f"the compiler left {len(found)} files {pattern!r} instead of one")
    return found[0]


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""
