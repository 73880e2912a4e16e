"""Which files a test is made of, and their digest. Executes nothing of them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from kernelskill.errors import TaskError
from kernelskill.schema.base import Record

DATA_SUFFIXES = frozenset(
    {".npy", ".npz", ".csv", ".txt", ".json", ".toml", ".yaml", ".yml", ".bin", ".dat", ".raw", ".pkl", ".pt"}
)
MAX_DATA_BYTES = 1 << 20
"""Data files up to this size travel with the test."""
MAX_FILES = 256
_CODE_SUFFIXES = frozenset({"", ".py", ".cu", ".cuh", ".h", ".hpp", ".c", ".cc", ".cpp", ".so", ".o", ".exe"})


class TestSource(Record):
    """Where a test.py lies, what belongs to it, and what it held when the task was loaded."""

    __test__ = False

    folder: str
    """Absolute folder; valid on this machine only."""
    main: str
    """Name of the test file."""
    files: tuple[str, ...]
    """Files that travel with it, relative to `folder`, sorted; `main` is one of them."""
    left_behind: tuple[str, ...] = ()
    """Files that it seems to read but that are too large to travel."""
    digest: str
    """SHA-256 over the names and contents of `files`, and the sizes of those left behind."""

    @property
    def path(self) -> Path:
        """Path of the test file."""
        return Path(self.folder) / self.main


def read_test_source(path: Path) -> TestSource:
    """Find the files of a test: itself, the modules beside it that it imports, and small data files it names.

    Raises:
        TaskError: There is no such file, or it cannot be read.
    """
    folder = path.parent.resolve()
    path = folder / path.name
    try:
        modules = _modules(path)
        texts = {file: file.read_bytes() for file in modules}
    except OSError as error:
        raise TaskError(f"cannot read {str(path)!r}: {error.strerror}") from None
    data = sorted(set(_data_files(folder, texts)))[:MAX_FILES]
    small = [file for file in data if file.stat().st_size <= MAX_DATA_BYTES]
    large = [file for file in data if file.stat().st_size > MAX_DATA_BYTES]
    hasher = hashlib.sha256()
    names = sorted(str(file.relative_to(folder).as_posix()) for file in [*modules, *small])
    for name in names:
        content = (folder / name).read_bytes()
        hasher.update(f"{name}\0{len(content)}\0".encode() + content)
    left = tuple(sorted(file.relative_to(folder).as_posix() for file in large))
    for name in left:
        hasher.update(f"{name}\0{(folder / name).stat().st_size}\0".encode())
    return TestSource(
        folder=str(folder), main=path.name, files=tuple(names), left_behind=left, digest=hasher.hexdigest()
    )


def _modules(main: Path) -> list[Path]:
    """Return the test and all modules in its folder that it imports, directly or not."""
    found: list[Path] = []
    waiting = [main]
    while waiting and len(found) < MAX_FILES:
        file = waiting.pop()
        if file in found:
            continue
        found.append(file)
        for name in _imported(file.read_bytes()):
            waiting.extend(_files_of_module(main.parent, name))
    return sorted(found)


def _imported(text: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of_module(folder: Path, name: str) -> Iterator[Path]:
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        base = folder.joinpath(*parts[:depth])
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.is_file():
                yield file


def _data_files(folder: Path, texts: dict[Path, bytes]) -> Iterator[Path]:
    """Return data files beside the test, and any file in its tree that a string in the test names."""
    for file in sorted(folder.iterdir()):
        if file.suffix in DATA_SUFFIXES and file.is_file() and not file.name.startswith("."):
            yield file
    words = {word for text in texts.values() for word in _strings(text)}
    folders = [folder, *(folder / word for word in words if _is_inside(folder, folder / word, "folder"))]
    for base in folders:
        for word in words:
            if Path(word).suffix not in _CODE_SUFFIXES and _is_inside(folder, base / word, "file"):
                yield base / word


def _strings(text: bytes) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            word = node.value
            if 0 < len(word) < 200 and "\n" not in word and "\0" not in word and word not in (".", ".."):
                yield word


def _is_inside(folder: Path, path: Path, kind: str) -> bool:
    try:
        if not (path.is_dir() if kind == "folder" else path.is_file()):
            return False
        return (
            path.resolve().is_relative_to(folder) and path.is_relative_to(folder) and ".." not in path.parts
        )
    except (OSError, ValueError):
        return False
