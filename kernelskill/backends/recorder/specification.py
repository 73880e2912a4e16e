"""What the recorder is told: the GPU, the build, the call. Never the contents of any buffer."""

from __future__ import annotations

import math
import re

from kernelskill.backends.base import Call
from kernelskill.backends.entry import ENTRY_SYMBOL
from kernelskill.backends.recorder.caller import scalar_bytes
from kernelskill.errors import HarnessError
from kernelskill.schema.build import Build
from kernelskill.schema.device import Gpu
from kernelskill.schema.task import Parameter, Signature

CALLS = 3
"""The first is the plan; the others tell whether the launcher keeps state."""
EARLIER = "earlier "
"""Stands before the names of the buffers of a call that is made first."""
_CAPABILITY = re.compile(r"sm_(\d+)(\d)[a-z]?$")
_MEMORY_BUS_BITS = 4096
"""No launcher can tell; only the product with the clock is a fact of the GPU."""


def specification_text(
    build: Build,
    signature: Signature,
    call: Call,
    gpu: Gpu,
    *,
    root: str,
    layout: int,
    timeout_s: float,
    before: Call | None = None,
    repeats: int = 1,
) -> bytes:
    """Return the specification of one recording, as `specification.cpp` reads it.

    Args:
        build: The kernels and variables.
        signature: The launcher's parameters.
        call: Made a few times, or after `before`.
        gpu: What the launcher is told.
        root: The only folder that candidate code may see.
        layout: 0 or 1.
        timeout_s: Becomes the limit of processor time.
        before: A call made first, with buffers of its own.
        repeats: How often `call` is made after it.

    Raises:
        HarnessError: The call does not match the signature.
        UnknownArgument: A scalar cannot be passed by value.
    """
    lines = [_gpu_line(gpu)]
    for kernel in build.kernels:
        layout_words = " ".join(f"{p.offset} {p.size}" for p in kernel.parameters)
        lines.append(
            f"kernel {kernel.name} {kernel.registers} {kernel.static_shared_bytes} {kernel.stack_bytes} "
            f"{kernel.max_threads} {len(kernel.parameters)} {layout_words}"
        )
    lines += [f"variable {variable.name} {variable.size_bytes}" for variable in build.variables]
    sequence = [0] * CALLS
    if before is not None:
        lines += [f"buffer {size} {EARLIER}{name}" for name, size in before.buffers.items()]
        lines += [_argument_line(parameter, before, 0) for parameter in signature.parameters]
        lines.append("other")
        sequence = [0, *[1] * repeats]
    first = 0 if before is None else len(before.buffers)
    lines += [f"buffer {size} {name}" for name, size in call.buffers.items()]
    lines += [_argument_line(parameter, call, first) for parameter in signature.parameters]
    lines += [f"symbol {ENTRY_SYMBOL}", f"root {root}"]
    words = " ".join(map(str, [layout, math.ceil(timeout_s) + 1, len(sequence), *sequence]))
    lines.append(f"run {words}")
    return ("\n".join(lines) + "\n").encode()


def _gpu_line(gpu: Gpu) -> str:
    found = _CAPABILITY.match(gpu.architecture)
    if found is None:
        raise HarnessError(f"the GPU {gpu.name!r} has the unknown architecture {gpu.architecture!r}")
    memory_clock_khz = round(gpu.dram_bytes_per_s * 8 / (2 * _MEMORY_BUS_BITS) / 1e3)
    facts = (
        found.group(1),
        found.group(2),
        gpu.sm_count,
        round(gpu.clock_mhz * 1e3),
        memory_clock_khz,
        _MEMORY_BUS_BITS,
        gpu.l2_bytes,
        gpu.memory_bytes,
        gpu.registers_per_sm,
        gpu.max_threads_per_sm,
        gpu.max_blocks_per_sm,
        gpu.shared_bytes_per_sm,
        gpu.shared_bytes_per_block,
    )
    return f"gpu {' '.join(map(str, facts))} {gpu.name}"


def _argument_line(parameter: Parameter, call: Call, first_buffer: int) -> str:
    if parameter.kind == "stream":
        return "argument stream"
    if parameter.kind == "pointer":
        if parameter.name not in call.pointers:
            raise HarnessError(f"the call gives no place for the pointer {parameter.name!r}")
        place = call.pointers[parameter.name]
        if place.buffer not in call.buffers:
            raise HarnessError(f"the pointer {parameter.name!r} points into no buffer of the call")
        return f"argument pointer {first_buffer + list(call.buffers).index(place.buffer)} {place.offset}"
    if parameter.name not in call.scalars:
        raise HarnessError(f"the call gives no value for {parameter.name!r}")
    return f"argument bytes {scalar_bytes(parameter, call.scalars[parameter.name]).hex()}"
