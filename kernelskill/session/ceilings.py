"""The ceilings of a GPU: measured once, kept, and read again."""

from __future__ import annotations

from collections.abc import Callable

from kernelskill.backends.devices import open_backend
from kernelskill.errors import DeviceUnavailable
from kernelskill.hardware.ceilings import driver_version, store_ceilings, stored_ceilings
from kernelskill.schema.base import Record
from kernelskill.schema.device import Ceilings, Gpu


class KnownCeilings(Record):
    """What a GPU can do at best, beside its data sheet."""

    ceilings: Ceilings
    data_sheet: Gpu
    """The facts of `gpus.toml` or the user's own file."""
    fresh: bool
    """Whether it was measured just now."""


def ceilings_of(device: str, *, again: bool, report: Callable[[str], None]) -> KnownCeilings:
    """Return the ceilings of a GPU of this machine; they are measured where they are not known.

    Args:
        device: `auto` or `cuda:N`.
        again: Measure even what is known.
        report: Told in one line what was found.

    Raises:
        DeviceUnavailable: The device is not a GPU of this machine, or the GPU is busy.
        UnknownNameError: The name means no device.
    """
    if device.partition(":")[0] in ("spool", "replay"):
        raise DeviceUnavailable(
            f"ceilings cannot be measured through {device!r}",
            remedy="run `kernelskill ceilings` on the machine that has the GPU",
        )
    backend = open_backend(device)
    from kernelskill.backends.cuda.backend import CudaBackend  # noqa: PLC0415 - its room loads a driver
    from kernelskill.backends.cuda.ceilings import measure_ceilings  # noqa: PLC0415

    if not isinstance(backend, CudaBackend):
        raise DeviceUnavailable(
            f"ceilings cannot be measured on {backend.name!r}: its times are estimates, made from the data sheet",
            remedy="run `kernelskill ceilings` on a machine with an NVIDIA GPU",
        )
    driver = driver_version(backend.found.cuda)
    known = None if again else stored_ceilings(backend.found.uuid, driver)
    ceilings = known or measure_ceilings(backend, report)
    if known is None:
        store_ceilings(ceilings)
    return KnownCeilings(ceilings=ceilings, data_sheet=backend.found.data_sheet, fresh=known is None)
