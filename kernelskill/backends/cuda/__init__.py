"""NVIDIA GPUs of this machine: plans replayed by a trusted worker through the driver API."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelskill.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]


def __getattr__(name: str) -> object:
    """Load the backend when it is asked for: the worker processes need no compiler and no recorder."""
    if name == "CudaBackend":
        from kernelskill.backends.cuda.backend import CudaBackend  # noqa: PLC0415

        return CudaBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
