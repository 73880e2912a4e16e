"""Place a timed case under the ceilings of its GPU."""

from __future__ import annotations

from typing import Literal

from kernelskill.schema.device import Gpu
from kernelskill.schema.evaluation import CaseShape, Timing
from kernelskill.schema.profile import Roofline
from kernelskill.schema.task import Allowance, Case, Cost, Task

_SHORT = ("float16", "bfloat16")


def arithmetic_rate(task: Task, gpu: Gpu) -> float:
    """Return the operations a second that a task's arithmetic could reach, by the types of its arrays.

    Arrays of 16-bit floats, or the permission to compute in them, open the tensor cores; arrays that are double
    throughout are bound to that pipe. Everything else is single precision.
    """
    pointers = [p.element.dtype for p in task.signature.parameters if p.kind == "pointer" and p.element]
    floats = [dtype for dtype in pointers if dtype.startswith(("float", "bfloat"))]
    short = Allowance.LOWER_PRECISION in task.allow or any(dtype in _SHORT for dtype in floats)
    if short and gpu.tensor_fp16_flops_per_s:
        return gpu.tensor_fp16_flops_per_s
    if floats and all(dtype == "float64" for dtype in floats):
        return gpu.fp64_flops_per_s
    return gpu.fp32_flops_per_s


def roofline(
    case: Case,
    cost: Cost | None,
    shape: CaseShape | None,
    timing: Timing,
    gpu: Gpu,
    *,
    flops_per_s: float | None = None,
) -> Roofline:
    """Return where a timing stands.

    Args:
        case: The timed case; its own cost is used where `cost` is None.
        cost: The user's count of the least work, or None.
        shape: Sizes of the buffers: they tell the mix of reads and writes, and the bytes where the user counted
            none. None where they are unknown.
        timing: Samples of the case.
        gpu: The GPU. The memory ceiling is the rate of a stream with the same mix, not the vendor's peak.
        flops_per_s: Ceiling of the arithmetic, as `arithmetic_rate` tells it; None: single precision.
    """
    arithmetic = gpu.fp32_flops_per_s if flops_per_s is None else flops_per_s
    counted = cost or case.cost or Cost()
    buffer_bytes = None if shape is None else shape.least_bytes
    least_bytes = counted.bytes if counted.bytes is not None else buffer_bytes
    stream = gpu.stream_rate(None if shape is None else shape.read_share)
    time_ms = timing.median_ms
    memory_ms = None if least_bytes is None else least_bytes / stream * 1e3
    compute_ms = None if counted.flops is None else counted.flops / arithmetic * 1e3
    floors = [floor for floor in (memory_ms, compute_ms) if floor is not None]
    floor_ms = max(floors) if floors else None
    return Roofline(
        case=case.index,
        bytes=least_bytes,
        flops=counted.flops,
        time_ms=time_ms,
        floor_ms=floor_ms,
        bound=_bound(memory_ms, compute_ms),
        fraction=None if floor_ms is None or time_ms <= 0 else floor_ms / time_ms,
        bytes_per_s=_rate(least_bytes, time_ms),
        flops_per_s=_rate(counted.flops, time_ms),
        ceiling_bytes_per_s=stream,
        ceiling_flops_per_s=arithmetic,
        ceilings=gpu.ceilings,
        source=_source(counted, buffer_bytes),
    )


def _bound(memory_ms: float | None, compute_ms: float | None) -> Literal["memory", "compute", "unknown"]:
    if memory_ms is None and compute_ms is None:
        return "unknown"
    return "memory" if (memory_ms or 0.0) >= (compute_ms or 0.0) else "compute"


def _rate(amount: float | None, time_ms: float) -> float | None:
    return None if amount is None or time_ms <= 0 else amount / time_ms * 1e3


def _source(cost: Cost, buffer_bytes: float | None) -> Literal["cost", "buffers", "none"]:
    if cost.bytes is not None or cost.flops is not None:
        return "cost"
    return "buffers" if buffer_bytes is not None else "none"
