"""How the translator says that it does not know something."""

from __future__ import annotations

from kernelskill.backends.emulated.ptx.syntax import Location


class Unsupported(Exception):
    """A construct that the emulated device does not know.

    Args:
        what: The construct as written.
        location: Where it stands in the source, if that is known.
    """

    def __init__(self, what: str, location: Location | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.location = location
