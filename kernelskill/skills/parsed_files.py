"""Parsed files, shared by everything that asks about one candidate."""

from __future__ import annotations

from functools import lru_cache

from kernelskill.source.signature import LauncherDecl, find_launchers
from kernelskill.source.unit import SourceUnit


@lru_cache(maxsize=128)
def parsed(text: str, path: str) -> SourceUnit:
    """Return a parsed file; the same text gives the same unit."""
    return SourceUnit.parse(text, path)


@lru_cache(maxsize=128)
def launchers_in(unit: SourceUnit) -> tuple[LauncherDecl, ...]:
    """Return the launchers of a file."""
    return find_launchers(unit)
