"""Join what a device said, what the compiler said and what the plan asks into one Profile."""

from __future__ import annotations

from collections import Counter
from math import prod

from kernelskill.backends.base import ProfileRun
from kernelskill.hardware.occupancy import Occupancy, occupancy
from kernelskill.schema.build import Build, KernelResources
from kernelskill.schema.device import Conditions, Gpu
from kernelskill.schema.launch_plan import Launch, LaunchPlan
from kernelskill.schema.profile import KernelProfile, Profile

_LIMIT_METRICS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "threads": "launch__occupancy_limit_warps",
    "blocks": "launch__occupancy_limit_blocks",
}


def join_profile(
    run: ProfileRun,
    build: Build,
    plan: LaunchPlan,
    *,
    candidate: str,
    case: int,
    gpu: Gpu,
    conditions: Conditions,
) -> Profile:
    """Return the profile of one candidate on one case.

    Kernels come from the run; a run without counters gets the plan's kernels with static facts alone,
    their shares taken from the threads they launch.
    """
    kernels = run.kernels or _static_kernels(build, plan)
    joined = tuple(_with_facts(kernel, build, plan, gpu) for kernel in kernels)
    return Profile(
        candidate=candidate,
        case=case,
        source=run.source,
        kernels=tuple(sorted(joined, key=lambda kernel: (-kernel.time_share, kernel.kernel))),
        duration_ms=run.duration_ms,
        unavailable=run.unavailable,
        commands=run.commands,
        conditions=conditions,
    )


def _static_kernels(build: Build, plan: LaunchPlan) -> tuple[KernelProfile, ...]:
    launches = plan.launches()
    total = sum(prod(launch.grid) * prod(launch.block) for launch in launches) or 1
    counts = Counter(launch.kernel for launch in launches)
    kernels = []
    for name, count in counts.items():
        own = [launch for launch in launches if launch.kernel == name]
        largest = max(own, key=lambda launch: prod(launch.grid) * prod(launch.block))
        resources = build.kernel(name)
        kernels.append(
            KernelProfile(
                kernel=resources.display_name if resources else name,
                launches=count,
                time_share=sum(prod(launch.grid) * prod(launch.block) for launch in own) / total,
                grid=largest.grid,
                block=largest.block,
                metrics={},
                resources=resources,
            )
        )
    return tuple(kernels)


def _with_facts(kernel: KernelProfile, build: Build, plan: LaunchPlan, gpu: Gpu) -> KernelProfile:
    resources = kernel.resources or _resources(kernel.kernel, build)
    metrics = {"plan__grid_size": float(prod(kernel.grid)), "plan__sm_count": float(gpu.sm_count)}
    update: dict[str, object] = {"resources": resources}
    if resources is not None and 1 <= prod(kernel.block) <= 1024:
        shared = resources.static_shared_bytes + _dynamic_shared(resources.name, kernel, plan)
        found = occupancy(gpu, resources.registers, shared, prod(kernel.block))
        metrics |= _occupancy_metrics(found, kernel, gpu)
        update |= {"occupancy": found.fraction, "occupancy_limit": found.limit}
    update["metrics"] = metrics | kernel.metrics
    return kernel.model_copy(update=update)


def _occupancy_metrics(found: Occupancy, kernel: KernelProfile, gpu: Gpu) -> dict[str, float]:
    metrics = {_LIMIT_METRICS[name]: float(blocks) for name, blocks in found.limits.items()}
    if found.blocks_per_sm:
        metrics["plan__waves"] = prod(kernel.grid) / (found.blocks_per_sm * gpu.sm_count)
    return metrics


def _resources(display_name: str, build: Build) -> KernelResources | None:
    """Find a kernel by its display name, with or without template arguments and parameters."""
    for kernel in build.kernels:
        if display_name in (kernel.display_name, kernel.name):
            return kernel
    bare = display_name.split("(", 1)[0]
    matches = [kernel for kernel in build.kernels if kernel.display_name.split("(", 1)[0] == bare]
    return matches[0] if len(matches) == 1 else None


def _dynamic_shared(name: str, kernel: KernelProfile, plan: LaunchPlan) -> int:
    same: list[Launch] = [launch for launch in plan.launches() if launch.kernel == name]
    exact = [launch for launch in same if (launch.grid, launch.block) == (kernel.grid, kernel.block)]
    return max((launch.dynamic_shared_bytes for launch in exact or same), default=0)
