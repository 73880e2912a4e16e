"""What a child may know of its surroundings: its environment, its user and its folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNPRIVILEGED_UID = 65534
"""`nobody`: owns nothing and may signal none of our processes."""

_KEPT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TZ",
)


def clean_environment(home: Path | None = None) -> dict[str, str]:
    """Return an environment without secrets: search paths, CUDA's variables, an English locale.

    Args:
        home: Folder to show as `HOME` and `TMPDIR`; without it there is no home at all.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment.setdefault("PATH", os.defpath)
    environment |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOME": str(home or "/nonexistent")}
    if home is not None:
        environment["TMPDIR"] = str(home)
    return environment


def python_path() -> str:
    """Return a `PYTHONPATH` with which our own child finds the modules that this process finds."""
    return os.pathsep.join(entry for entry in sys.path if Path(entry).is_absolute())


def unprivileged_uid() -> int | None:
    """Return the user to run candidates as, or None where we may not change it."""
    return UNPRIVILEGED_UID if os.geteuid() == 0 else None


@contextmanager
def private_folder(prefix: str = "kernelskill-", *, name: str = "") -> Iterator[Path]:
    """Make a temporary folder that an unprivileged child can use and other users cannot; remove it after.

    Args:
        prefix: Start of the folder's name.
        name: The rest of it, where the folder should be the same each time (compilers write paths into
            what they make). While somebody else uses that folder, another one is made.
    """
    folder, lock = _claim(prefix, name) if name else (_random_folder(prefix), None)
    try:
        hand_over(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _claim(prefix: str, name: str) -> tuple[Path, int | None]:
    """Make the named folder, in place of one that its owner left behind when it was killed."""
    folder = temporary_base() / f"{prefix}{os.geteuid()}-{name}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        lock = _lock_folder(folder)
        if lock is None:
            return _random_folder(prefix), None
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    lock = _lock_folder(folder)
    return (folder, lock) if lock is not None else (_random_folder(prefix), None)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder of ours that nobody has locked; the lock ends with this process."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held, named = os.fstat(fd), folder.lstat()
    except OSError:
        os.close(fd)
        return None
    ours = held.st_uid in (os.geteuid(), unprivileged_uid())
    if not ours or (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino):
        os.close(fd)
        return None
    return fd


def _random_folder(prefix: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=prefix, dir=temporary_base()))


def temporary_base() -> Path:
    """Return the system's folder for temporary files; one that all users can enter where we are root."""
    base = Path(tempfile.gettempdir()).resolve()
    if unprivileged_uid() is None or is_open_to_all(base):
        return base
    return next((path for path in (Path("/tmp"), Path("/var/tmp")) if is_open_to_all(path)), base)


def hand_over(path: Path) -> None:
    """Give a file or a whole folder to the unprivileged user, where there is one."""
    uid = unprivileged_uid()
    if uid is None:
        return
    os.chown(path, uid, uid, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(Path(folder, name), uid, uid, follow_symlinks=False)


def is_open_to_all(path: Path) -> bool:
    """Whether every user can read (and execute or list) `path`, so that an unprivileged child can."""
    resolved = path.resolve()
    try:
        if not resolved.stat().st_mode & stat.S_IROTH:
            return False
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in resolved.parents)
    except OSError:
        return False
