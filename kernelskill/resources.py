"""Where kernelskill finds its data folders and keeps its files. Creates nothing but what it returns."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernelskill.errors import HarnessError

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Return a packaged data folder: `skills`, `prompts`, `experience_pool` or `benchmarks`.

    An installed wheel carries them under `kernelskill/_data`; a checkout has them beside the package.

    Raises:
        HarnessError: The installation lacks the folder.
    """
    for folder in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise HarnessError(f"the installation lacks its data folder {name!r}", remedy="reinstall kernelskill")


def cache_dir() -> Path:
    """Return the user's cache folder, created private; all in it can be made again.

    Raises:
        HarnessError: It cannot be made.
    """
    return _private(_home("XDG_CACHE_HOME", ".cache") / "kernelskill", "cache", "XDG_CACHE_HOME")


def data_dir() -> Path:
    """Return the user's data folder, created private; it holds the experience pool.

    Raises:
        HarnessError: It cannot be made.
    """
    return _private(_home("XDG_DATA_HOME", ".local/share") / "kernelskill", "data", "XDG_DATA_HOME")


def config_dir() -> Path:
    """Return the user's configuration folder; it need not exist."""
    return _home("XDG_CONFIG_HOME", ".config") / "kernelskill"


def scripts_dir() -> Path:
    """Return the folder of the running interpreter's console scripts."""
    return Path(sys.prefix) / "bin"


def _home(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    return Path(value) if value and Path(value).is_absolute() else Path.home() / default


def _private(folder: Path, what: str, variable: str) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(
            f"the {what} folder {str(folder)!r} cannot be made: {error.strerror or error}",
            remedy=f"set {variable} to a folder that you can write",
        ) from error
    return folder
