"""Finding things by name, with near names in the error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kernelskill.errors import UnknownNameError


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that look like `name`, the nearest first."""
    lowered = {candidate.lower(): candidate for candidate in known}
    return [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Build the error for a name that matches nothing.

    Args:
        kind: What was looked for, for example `skill`.
        name: What was given.
        known: The names there are.
    """
    names = sorted(known)
    near = near_names(name, names)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names[:12]) or 'none'}"
    return UnknownNameError(f"no {kind} is called {name!r}", remedy=remedy)
