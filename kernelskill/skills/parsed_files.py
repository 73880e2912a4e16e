"""Parsed files, shared by everything that asks about one candidate."""

from __future__ import annotations

from functools import lru_cache

from kernelskill.source.preprocessor import given_macros
from kernelskill.source.signature import LauncherDecl, find_launchers
from kernelskill.source.unit import SourceUnit


@lru_cache(maxsize=128)
def parsed(text: str, path: str, flags: tuple[str, ...] = ()) -> SourceUnit:
    """Return a parsed file; the same text and compiler flags give the same unit."""
    return SourceUnit.parse(text, path, given_macros(flags))


@lru_cache(maxsize=128)
def launchers_in(unit: SourceUnit) -> tuple[LauncherDecl, ...]:
    """Return the launchers of a file."""
    return find_launchers(unit)
