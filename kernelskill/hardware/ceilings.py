"""Keep what was measured of a GPU, and put it in the place of its data sheet."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from kernelskill.resources import cache_dir
from kernelskill.runs import write_atomically
from kernelskill.schema.device import Ceilings, Gpu

STREAM_COPY = "stream 1:1"
L2_READ = "L2 reads"
FMA_FP32 = "FMA fp32"
FMA_FP64 = "FMA fp64"
WARP_PRODUCTS = "tensor fp16, warp products"
GROUP_PRODUCTS = "tensor fp16, warp group products"
LAUNCH = "launch after launch"
_STREAM = re.compile(r"stream (\d+):(\d+)")
_DRIVER_FILE = Path("/proc/driver/nvidia/version")
_DRIVER_VERSION = re.compile(r"\s(\d+\.\d+(?:\.\d+)*)\s")
_BY_GROUPS = ("sm_90", "sm_100", "sm_103")
"""Architectures on which the products of single warps do not reach the tensor cores' peak."""
_PLAUSIBLE = 2.0
"""A rate of more than so many times the stated peak is a broken clock, not a fast GPU."""
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def driver_version(cuda: str) -> str:
    """Return the version of the kernel module, or else the newest CUDA that the driver serves."""
    try:
        found = _DRIVER_VERSION.search(_DRIVER_FILE.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        found = None
    return found.group(1) if found else f"cuda-{cuda}"


def stored_ceilings(uuid: str, driver: str) -> Ceilings | None:
    """Return what was measured on a GPU under a driver; None where nothing was, or nothing readable."""
    try:
        found = Ceilings.model_validate_json(ceilings_file(uuid, driver).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if (found.uuid, found.driver) == (uuid, driver) else None


def store_ceilings(ceilings: Ceilings) -> Path:
    """Keep what was measured and return the file; what was known of this GPU and driver is replaced."""
    file = ceilings_file(ceilings.uuid, ceilings.driver)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(file, ceilings.model_dump_json(indent=1).encode())
    return file


def ceilings_file(uuid: str, driver: str) -> Path:
    """Return where the ceilings of a GPU under a driver are kept."""
    return cache_dir() / "ceilings" / (_NOT_IN_NAMES.sub("-", f"{uuid}_{driver}") + ".json")


def with_ceilings(gpu: Gpu, ceilings: Ceilings | None) -> Gpu:
    """Return the facts of a GPU with its measured rates in place of those of the data sheet.

    The theoretical bandwidth stays: it is what no kernel can beat. Rates far above a peak are not believed.
    """
    if ceilings is None:
        return gpu
    tensor = GROUP_PRODUCTS if gpu.architecture.startswith(_BY_GROUPS) else WARP_PRODUCTS
    names = {
        "copy_bytes_per_s": STREAM_COPY,
        "l2_bytes_per_s": L2_READ,
        "fp32_flops_per_s": FMA_FP32,
        "fp64_flops_per_s": FMA_FP64,
        "tensor_fp16_flops_per_s": tensor,
        "launch_latency_s": LAUNCH,
    }
    rates = {field: ceilings.rate(name) for field, name in names.items()}
    peaks = gpu.model_dump() | {"copy_bytes_per_s": gpu.dram_bytes_per_s}
    measured = {
        field: rate
        for field, rate in rates.items()
        if rate and (field == "launch_latency_s" or not 0 < peaks[field] * _PLAUSIBLE < rate)
    }
    needed = ("copy_bytes_per_s", "fp32_flops_per_s")
    if not all(field in measured for field in needed):
        return gpu  # a roof made of both would be called measured and be neither
    return gpu.model_copy(
        update=measured | {"ceilings": "measured", "stream_bytes_per_s": _mixes(gpu, ceilings)}
    )


def _mixes(gpu: Gpu, ceilings: Ceilings) -> tuple[tuple[float, float], ...]:
    """Return the measured streams: share of reads and rate; rates far above the peak are not believed."""
    found = {}
    for rate in ceilings.rates:
        match = _STREAM.fullmatch(rate.name)
        if match and 0 < rate.value <= _PLAUSIBLE * gpu.dram_bytes_per_s:
            reads, writes = map(int, match.groups())
            found[reads / (reads + writes)] = rate.value
    return tuple(sorted(found.items()))
