"""Gpu and DeviceInfo: the hardware that figures belong to."""

from __future__ import annotations

import itertools
from typing import Literal

from kernelskill.schema.base import Record

Evidence = Literal["measured", "estimated", "none"]
"""Where a figure comes from. An estimate is called one everywhere."""


class Gpu(Record):
    """Facts of one GPU model. Sources stand beside the figures in `hardware/gpus.toml`."""

    name: str
    """For example `NVIDIA H200`."""
    short_name: str
    """For example `h200`; what the user types."""
    architecture: str
    """For example `sm_90a`."""
    sm_count: int
    clock_mhz: float
    """SM clock under load."""
    dram_bytes_per_s: float
    """Theoretical peak."""
    copy_bytes_per_s: float
    """Reached by a plain streaming copy, reads and writes counted."""
    l2_bytes: int
    l2_bytes_per_s: float
    memory_bytes: int
    registers_per_sm: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    """Largest opt-in size."""
    fp32_flops_per_s: float
    """Fused multiply-add counted as two."""
    fp64_flops_per_s: float
    tensor_fp16_flops_per_s: float = 0.0
    launch_latency_s: float = 2.5e-6
    source: str = ""
    ceilings: Literal["data sheet", "measured"] = "data sheet"
    """Where the rates come from: the tables, or `kernelskill ceilings` on this very GPU."""
    stream_bytes_per_s: tuple[tuple[float, float], ...] = ()
    """Measured rates of streams: share of reads, 0 to 1 and ascending, with bytes a second."""

    def stream_rate(self, read_share: float | None) -> float:
        """Return the rate of a stream that reads a share of its bytes and writes the rest.

        Between two measured mixes the time of a byte is taken to change evenly. Without measured mixes, or where
        the share is unknown, it is the rate of a copy.
        """
        mixes = self.stream_bytes_per_s
        if read_share is None or not mixes:
            return self.copy_bytes_per_s
        share = min(max(read_share, mixes[0][0]), mixes[-1][0])
        for (low, slow), (high, fast) in itertools.pairwise(mixes):
            if low <= share <= high:
                part = (share - low) / (high - low)
                return 1.0 / ((1.0 - part) / slow + part / fast)
        return mixes[0][1]


class Ceiling(Record):
    """The best rate, or the least time, that a program of ours reached on a GPU."""

    name: str
    """As `backends/cuda/ceilings.py` calls it, for example `stream 2:1`."""
    value: float
    unit: Literal["byte/s", "flop/s", "op/s", "s"]
    samples: int
    spread: float
    """Distance of the quartiles over the median."""
    meaning: str = ""


class ClockState(Record):
    """How fast a device runs at one moment."""

    sm_mhz: float | None = None
    """None where it is not told."""
    slowed_by: tuple[str, ...] = ()
    """What holds its clocks down, in words; a device without work is not slowed."""


class Conditions(Record):
    """What a figure depends on besides the candidate."""

    device: str
    """As the user names it: `cuda:0`, `emulated:h200`, `spool`."""
    gpu: str
    driver: str = ""
    cuda: str = ""
    """Compiler version."""
    kernelskill: str = ""
    python: str = ""
    host: str = ""
    """Operating system and processor."""
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    evidence: Evidence = "measured"


class Ceilings(Record):
    """Everything measured once on one GPU under one driver."""

    version: Literal[1] = 1
    uuid: str
    gpu: str
    """Name as the driver prints it."""
    driver: str
    conditions: Conditions
    rates: tuple[Ceiling, ...]
    lacking: tuple[str, ...] = ()
    """What could not be measured, each with its reason."""

    def rate(self, name: str) -> float | None:
        """Return a figure by name; None where it was not measured."""
        return next((rate.value for rate in self.rates if rate.name == name), None)
