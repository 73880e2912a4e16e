"""Profile, Metric, Bottleneck, Roofline: where the time goes and how it is known."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from kernelskill.schema.base import Record
from kernelskill.schema.build import KernelResources
from kernelskill.schema.device import Conditions

ProfileDepth = Literal["quick", "full"]
"""`quick`: what the ranking of limits needs, in one or two passes; `full`: all that a diagnosis can use."""


class Metric(Record):
    """One figure with its unit."""

    name: str
    value: float
    unit: str = ""


class LineProfile(Record):
    """What one source line does."""

    file: str
    line: int
    metrics: dict[str, float]


class KernelProfile(Record):
    """All figures of one kernel in one launch plan."""

    kernel: str
    """Display name."""
    launches: int
    time_share: float
    """Share of the plan's device time, 0 to 1."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float]
    """Metric name to value. Names are Nsight Compute's where it has one, else those in
    `profiling/metrics.toml`; a metric that was not collected is absent, never zero."""
    lines: tuple[LineProfile, ...] = ()
    resources: KernelResources | None = None
    instructions: dict[str, int] = Field(default_factory=dict)
    """Class of SASS instructions to their number in the code, as `backends/opcodes.toml` sorts them; one in a
    loop counts once. Empty where no disassembler was asked."""
    occupancy: float | None = None
    """Theoretical, 0 to 1."""
    occupancy_limit: str = ""
    """`registers`, `shared memory`, `threads` or `blocks`."""


class Profile(Record):
    """Figures of one candidate on one timed case."""

    candidate: str
    case: int
    source: Literal["ncu", "trace", "static"]
    kernels: tuple[KernelProfile, ...]
    """Hottest first."""
    duration_ms: float | None = None
    unavailable: str = ""
    """Why a better source was not used, with the remedy; empty where none is better."""
    commands: tuple[str, ...] = ()
    conditions: Conditions


class BottleneckKind(StrEnum):
    """The classes of limits that a diagnosis may name."""

    DRAM_BANDWIDTH = "dram_bandwidth"
    L2_BANDWIDTH = "l2_bandwidth"
    L1_BANDWIDTH = "l1_bandwidth"
    COALESCING_LOAD = "coalescing_load"
    COALESCING_STORE = "coalescing_store"
    BANK_CONFLICTS = "bank_conflicts"
    LATENCY = "latency"
    BARRIERS = "barriers"
    ATOMIC_CONTENTION = "atomic_contention"
    OCCUPANCY = "occupancy"
    SMALL_GRID = "small_grid"
    TAIL_WAVE = "tail_wave"
    DIVERGENCE = "divergence"
    SPILLS = "spills"
    FP64_IN_FLOAT = "fp64_in_float"
    INTEGER_DIVISION = "integer_division"
    SPECIAL_FUNCTIONS = "special_functions"
    COMPUTE = "compute"
    INSTRUCTION_ISSUE = "instruction_issue"
    NO_REUSE = "no_reuse"
    LAUNCH_OVERHEAD = "launch_overhead"
    NONE = "none"
    """At the roof: nothing to fix."""


class Bottleneck(Record):
    """A named limit with its evidence."""

    kind: BottleneckKind
    kernel: str
    confidence: float
    """0 to 1."""
    gain: float
    """Rough upper bound of the time share that removing it could win, 0 to 1."""
    evidence: tuple[Metric, ...]
    summary: str
    """One sentence for people."""
    lines: tuple[int, ...] = ()
    falsified_by: str = ""


class Roofline(Record):
    """Where a case stands under the ceilings of its GPU."""

    case: int
    bytes: float | None
    """Least bytes of device memory: from `cost()`, else counted from the buffers' unique bytes."""
    flops: float | None
    time_ms: float
    floor_ms: float | None
    """Least time that the larger of the two ceilings allows."""
    bound: Literal["memory", "compute", "unknown"]
    fraction: float | None
    """floor / time."""
    bytes_per_s: float | None
    flops_per_s: float | None
    ceiling_bytes_per_s: float
    ceiling_flops_per_s: float
    ceilings: Literal["data sheet", "measured"] = "data sheet"
    """Where the ceilings come from."""
    source: Literal["cost", "buffers", "none"]
