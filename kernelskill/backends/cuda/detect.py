"""Which GPUs this machine has, found without creating a context on any of them."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache

from kernelskill.backends.cuda import driver as cuda
from kernelskill.backends.cuda.driver import Driver, DriverError
from kernelskill.errors import DeviceUnavailable, UnknownNameError
from kernelskill.hardware.ceilings import driver_version, stored_ceilings, with_ceilings
from kernelskill.hardware.gpus import find_gpu
from kernelskill.schema.base import Record
from kernelskill.schema.device import Gpu

_ASK_S = 20.0
_COPY_SHARE = 0.87
"""Of the peak rate a copy reaches; measured on an H200."""
_TRANSFERS_PER_CLOCK = 2
_LANES_PER_SM = 128
_NO_DRIVER = "install the NVIDIA driver, or use --device emulated"


class FoundGpu(Record):
    """One visible GPU."""

    index: int
    """As CUDA counts, after CUDA_VISIBLE_DEVICES."""
    name: str
    uuid: str
    """As nvidia-smi writes it."""
    capability: tuple[int, int]
    gpu: Gpu
    """Its facts, with the rates that were measured on it where `kernelskill ceilings` has run."""
    data_sheet: Gpu
    cuda: str
    """The newest CUDA that the driver serves."""


def find_gpus() -> tuple[FoundGpu, ...]:
    """Return the visible GPUs.

    Raises:
        DeviceUnavailable: There is no driver, or it does not start.
    """
    try:
        driver = _driver()
        return tuple(_found(driver, index) for index in range(driver.device_count()))
    except OSError as error:
        raise DeviceUnavailable(
            "no NVIDIA driver: libcuda.so.1 is not installed", remedy=_NO_DRIVER
        ) from error
    except DriverError as error:
        raise DeviceUnavailable(
            f"the NVIDIA driver does not start: {error}", remedy="see nvidia-smi"
        ) from error


def ask_nvidia_smi(uuid: str, fields: tuple[str, ...]) -> dict[str, str]:
    """Return what nvidia-smi says of one GPU; nothing where it is not installed or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    command = [program, "-i", uuid, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_nvidia_smi(done.stdout, fields) if done.returncode == 0 else {}


def parse_nvidia_smi(text: str, fields: tuple[str, ...]) -> dict[str, str]:
    """Read one line of comma-separated answers; a value that is not available is left out."""
    values = [value.strip() for value in text.strip().partition("\n")[0].split(",")]
    if len(values) != len(fields):
        return {}
    pairs = zip(fields, values, strict=True)
    return {field: value for field, value in pairs if value and not value.startswith("[")}


@lru_cache(maxsize=1)
def _driver() -> Driver:
    return Driver()


def _found(driver: Driver, index: int) -> FoundGpu:
    name = driver.device_name(index)
    raw = driver.device_uuid(index)
    capability = (
        driver.device_attribute(index, cuda.DEVICE_CAPABILITY_MAJOR),
        driver.device_attribute(index, cuda.DEVICE_CAPABILITY_MINOR),
    )
    parts = (raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:])
    uuid, cuda_version = "GPU-" + "-".join(parts), driver.version()
    facts = _facts(driver, index, name, capability)
    measured = stored_ceilings(uuid, driver_version(cuda_version))
    return FoundGpu(
        index=index,
        name=name,
        uuid=uuid,
        capability=capability,
        gpu=with_ceilings(facts, measured),
        data_sheet=facts,
        cuda=cuda_version,
    )


def _facts(driver: Driver, index: int, name: str, capability: tuple[int, int]) -> Gpu:
    """Return the known facts of the model, corrected by what the driver reports."""

    def attribute(number: int) -> int:
        return driver.device_attribute(index, number)

    reported = {
        "sm_count": attribute(cuda.DEVICE_MULTIPROCESSORS),
        "l2_bytes": attribute(cuda.DEVICE_L2_BYTES),
        "memory_bytes": driver.device_memory(index),
        "registers_per_sm": attribute(cuda.DEVICE_REGISTERS_PER_SM),
        "max_threads_per_sm": attribute(cuda.DEVICE_MAX_THREADS_PER_SM),
        "max_blocks_per_sm": attribute(cuda.DEVICE_MAX_BLOCKS_PER_SM),
        "shared_bytes_per_sm": attribute(cuda.DEVICE_SHARED_BYTES_PER_SM),
        "shared_bytes_per_block": attribute(cuda.DEVICE_SHARED_BYTES_PER_BLOCK),
    }
    try:
        return find_gpu(name).model_copy(update=reported)
    except UnknownNameError:
        pass
    clock_hz = attribute(cuda.DEVICE_CLOCK_RATE_KHZ) * 1e3
    memory_hz = attribute(cuda.DEVICE_MEMORY_CLOCK_RATE_KHZ) * 1e3
    dram = memory_hz * _TRANSFERS_PER_CLOCK * attribute(cuda.DEVICE_MEMORY_BUS_BITS) / 8
    fp32 = reported["sm_count"] * _LANES_PER_SM * 2 * clock_hz
    return Gpu(
        name=name,
        short_name="-".join(name.lower().removeprefix("nvidia ").split()),
        architecture=architecture(capability),
        clock_mhz=clock_hz / 1e6,
        dram_bytes_per_s=dram,
        copy_bytes_per_s=dram * _COPY_SHARE,
        l2_bytes_per_s=reported["sm_count"] * 64 * clock_hz * 0.6,
        fp32_flops_per_s=fp32,
        fp64_flops_per_s=fp32 / 64,
        source="device attributes of the driver; ceilings computed from clocks and bus width",
        **reported,
    )


def architecture(capability: tuple[int, int]) -> str:
    """Return the architecture to compile for; Hopper and Blackwell with their own features."""
    major, minor = capability
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
