"""What a child may know of its surroundings: its environment, its user and its folder."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


def unprivileged_uid() -> int | None:
    """Return the user to run candidates as, or None where we may not change it."""
    return UNPRIVILEGED_UID if os.geteuid() == 0 else None


@contextmanager
def private_folder(prefix: str = "kernelskill-") -> Iterator[Path]:
    """Make a temporary folder that an unprivileged child can use and other users cannot; remove it after."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)).resolve()
    try:
        hand_over(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
