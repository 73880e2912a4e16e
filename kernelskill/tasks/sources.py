"""Read a kernel file and the local headers it includes into a Candidate. Compiles nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.tasks.spelling import nearest

MAX_FILE_BYTES = 8 << 20
MAX_FILES = 500
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


class KernelSource(Record):
    """A kernel with its headers, and the compiler flags that fit their new places."""

    candidate: Candidate
    flags: tuple[str, ...]
    """Relative include folders count from the candidate's root."""
    root: str
    """Absolute folder that the candidate's paths are relative to; valid on this machine only."""


def read_kernel(kernel: Path, flags: tuple[str, ...] = (), tests_folder: Path | None = None) -> KernelSource:
    """Read a kernel and every header that it includes from its own folders.

    Args:
        kernel: The `.cu` file.
        flags: The user's compiler flags; `-I` folders are searched, relative ones from the kernel's
            folder first and from `tests_folder` second.
        tests_folder: Folder of the test.py.

    Raises:
        TaskError: A file is missing, is no UTF-8 text or is too large.
    """
    main = _absolute(kernel)
    require_file(main, "kernel")
    folders = [main.parent] if tests_folder is None else [main.parent, _absolute(tests_folder)]
    searched = [found for name in _include_names(flags) for found in _existing(name, folders)]
    texts = _collect(main, searched)
    root = Path(os.path.commonpath([path.parent for path in texts]))
    files = {path.relative_to(root).as_posix(): text for path, text in texts.items()}
    return KernelSource(
        candidate=Candidate.of(main.relative_to(root).as_posix(), files),
        flags=_relocated(flags, folders, root),
        root=str(root),
    )


def require_file(path: Path, what: str) -> None:
    """Check that a path names a file.

    Raises:
        TaskError: It does not; the nearest name in its folder is given.
    """
    if path.is_dir():
        raise TaskError(f"{str(path)!r} is a folder, not a {what} file", remedy=f"name the {what} file in it")
    if path.is_file():
        return
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    same_kind = [name for name in names if Path(name).suffix == path.suffix]
    close = nearest(path.name, names) or (same_kind[0] if len(same_kind) == 1 else None)
    remedy = f"did you mean {str(path.parent / close)!r}?" if close else "check the path"
    raise TaskError(f"there is no {what} file {str(path)!r}", remedy=remedy)


def _absolute(path: Path) -> Path:
    """Symbolic links stay as they are, so that relative includes mean what the user sees."""
    return Path(os.path.normpath(Path.cwd() / path))


def _collect(main: Path, searched: list[Path]) -> dict[Path, str]:
    texts: dict[Path, str] = {}
    waiting = [main]
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        if len(texts) >= MAX_FILES:
            raise TaskError(f"{main.name} includes more than {MAX_FILES} local files")
        texts[path] = _read(path)
        waiting.extend(_included(path, texts[path], searched))
    return texts


def _read(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot read {str(path)!r}: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise TaskError(f"{path.name} has {len(data)} bytes, more than {MAX_FILE_BYTES}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaskError(f"{path.name}:{line}: not UTF-8 text", remedy="save the file as UTF-8") from None
    if "\0" in text:
        raise TaskError(f"{path.name} is a binary file, not CUDA source")
    return text


def _included(path: Path, text: str, searched: list[Path]) -> Iterator[Path]:
    for quoted, angled in _INCLUDE.findall(text):
        name = quoted or angled
        if Path(name).is_absolute():
            continue
        for folder in [path.parent, *searched] if quoted else searched:
            found = Path(os.path.normpath(folder / name))
            if found.is_file():
                yield found
                break


def _include_names(flags: tuple[str, ...]) -> Iterator[str]:
    return (name for name, _ in _include_flags(flags) if name is not None)


def _include_flags(flags: tuple[str, ...]) -> Iterator[tuple[str | None, str]]:
    """Return each flag, a folder given apart joined to its flag, with the folder that it names."""
    waiting = list(flags)
    while waiting:
        flag = waiting.pop(0)
        if flag in ("-I", "--include-path", "-isystem") and waiting:
            name = waiting.pop(0)
            yield name, f"-I{name}"
        elif flag.startswith("-I"):
            yield flag[2:], flag
        elif flag.startswith("--include-path="):
            yield flag.partition("=")[2], flag
        else:
            yield None, flag


def _existing(name: str, folders: list[Path]) -> list[Path]:
    """Return the folder that a relative include folder means; absolute ones stay where they are."""
    if Path(name).is_absolute():
        return []
    found = (Path(os.path.normpath(folder / name)) for folder in folders)
    return [path for path in found if path.is_dir()][:1]


def _relocated(flags: tuple[str, ...], folders: list[Path], root: Path) -> tuple[str, ...]:
    moved = []
    for name, flag in _include_flags(flags):
        places = [] if name is None else _existing(name, folders)
        if not places:
            moved.append(flag)
        elif places[0].is_relative_to(root):
            moved.append(f"-I{places[0].relative_to(root).as_posix()}")
        else:
            moved.append(f"-I{places[0]}")
    return tuple(moved)
