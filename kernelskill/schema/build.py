"""What a compiler made of a candidate, and what the device code needs."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.base import Record
from kernelskill.schema.task import Allowance


class KernelParameter(Record):
    """One parameter of a kernel as the device code lays it out, in bytes."""

    offset: int
    size: int


class KernelResources(Record):
    """Static facts of one kernel in the device code."""

    name: str
    """Mangled name."""
    display_name: str
    """Demangled name without the parameter list; equal to `name` where it cannot be demangled."""
    registers: int
    static_shared_bytes: int
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    max_threads: int = 0
    """From `__launch_bounds__`; 0 where there is none."""
    parameters: tuple[KernelParameter, ...] = ()


class DeviceVariable(Record):
    """A `__device__` or `__constant__` variable of the device code."""

    name: str
    size_bytes: int
    constant: bool


class Construct(Record):
    """Something in a build that not every task permits, or that shows what its author uses anyway."""

    family: str
    """What it is an instance of, for example `half arithmetic` or `fast exponential`; what the original
    has of a family is permitted to its candidates."""
    allowance: Allowance | None
    """What in ALLOW permits it; None where nothing does."""
    shown: str
    """As it stands in the source or the machine code, for example `__expf`."""
    does: str
    """What it does, to follow its place: `calls __expf, a hardware approximation`."""
    found_in: Literal["source", "host object", "ptx", "sass"]
    file: str = ""
    line: int = 0
    """0 where unknown."""
    harmless: bool = False
    """Nothing that needs permission; recorded for what it permits to others."""

    @property
    def place(self) -> str:
        """For example `kernel.cu:12`."""
        return f"{self.file}:{self.line}" if self.line else self.file


class Build(Record):
    """A successful build. The files lie in the build cache under `key`."""

    key: str
    """SHA-256 over sources, flags, compiler version and architecture."""
    folder: str
    """Absolute folder with `device.cubin`, `device.ptx` and `host.so`; valid on this machine only."""
    architecture: str
    """For example `sm_90a`."""
    device_code: str
    """SHA-256 of `device.cubin`."""
    machine_code: str = ""
    """SHA-256 over instructions, constants and resources alone: equal where only names of lines differ."""
    kernels: tuple[KernelResources, ...]
    variables: tuple[DeviceVariable, ...] = ()
    undefined_symbols: tuple[str, ...] = ()
    """CUDA and library functions that the host object asks for."""
    constructs: tuple[Construct, ...] = ()
    """What it is made of, as far as tasks may forbid it."""
    commands: tuple[str, ...] = ()
    """The exact command lines, runnable by the user."""
    compiler: str = ""
    """For example `nvcc 13.0.88`."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def kernel(self, name: str) -> KernelResources | None:
        """Return the resources of the kernel with this mangled name."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)


class Diagnostic(Record):
    """One message of a compiler."""

    file: str
    line: int
    message: str
    excerpt: str = ""
    """The source line, where it could be read."""


class BuildFailure(Record):
    """A build that the compiler refused."""

    diagnostics: tuple[Diagnostic, ...]
    log: str
    """The compiler's output, truncated to its first 8 KiB."""
    commands: tuple[str, ...] = ()
    timed_out: bool = False
