"""Running a compiler over candidate sources: in a folder of its own, seeing nothing it need not see."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelskill.backends.entry import SOURCES
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import TaskError
from kernelskill.isolation.child import ChildResult, Limits, private_folder, run_child
from kernelskill.isolation.confinement import Confinement
from kernelskill.isolation.environment import clean_environment, hand_over, is_open_to_all
from kernelskill.schema.candidate import Candidate

_DATE = 946684800
_FILE_BYTES = 1 << 30
_OUTPUT_BYTES = 1 << 20


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
        HarnessError: It could not be started.
    """
    needed = (toolchain.nvcc, toolchain.root, toolchain.cuda_include, toolchain.gxx)
    prefixes = tuple(prefix for prefix in (toolchain.gxx.resolve().parents[1],) if prefix != Path("/"))
    return run_child(
        command,
        limits=Limits(wall_s=timeout_s, file_bytes=_FILE_BYTES, output_bytes=_OUTPUT_BYTES),
        cwd=folder / SOURCES,
        env=clean_environment(folder),
        # A toolchain in root's own home is out of an unprivileged user's reach; the confinement holds there too.
        unprivileged=all(is_open_to_all(path) for path in (*needed, *readable)),
        confinement=Confinement.around(folder, *needed, *prefixes, *readable),
    )


def _checked(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise TaskError(
            f"{path!r} is no path inside the candidate's folder", remedy="move the file below the kernel"
        )
    return path
