"""Screening: points that the hardware rules out, before they are built and before they are timed."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.hardware.occupancy import occupancy
from kernelskill.profiling.potential import plain_name
from kernelskill.schema.build import KernelResources
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Gpu
from kernelskill.skills.apply import SUFFIXES
from kernelskill.skills.parsed_files import parsed
from kernelskill.source.footprint import Footprint, footprints

MOST_THREADS = 1024
STATIC_SHARED_BYTES = 48 * 1024
"""What a block may declare; more has to be asked for at the launch."""
SCHEDULERS = 4
"""Of a multiprocessor: with fewer resident warps than these, some never have anything to issue."""
_WARP = 32


def before_building(candidate: Candidate, base: Candidate, gpu: Gpu, flags: tuple[str, ...] = ()) -> str:
    """Return why a candidate need not be built, or an empty text.

    Only the text is known: block shapes and shared arrays that are constants. What the base does
    already is never held against a candidate.

    Args:
        candidate: The point's sources.
        base: What it was made of.
        gpu: Its limits.
        flags: Of the compiler; they may define macros.
    """
    before = {found.kernel: found for found in _footprints(base, flags)}
    for found in _footprints(candidate, flags):
        if before.get(found.kernel) == found:
            continue
        if found.threads is not None and not 0 < found.threads <= MOST_THREADS:
            return f"{found.kernel}: {found.threads} threads a block; 1 to {MOST_THREADS} are possible"
        if found.shared_bytes > min(STATIC_SHARED_BYTES, gpu.shared_bytes_per_block):
            return f"{found.kernel}: {found.shared_bytes} bytes of static shared memory do not fit"
        idle = _too_few_warps(found.kernel, found.threads, 1, found.shared_bytes, gpu)
        if idle:
            return idle
    return ""


def after_building(
    kernels: Sequence[KernelResources],
    candidate: Candidate,
    base_kernels: Sequence[KernelResources],
    gpu: Gpu,
    flags: tuple[str, ...] = (),
) -> str:
    """Return why a candidate need not be timed, or an empty text.

    Args:
        kernels: What the compiler made of it.
        candidate: The point's sources, for its block shapes.
        base_kernels: What the compiler made of the base.
        gpu: Its limits.
        flags: Of the compiler; they may define macros.
    """
    threads = {found.kernel: found.threads for found in _footprints(candidate, flags)}
    known = {(k.display_name, k.registers, k.static_shared_bytes) for k in base_kernels}
    for kernel in kernels:
        name = plain_name(kernel.display_name)
        if (kernel.display_name, kernel.registers, kernel.static_shared_bytes) in known:
            continue
        idle = _too_few_warps(name, threads.get(name), kernel.registers, kernel.static_shared_bytes, gpu)
        if idle:
            return idle
    return ""


def spilled_bytes(kernels: Sequence[KernelResources]) -> int:
    """Return the bytes that all kernels together spill to local memory."""
    return sum(kernel.spill_store_bytes + kernel.spill_load_bytes for kernel in kernels)


def _too_few_warps(kernel: str, threads: int | None, registers: int, shared_bytes: int, gpu: Gpu) -> str:
    if threads is None or not 0 < threads <= MOST_THREADS:
        return ""
    found = occupancy(gpu, registers, shared_bytes, threads)
    if found.blocks_per_sm == 0:
        return f"{kernel}: no block of {threads} threads fits a multiprocessor, for its {found.limit}"
    warps = found.blocks_per_sm * -(-threads // _WARP)
    if warps >= SCHEDULERS:
        return ""
    return f"{kernel}: only {warps} resident warp{'s' if warps > 1 else ''}, for its {found.limit}"


def _footprints(candidate: Candidate, flags: tuple[str, ...]) -> list[Footprint]:
    return [
        found
        for file in candidate.files
        if file.path.endswith(SUFFIXES)
        for found in footprints(parsed(file.text, file.path, flags))
    ]
