"""Parsed files, shared by everything that asks about one candidate."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from kernelskill.source.preprocessor import MacroDef, given_macros
from kernelskill.source.signature import LauncherDecl, find_launchers
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit


@lru_cache(maxsize=128)
def parsed(text: str, path: str, flags: tuple[str, ...] = ()) -> SourceUnit:
    """Return a parsed file; the same text and compiler flags give the same unit."""
    return SourceUnit.parse(text, path, given_macros(flags))


def with_included_macros(units: Sequence[SourceUnit]) -> tuple[SourceUnit, ...]:
    """Return files that also know the macros of the files among them that they include."""
    by_path = {posixpath.normpath(unit.path): unit for unit in units}
    return tuple(_with_macros(unit, _included_macros(unit, by_path)) for unit in units)


def _included_macros(unit: SourceUnit, by_path: dict[str, SourceUnit]) -> tuple[MacroDef, ...]:
    pending, seen = [unit], {unit.path}
    found: list[MacroDef] = []
    while pending:
        current = pending.pop()
        folder = posixpath.dirname(current.path)
        for include in current.includes:
            places = (posixpath.join(folder, include.path), include.path)
            other = next((by_path[p] for p in map(posixpath.normpath, places) if p in by_path), None)
            if include.is_local and other is not None and other.path not in seen:
                seen.add(other.path)
                pending.append(other)
                found += [replace(m, span=Span(0, 0), value_span=None) for m in other.macros]
    return tuple(found)


@lru_cache(maxsize=128)
def _with_macros(unit: SourceUnit, macros: tuple[MacroDef, ...]) -> SourceUnit:
    return replace(unit, macros=(*macros, *unit.macros)) if macros else unit


@lru_cache(maxsize=128)
def launchers_in(unit: SourceUnit) -> tuple[LauncherDecl, ...]:
    """Return the launchers of a file."""
    return find_launchers(unit)
