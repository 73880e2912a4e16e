"""Name the nearest spelling of a word that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known word most like `word`, or None where none is alike."""
    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    found = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=cutoff)
    if found:
        return folded[found[0]]
    if len(word) >= 3:
        return next((name for name in names if name.casefold().startswith(word.casefold())), None)
    return None


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or nothing."""
    found = nearest(word, known)
    return f"; did you mean {found!r}?" if found else ""


def listed(names: Iterable[str]) -> str:
    """Return names as `'a', 'b'`, or `nothing`."""
    return ", ".join(repr(name) for name in names) or "nothing"
