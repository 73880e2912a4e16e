"""Which files a child may see and change, enforced by the kernel (Landlock) for any user."""

from __future__ import annotations

import ctypes
from pathlib import Path

from kernelskill.schema.base import Record

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/alternatives",
    "/etc/localtime",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
)
"""What a program needs to start: the system's programs and libraries, no settings and no secrets."""
_SYS_LANDLOCK_CREATE_RULESET = 444
_VERSION = 1


class Confinement(Record):
    """The files that a child may see; everything else does not exist for it.

    Linux before 5.13 confines nothing, and before 6.7 not the network; `confinement_level` tells.
    """

    readable: tuple[str, ...]
    """Absolute files and folders with all below them; may be executed too. Missing ones do no harm."""
    writable: tuple[str, ...]
    """The same, to be changed."""
    network: bool = False
    """Whether it may open TCP connections."""

    @staticmethod
    def around(folder: Path, *readable: Path) -> Confinement:
        """Allow the system's programs and `readable` to be read, and `folder` to be changed."""
        return Confinement(
            readable=(*SYSTEM, *(str(path) for path in readable)), writable=(str(folder), "/dev/null")
        )


def confinement_level() -> int:
    """Return the version of the kernel's confinement: 0 none, 1 files, 4 network, 6 signals too."""
    libc = ctypes.CDLL(None)
    version = libc.syscall(ctypes.c_long(_SYS_LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), _VERSION)
    return max(0, int(version))
