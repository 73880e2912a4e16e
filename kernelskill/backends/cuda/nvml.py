"""The management library of the driver, where its Python bindings are installed: answers in microseconds.

The program nvidia-smi says the same in a quarter of a second; it is asked where the bindings are missing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kernelskill.schema.base import Record


class GpuState(Record):
    """What the driver says of a GPU at one moment; None where it does not say."""

    driver: str
    sm_mhz: float | None
    memory_mhz: float | None
    slowed_bits: int
    """`nvmlClocksEventReasons`."""


def gpu_state(uuid: str) -> GpuState | None:
    """Return the state of a GPU, or None where the library cannot be asked."""
    library = _library()
    if library is None:
        return None
    try:
        handle = library.nvmlDeviceGetHandleByUUID(uuid)
        driver = str(library.nvmlSystemGetDriverVersion())
    except library.NVMLError:
        return None
    return GpuState(
        driver=driver,
        sm_mhz=_clock(library, handle, library.NVML_CLOCK_SM),
        memory_mhz=_clock(library, handle, library.NVML_CLOCK_MEM),
        slowed_bits=_slowed_bits(library, handle),
    )


def _clock(library: Any, handle: Any, kind: int) -> float | None:
    try:
        return float(library.nvmlDeviceGetClockInfo(handle, kind))
    except library.NVMLError:
        return None


def _slowed_bits(library: Any, handle: Any) -> int:
    try:
        return int(library.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    except library.NVMLError:
        return 0


@lru_cache(maxsize=1)
def _library() -> Any:
    """Return the bindings, started, or None."""
    try:
        import pynvml  # noqa: PLC0415 - an extra that may be missing
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
