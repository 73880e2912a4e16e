"""The files outside a candidate that a compilation read: a build counts only while they are as they were."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from kernelskill.backends.flags import named_paths
from kernelskill.backends.toolchain import Toolchain

_MARKER = re.compile(r'^# \d+ "(/(?:\\.|[^"\\\n])*)" 1', re.MULTILINE)
_ABSENT = "absent"
_CHANGING = "changed while it was read"


def recorded_inputs(
    folder: Path, flags: tuple[str, ...], toolchain: Toolchain, started: float
) -> dict[str, str]:
    """Return each file that the compiler read from outside, and what it was.

    Places in folders of the user's where a file would have been found first are recorded as absent.

    Args:
        folder: Where the compiler kept its preprocessed texts.
        flags: Their include folders are looked at.
        toolchain: Whose own headers are known by size and date, all others by content.
        started: When the compilation began, in seconds since the epoch; a file changed later than that is
            never the same again.
    """
    read: set[str] = set()
    for pattern in ("*.cpp1.ii", "*.cpp4.ii"):
        for path in folder.glob(pattern):
            read.update(_MARKER.findall(path.read_bytes().decode(errors="replace")))
    read = {path for path in read if not path.startswith(f"{folder}/")}
    named = named_paths(flags)
    read |= {str(path) for path in named if path.is_file()}
    for place in named:
        read |= {str(place / relative) for relative in _as_asked(read, named, toolchain)}
    found = states(read, toolchain)
    for name, state in found.items():
        if state != _ABSENT and Path(name).stat().st_mtime >= started:
            found[name] = _CHANGING
    return found


def states(paths: Iterable[str], toolchain: Toolchain) -> dict[str, str]:
    """Return what each file is now, in words that are equal only for equal files."""
    own = (str(toolchain.root), str(toolchain.root.resolve()), "/usr/include", "/usr/lib")
    return {path: _state(path, own) for path in sorted(paths)}


def are_unchanged(recorded: Mapping[str, str], toolchain: Toolchain) -> bool:
    """Whether every file is as it was recorded."""
    return states(recorded, toolchain) == dict(sorted(recorded.items()))


def _as_asked(read: set[str], named: tuple[Path, ...], toolchain: Toolchain) -> set[str]:
    """Return the relative names by which files may have been asked for."""
    roots = [*named, toolchain.cuda_include, toolchain.cuda_include.resolve()]
    names: set[str] = set()
    for path in map(Path, read):
        names.add(path.name)
        names.update(str(path.relative_to(root)) for root in roots if path.is_relative_to(root))
    return names - {"."}


def _state(path: str, system: tuple[str, ...]) -> str:
    try:
        if path.startswith(system):
            facts = Path(path).stat()
            return f"{facts.st_size} {facts.st_mtime_ns}"
        return sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return _ABSENT
