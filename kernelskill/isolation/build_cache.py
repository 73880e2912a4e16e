"""Folders under content keys: made once, published whole, the least recently used removed first."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

from kernelskill.isolation.locks import FileLock

DEFAULT_MAX_BYTES = 8 << 30
_MEASURED = ".bytes"


class BuildCache:
    """Keeps built folders below `root`. Safe between threads and processes, and against `kill -9`.

    Whatever `get_or_build` returned stays until this object is closed, `release` is called, or the
    process ends; only what nobody uses is ever removed.

    Layout: `entries/<key>/` finished folders, `building/<key>/` half-done ones, `locks/`, and `users/`
    with a file for each open cache object, locked by its owner, that lists the keys in use.
    """

    def __init__(self, root: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._root = root
        self._max_bytes = max_bytes
        for name in ("entries", "building", "locks", "users", "trash"):
            (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._users = _Users(root / "users")
        self._sweep()

    def get_or_build(self, key: str, builder: Callable[[Path], None]) -> Path:
        """Return the folder of `key`, made by `builder` in a private folder where there is none yet.

        What the builder raises passes through, and nothing is published then.

        Raises:
            ValueError: The key cannot be a file name.
        """
        entry = self._entry(key)
        with FileLock(self._root / "locks" / key):
            self._users.add(key)
            if entry.is_dir():
                os.utime(entry)
                return entry
            try:
                self._build(key, entry, builder)
            except BaseException:
                self._users.remove(key)
                raise
        self.evict()
        return entry

    def find(self, key: str) -> Path | None:
        """Return the finished folder of `key` and keep it in use, or None."""
        entry = self._entry(key)
        if not entry.is_dir():
            return None
        with FileLock(self._root / "locks" / key):
            if not entry.is_dir():
                return None
            self._users.add(key)
            os.utime(entry)
            return entry

    def release(self, key: str) -> None:
        """Say that this object's callers no longer use the folder of `key`."""
        self._users.remove(key)

    def evict(self) -> None:
        """Remove the least recently used folders that nobody uses until the rest fits `max_bytes`."""
        sizes = {entry: _recorded_bytes(entry) for entry in self._entries()}
        surplus = sum(sizes.values()) - self._max_bytes
        for entry in sorted(sizes, key=_last_used):
            if surplus <= 0:
                return
            if self._remove(entry):
                surplus -= sizes[entry]

    def close(self) -> None:
        """Release everything that this object returned."""
        self._users.close()

    def __enter__(self) -> BuildCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _build(self, key: str, entry: Path, builder: Callable[[Path], None]) -> None:
        folder = self._root / "building" / key
        # Under the key's lock a folder that is here already belongs to a builder that was killed.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            builder(folder)
            (folder / _MEASURED).write_text(str(_measured_bytes(folder)), encoding="ascii")
            folder.rename(entry)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove(self, entry: Path) -> bool:
        lock = FileLock(self._root / "locks" / entry.name)
        if not lock.acquire(blocking=False):
            return False
        try:
            if entry.name in self._users.everybody():
                return False
            trash = self._root / "trash" / uuid4().hex
            try:
                entry.rename(trash)
            except FileNotFoundError:
                return False
            shutil.rmtree(trash, ignore_errors=True)
            (self._root / "locks" / entry.name).unlink(missing_ok=True)
        finally:
            lock.release()
        return True

    def _sweep(self) -> None:
        """Remove what killed processes left: half-built or half-removed folders, and their lists of keys."""
        self._users.everybody()
        for rest in (self._root / "trash").iterdir():
            shutil.rmtree(rest, ignore_errors=True)
        for rest in (self._root / "building").iterdir():
            lock = FileLock(self._root / "locks" / rest.name)
            if lock.acquire(blocking=False):
                shutil.rmtree(rest, ignore_errors=True)
                lock.release()

    def _entries(self) -> Iterator[Path]:
        return (self._root / "entries").iterdir()

    def _entry(self, key: str) -> Path:
        if not key or key.startswith(".") or "/" in key or "\0" in key:
            raise ValueError(f"{key!r} cannot be a cache key; use letters, digits and dashes")
        return self._root / "entries" / key


class _Users:
    """Which keys are in use: a file for each owner, whose lock ends with the owner.

    A file is a log of `+key` and `-key` lines, so that a reader never misses what was added before.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.Lock()
        self._keys: set[str] = set()
        self._path = folder / f"{os.getpid()}-{uuid4().hex}"
        self._lock = FileLock(self._path)
        self._lock.acquire()

    def add(self, key: str) -> None:
        """Note that this owner uses `key`. The caller holds the key's lock."""
        with self._mutex:
            if key not in self._keys:
                self._keys.add(key)
                self._log(f"+{key}\n")

    def remove(self, key: str) -> None:
        """Note that this owner no longer uses `key`."""
        with self._mutex:
            if key in self._keys:
                self._keys.remove(key)
                self._log(f"-{key}\n")

    def everybody(self) -> set[str]:
        """Return the keys that any living owner uses."""
        keys: set[str] = set()
        for path in self._folder.iterdir():
            lock = FileLock(path)
            if lock.acquire(blocking=False):  # its owner is gone
                path.unlink(missing_ok=True)
                lock.release()
            else:
                keys |= _keys_in(path)
        return keys

    def close(self) -> None:
        """Use nothing any more."""
        with self._mutex:
            self._keys.clear()
            self._path.unlink(missing_ok=True)
            self._lock.release()

    def _log(self, line: str) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)


def _keys_in(log: Path) -> set[str]:
    keys: set[str] = set()
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return keys
    for line in lines:
        if line.startswith("+"):
            keys.add(line[1:])
        else:
            keys.discard(line[1:])
    return keys


def _recorded_bytes(entry: Path) -> int:
    try:
        return int((entry / _MEASURED).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _measured_bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def _last_used(entry: Path) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:
        return 0.0
