"""Join what a device said, what the compiler said and what the plan asks into one Profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod

from kernelskill.backends.base import ProfileRun
from kernelskill.backends.sass import KernelCode, machine_code
from kernelskill.backends.toolchain import Toolchain
from kernelskill.errors import CompilerMissing
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
    if run.source == "static":  # elsewhere what was executed is known, and says more
        joined = with_instructions(joined, build, _code(build))
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


def with_instructions(
    kernels: tuple[KernelProfile, ...], build: Build, code: Mapping[str, KernelCode]
) -> tuple[KernelProfile, ...]:
    """Return the kernels with the mix of their instructions.

    Args:
        kernels: Kernels of the build.
        build: The build.
        code: Its machine code by mangled name; kernels that are not in it stay as they are.
    """
    joined = []
    for kernel in kernels:
        resources = kernel.resources or _resources(kernel.kernel, build)
        own = None if resources is None else code.get(resources.name)
        joined.append(kernel if own is None else kernel.model_copy(update={"instructions": own.mix()}))
    return tuple(joined)


def with_measured_shares(profile: Profile, shares: Mapping[str, float], time_ms: float | None) -> Profile:
    """Return a profile without counters with shares of the time that were measured, the hottest kernel first.

    Args:
        profile: Any; one that has shares from counters or a trace is returned as it is.
        shares: Display name to share, as the timing gave them; nothing where there is one kernel.
        time_ms: Time of the profiled case.
    """
    if profile.source != "static":
        return profile
    kernels = profile.kernels
    if kernels and all(kernel.kernel in shares for kernel in kernels):
        measured = (k.model_copy(update={"time_share": shares[k.kernel]}) for k in kernels)
        kernels = tuple(sorted(measured, key=lambda kernel: (-kernel.time_share, kernel.kernel)))
    duration = profile.duration_ms if profile.duration_ms is not None else time_ms
    return profile.model_copy(update={"kernels": kernels, "duration_ms": duration})


def _code(build: Build) -> dict[str, KernelCode]:
    try:
        return machine_code(build, Toolchain.find())
    except CompilerMissing:
        return {}


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
