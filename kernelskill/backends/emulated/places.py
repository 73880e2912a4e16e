"""Access sites to source lines."""

from __future__ import annotations

from typing import Any

_TOOLKIT_MARKS = ("/include/", "/targets/", "/cccl/")


class SourcePlaces:
    """Finds the user's line of a site: the innermost inlined position that is not a toolkit header's."""

    def __init__(self, module: dict[str, Any]) -> None:
        self._files: dict[str, str] = module["files"]
        self._sites: list[list[Any]] = module["sites"]
        self._names: dict[str, str] = module.get("display_names", {})

    def kernel(self, name: str) -> str:
        """Return a kernel's name as people read it."""
        return self._names.get(name, name)

    def place(self, site: int) -> tuple[str, int]:
        """Return file and line of a site; line 0 where it is unknown."""
        if not 0 <= site < len(self._sites):
            return "", 0
        chain = self._sites[site][2]
        return self.of_chain(chain)

    def of_chain(self, chain: list[list[int]]) -> tuple[str, int]:
        """Return file and line of an inlining chain, innermost first."""
        named = [(self._files.get(str(file), ""), line) for file, line in chain]
        users = [
            (file, line) for file, line in named if line and not any(mark in file for mark in _TOOLKIT_MARKS)
        ]
        return (users or named or [("", 0)])[0]

    def describe(self, site: int, kernel: str) -> str:
        """Return `kernel NAME, line N`, with the file where it is not the main one."""
        line = self.place(site)[1]
        return f"kernel {self.kernel(kernel)}" + (f", line {line}" if line else "")
