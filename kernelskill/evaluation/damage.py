"""Right answers with a part overwritten: who leaves what looks right already must not get away with it."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path

SHARE = 8
"""One part of so many is overwritten, at least one element."""
DAMAGE = 0x7B
_LATER_CALLS = (24, 40)
_LOOKED_AT = 1 << 16


def damaged(answer: Path, element_bytes: int, folder: Path) -> Path:
    """Write a copy of an answer in which one stretch of elements is overwritten.

    Where it lies follows from the answer, and so from the run's secret seeds.

    Args:
        answer: Raw bytes of one output.
        element_bytes: Size of one element.
        folder: Where the copy is written.
    """
    elements = answer.stat().st_size // element_bytes
    length = max(1, elements // SHARE)
    start = _choice(answer).randrange(max(1, elements - length + 1))
    target = folder / f"{answer.stem}.damaged"
    target.unlink(missing_ok=True)
    shutil.copyfile(answer, target)
    with target.open("r+b") as file:
        file.seek(start * element_bytes)
        file.write(bytes([DAMAGE]) * (min(length, elements) * element_bytes))
    return target


def later_calls(answer: Path) -> int:
    """Return how many further calls a program with a memory of its own must survive; it cannot foresee it."""
    return _choice(answer).randint(*_LATER_CALLS)


def _choice(answer: Path) -> random.Random:
    with answer.open("rb") as file:
        return random.Random(hashlib.sha256(file.read(_LOOKED_AT)).digest())
