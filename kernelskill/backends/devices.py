"""Open a backend by the name that users give a device."""

from __future__ import annotations

import re

from kernelskill.backends.base import Backend
from kernelskill.errors import DeviceUnavailable, UnknownNameError
from kernelskill.hardware.gpus import find_gpu

DEFAULT_EMULATED = "h200"
"""The GPU that `emulated` alone means; the one that the estimates were compared with."""
_CUDA = re.compile(r"cuda(?::(\d+))?")


def open_backend(device: str) -> Backend:
    """Return the backend of a device: `cuda:N`, `emulated`, `emulated:GPU` or `auto`.

    `auto` is the first GPU of this machine, else the emulated device.

    Raises:
        UnknownNameError: The name means no device, or no known GPU.
        DeviceUnavailable: The GPU cannot be used on this machine.
        CompilerMissing: The emulated device lacks its compilers.
    """
    wanted = device.strip().lower()
    if wanted == "auto":
        return _automatic()
    if match := _CUDA.fullmatch(wanted):
        return _cuda(int(match.group(1) or 0))
    if wanted == "emulated":
        return _emulated(DEFAULT_EMULATED)
    if wanted.startswith("emulated:"):
        return _emulated(wanted.removeprefix("emulated:"))
    raise UnknownNameError(
        f"no device is named {device!r}", remedy="use auto, cuda:0, emulated or emulated:h200"
    )


def _automatic() -> Backend:
    try:
        return _cuda(0)
    except DeviceUnavailable:
        return _emulated(DEFAULT_EMULATED)


def _cuda(index: int) -> Backend:
    from kernelskill.backends.cuda import CudaBackend  # noqa: PLC0415 - its room loads a driver

    return CudaBackend(index)


def _emulated(name: str) -> Backend:
    from kernelskill.backends.emulated import EmulatedBackend  # noqa: PLC0415 - its room is heavy

    return EmulatedBackend(find_gpu(name))
