"""The device that is not there: PTX of unmodified sources on the CPU, times from a model.

The worker's child process imports parts of this package and must start fast, so the backend itself is
loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelskill.backends.emulated.backend import EmulatedBackend

__all__ = ["EmulatedBackend"]


def __getattr__(name: str) -> object:
    if name == "EmulatedBackend":
        from kernelskill.backends.emulated.backend import EmulatedBackend  # noqa: PLC0415 - see above

        return EmulatedBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
