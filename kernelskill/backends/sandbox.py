"""Running a compiler over candidate sources: in a folder of its own, seeing nothing it need not see."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelskill.backends.diagnostics import unsupported_host_compiler
from kernelskill.backends.entry import SOURCES
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing, TaskError
from kernelskill.isolation.child import ChildKilled, ChildResult, Limits, private_folder, run_child
from kernelskill.isolation.confinement import Confinement, confinement_level
from kernelskill.isolation.environment import clean_environment, hand_over, is_open_to_all, unprivileged_uid
from kernelskill.schema.candidate import Candidate

_DATE = 946684800
_FILE_BYTES = 1 << 30
_OUTPUT_BYTES = 1 << 20
_KILLED = re.compile(
    r"died due to signal 9\b|\bKilled \(program|\bKilled signal terminated program|terminated with signal 9\b"
    r"|^(?:\S+: )?Killed$",
    re.MULTILINE,
)
"""What drivers of compilers say of a part that was killed; one that crashed says another signal."""


@contextmanager
def written_sources(candidate: Candidate, extra: dict[str, str], *, name: str = "") -> Iterator[Path]:
    """Write a candidate below `sources/` of a private folder, and `extra` files beside that; remove it after.

    Args:
        candidate: Its files are written as they are.
        extra: File name to text.
        name: Names the folder, so that equal builds run in equal folders and give equal bytes.

    Raises:
        TaskError: A path leaves the candidate's root, or cannot be a file name.
    """
    with private_folder(name=name) as folder:
        for file in candidate.files:
            write_text(folder / SOURCES / _checked(file.path), file.text)
        for name, text in extra.items():
            write_text(folder / name, text)
        hand_over(folder)
        yield folder


def write_text(path: Path, text: str) -> None:
    """Write a text exactly as it is, with its folders and a fixed date: line tables hold the date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(errors="surrogateescape"))
    os.utime(path, (_DATE, _DATE))


def run_compiler(
    command: list[str], folder: Path, toolchain: Toolchain, readable: tuple[Path, ...], timeout_s: float
) -> ChildResult:
    """Run a compiler in the folder of the sources, where it sees its own files, those and `readable`.

    Raises:
        CompilerMissing: It cannot be run safely, or nvcc does not support the host compiler.
        ChildKilled: It was killed from outside.
        HarnessError: It could not be started.
    """
    needed = (toolchain.nvcc, toolchain.root, toolchain.cuda_include, toolchain.gxx)
    prefixes = tuple(prefix for prefix in (toolchain.gxx.resolve().parents[1],) if prefix != Path("/"))
    result = run_child(
        command,
        limits=Limits(wall_s=timeout_s, file_bytes=_FILE_BYTES, output_bytes=_OUTPUT_BYTES),
        cwd=folder / SOURCES,
        env=clean_environment(folder),
        unprivileged=_can_be_unprivileged(needed, readable),
        confinement=Confinement.around(folder, *needed, *prefixes, *readable),
    )
    require_not_killed(result, Path(command[0]).name)
    if complaint := unsupported_host_compiler(result.stderr):
        raise CompilerMissing(
            f"nvcc {toolchain.nvcc_version} refuses g++ {toolchain.gxx_version}: {complaint}",
            remedy="install an older g++ and name it in FLAGS, such as -ccbin=g++-12",
        )
    return result


def require_not_killed(result: ChildResult, program: str) -> None:
    """Raise where a compiler was killed from outside: what it compiled is not to blame.

    Raises:
        ChildKilled: It was.
    """
    if result.timed_out or result.returncode == 0:
        return
    said = (result.stderr + result.stdout).strip()
    # Whoever refuses a source says why; a shell reports 128 and the signal.
    silent = result.returncode != -signal.SIGSEGV and not said
    ended = result.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    if ended or silent or _KILLED.search(said):
        raise ChildKilled(
            f"{program} was killed while it compiled", remedy="free some memory, then go on with the run"
        )


def _can_be_unprivileged(needed: tuple[Path, ...], readable: tuple[Path, ...]) -> bool:
    """Whether another user than root could read all this; if not, the confinement alone must do.

    Raises:
        CompilerMissing: The compiler is in reach of root only, and this kernel confines nothing.
    """
    closed = [path for path in (*needed, *readable) if path.exists() and not is_open_to_all(path)]
    if closed and unprivileged_uid() is not None and confinement_level() < 1:
        raise CompilerMissing(
            f"only root can read {str(closed[0])!r}, and this kernel cannot confine a compiler that runs as root",
            remedy="install the CUDA toolkit where every user can read it, or do not run as root",
        )
    return not closed


def _checked(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise TaskError(
            f"{path!r} is no path inside the candidate's folder", remedy="move the file below the kernel"
        )
    return path
