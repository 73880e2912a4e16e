"""Which compiler flags of the user's may be passed on."""

from __future__ import annotations

from pathlib import Path

from kernelskill.errors import TaskError

_ARCHITECTURE = ("arch", "gpu-architecture", "code", "gpu-code", "gencode", "generate-code")
_PHASE = (
    "c", "compile", "dc", "device-c", "dw", "device-w", "dlink", "device-link", "link", "lib", "run",
    "cubin", "ptx", "fatbin", "cuda", "optix-ir", "ltoir", "E", "preprocess", "M", "MM", "MD", "MMD",
    "shared", "o", "output-file", "odir", "output-directory", "x", "cudart", "keep", "k", "save-temps",
    "keep-dir", "clean-targets", "clean", "dryrun", "optf", "options-file", "generate-dependencies",
    "dlto", "dlink-time-opt", "lto",
)  # fmt: skip
_SEPARATE = ("rdc=true", "relocatable-device-code=true", "rdc", "relocatable-device-code")
_INPUTS = (".cu", ".c", ".cc", ".cpp", ".cxx", ".o", ".a", ".so", ".ptx", ".cubin", ".fatbin", ".gpu", ".ii")
_FOLDER_OPTIONS = ("-I", "--include-path", "-isystem", "--system-include", "-include", "--pre-include")


def check_flags(flags: tuple[str, ...]) -> None:
    """Refuse flags that would change what is built instead of how.

    Raises:
        TaskError: A flag chooses the architecture, the output or the phase, or names another input.
    """
    for position, flag in enumerate(flags):
        name = flag.lstrip("-").partition("=")[0]
        if flag.startswith("@"):
            raise TaskError(
                f"FLAGS: {flag!r} reads more options from a file", remedy="list the options in FLAGS"
            )
        if not flag.startswith("-"):
            before = flags[position - 1] if position else ""
            if flag.endswith(_INPUTS) and before not in ("-include", "--pre-include"):
                raise TaskError(f"FLAGS: {flag!r} is another input file", remedy="include it from the kernel")
        elif name in _ARCHITECTURE:
            raise TaskError(
                f"FLAGS: {flag!r} chooses an architecture", remedy="leave it out: the device decides"
            )
        elif flag.lstrip("-") in _SEPARATE:
            raise TaskError(
                f"FLAGS: {flag!r} asks for separate compilation, which is not supported",
                remedy="put all device code in one file",
            )
        elif name in _PHASE:
            raise TaskError(f"FLAGS: {flag!r} changes what is built", remedy="leave it out")


def named_paths(flags: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the absolute folders and files that include options name."""
    found: list[Path] = []
    for position, flag in enumerate(flags):
        for option in _FOLDER_OPTIONS:
            if flag == option and position + 1 < len(flags):
                found.append(Path(flags[position + 1]))
            elif flag.startswith(option):
                found.append(Path(flag.removeprefix(option).removeprefix("=")))
    return tuple(dict.fromkeys(path for path in found if path.is_absolute()))
