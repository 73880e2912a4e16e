"""Locks between processes that end with their owner."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """An exclusive lock on a path, for use in `with`; also excludes other threads. Not re-entrant.

    The kernel holds it (`flock`), so it ends with its owner however that ends. The file may be
    removed by whoever holds the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock; without `blocking`, return False where somebody holds it.

        Raises:
            RuntimeError: This object holds the lock already.
        """
        if self._fd is not None:
            raise RuntimeError(f"lock {str(self._path)!r} is held already")
        while True:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if blocking else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(fd)
                return False
            except BaseException:
                os.close(fd)
                raise
            if self._is_current(fd):
                self._fd = fd
                return True
            os.close(fd)  # removed while we waited: the lock is another file now

    def release(self) -> None:
        """Give the lock back; nothing happens where it is not held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _is_current(self, fd: int) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        held = os.fstat(fd)
        return (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino)

    def __enter__(self) -> FileLock:
        self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()
