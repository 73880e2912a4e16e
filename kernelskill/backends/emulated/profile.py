"""Figures of a traced plan, named as Nsight Compute names them where it has them; see `metrics.md`."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from kernelskill.backends.emulated.estimate import LaunchEstimate, copy_seconds, estimate_launch
from kernelskill.backends.emulated.places import SourcePlaces
from kernelskill.backends.emulated.trace import LaunchTrace, read_trace
from kernelskill.schema.build import Build, KernelResources
from kernelskill.schema.device import Gpu
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.profile import KernelProfile, LineProfile

_SHORT = {"read": "ld", "write": "st", "atomic": "atom"}
"""How the names of metrics call an access."""


@dataclass(frozen=True, slots=True)
class TracedLaunch:
    """One launch with its estimate."""

    trace: LaunchTrace
    estimate: LaunchEstimate


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """All of a plan's launches and copies."""

    launches: tuple[TracedLaunch, ...]
    seconds: float
    moved_bytes: float

    def shares(self, build: Build) -> dict[str, float]:
        """Return each kernel's share of the time by display name."""
        shares: dict[str, float] = defaultdict(float)
        for launch in self.launches:
            shares[display_name(build, launch.trace.kernel)] += launch.estimate.seconds / self.seconds
        return dict(shares)


def display_name(build: Build, kernel: str) -> str:
    """Return a kernel's name as people read it."""
    resources = build.kernel(kernel)
    return resources.display_name if resources else kernel


def estimate_plan(
    gpu: Gpu, build: Build, plan: LaunchPlan, rows: list[dict[str, Any]], module: dict[str, Any]
) -> PlanEstimate:
    """Return the estimate of a traced plan; operations are taken to run one after another."""
    places = SourcePlaces(module)
    sizes = {allocation.id: allocation.size_bytes for allocation in plan.allocations}
    launches: list[TracedLaunch] = []
    seconds = moved = 0.0
    for row in rows:
        if row["op"] != "launch":
            seconds += copy_seconds(gpu, row["bytes"])
            moved += row["bytes"]
            continue
        trace = read_trace(row, module, places)
        resources = build.kernel(trace.kernel) or KernelResources(
            name=trace.kernel, display_name=trace.kernel, registers=32, static_shared_bytes=0
        )
        estimate = estimate_launch(gpu, trace, resources, sizes)
        launches.append(TracedLaunch(trace, estimate))
        seconds += estimate.seconds
        moved += estimate.moved_bytes
    return PlanEstimate(tuple(launches), seconds, moved)


def kernel_profiles(gpu: Gpu, build: Build, plan: PlanEstimate) -> tuple[KernelProfile, ...]:
    """Return one profile for each kernel, the hottest first; figures are those of its longest launch."""
    by_kernel: dict[str, list[TracedLaunch]] = defaultdict(list)
    for launch in plan.launches:
        by_kernel[launch.trace.kernel].append(launch)
    profiles = []
    for kernel, launches in by_kernel.items():
        longest = max(launches, key=lambda launch: launch.estimate.seconds)
        trace, estimate = longest.trace, longest.estimate
        profiles.append(
            KernelProfile(
                kernel=display_name(build, kernel),
                launches=len(launches),
                time_share=sum(each.estimate.seconds for each in launches) / max(plan.seconds, 1e-12),
                grid=trace.grid,
                block=trace.block,
                metrics=launch_metrics(gpu, trace, estimate),
                lines=line_profiles(trace),
                resources=build.kernel(kernel),
                occupancy=estimate.occupancy.fraction,
                occupancy_limit=estimate.occupancy.limit,
            )
        )
    return tuple(sorted(profiles, key=lambda profile: -profile.time_share))


def launch_metrics(gpu: Gpu, trace: LaunchTrace, estimate: LaunchEstimate) -> dict[str, float]:
    """Return all figures of one launch; what did not occur is absent."""
    figures = _access_figures(trace) | _instruction_figures(trace) | _launch_figures(gpu, trace, estimate)
    figures |= {f"estimate__{name}_pct": 100 * share for name, share in estimate.shares().items()}
    figures["estimate__duration_us"] = estimate.seconds * 1e6
    figures["gpu__time_duration.sum"] = estimate.seconds * 1e9
    return {name: round(value, 4) for name, value in figures.items()}


def _access_figures(trace: LaunchTrace) -> dict[str, float]:
    figures: dict[str, float] = {}
    for access, short in _SHORT.items():
        sectors = trace.total("sectors", space="global", access=access)
        requests = trace.total("requests", space="global", access=access)
        if sectors and short != "atom":
            used = trace.total("bytes", space="global", access=access)
            name = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{short}.ratio"
            figures[name] = min(32.0, used / sectors)
            figures[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{short}.sum"] = sectors
            figures[f"l1tex__t_requests_pipe_lsu_mem_global_op_{short}.sum"] = requests
            figures[f"trace__sectors_per_request_{short}"] = sectors / requests
        shared = trace.total("requests", space="shared", access=access)
        if shared:
            conflicts = trace.total("conflicts", space="shared", access=access)
            figures[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{short}.sum"] = conflicts
            figures[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"] = trace.total(
                "wavefronts", space="shared", access=access
            )
            figures[f"trace__bank_conflicts_per_request_{short}"] = conflicts / shared
    read = trace.total("sectors", space="global", access="read")
    if read:
        hit = 1 - trace.total("missed_sectors", space="global", access="read") / read
        figures["l1tex__t_sector_hit_rate.pct"] = 100 * hit
    atomics = trace.total("requests", access="atomic")
    if atomics:
        figures["trace__atomic_requests"] = atomics
        figures["trace__atomic_operations"] = trace.total("lanes", access="atomic")
        figures["trace__atomic_same_address_per_request"] = (
            trace.total("same_address", access="atomic") / atomics
        )
        figures["trace__atomic_same_address_max"] = max(
            trace.hot_atomics, *(s["same_address_most"] for s in trace.sites if s.access == "atomic")
        )
    local = trace.total("requests", space="local")
    if local:
        figures["trace__local_requests"] = local
    return figures


def _instruction_figures(trace: LaunchTrace) -> dict[str, float]:
    issue = max(trace.mix["issue"], 1e-9)
    figures = {
        "smsp__thread_inst_executed_per_inst_executed.ratio": trace.threads_per_instruction,
        "smsp__inst_executed.sum": trace.mix["issue"],
        "trace__barriers_per_thread": trace.barriers_per_block,
        "trace__slow_loads_in_a_row": trace.waits_per_warp,
    }
    names = {"fp32": "fp32", "fp64": "fp64", "int": "integer", "sfu": "special_function", "lsu": "load_store"}
    names |= {"control": "control", "tensor": "tensor", "division": "integer_division"}
    for pipe, name in names.items():
        share = 100 * trace.mix[pipe] / issue
        figures[
            f"trace__{name}_instructions_pct" if pipe != "division" else "trace__integer_division_pct"
        ] = share
    return figures


def _launch_figures(gpu: Gpu, trace: LaunchTrace, estimate: LaunchEstimate) -> dict[str, float]:
    fits, resources = estimate.occupancy, estimate.resources
    achieved = fits.fraction * min(
        1.0, max(estimate.waves, trace.blocks / max(1, gpu.sm_count) / max(1, fits.blocks_per_sm))
    )
    return {
        "launch__grid_size": trace.blocks,
        "launch__block_size": trace.threads_per_block,
        "launch__thread_count": trace.blocks * trace.threads_per_block,
        "launch__registers_per_thread": resources.registers,
        "launch__shared_mem_per_block_static": resources.static_shared_bytes,
        "launch__shared_mem_per_block_dynamic": trace.dynamic_shared,
        "launch__waves_per_multiprocessor": estimate.waves,
        "trace__idle_at_the_end": 1 - estimate.busy,
        "sm__maximum_warps_per_active_cycle_pct": 100 * fits.fraction,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100 * achieved,
        "trace__moved_bytes": estimate.moved_bytes,
        "trace__unique_bytes": estimate.unique_bytes,
        "trace__l2_bytes": estimate.l2_bytes,
        "trace__reuse_factor": estimate.l2_bytes / max(1.0, estimate.unique_bytes),
        "trace__spill_bytes_per_thread": resources.spill_load_bytes + resources.spill_store_bytes,
        "trace__grid_warps": trace.blocks * trace.warps_per_block,
    }


def line_profiles(trace: LaunchTrace) -> tuple[LineProfile, ...]:
    """Return what every source line asks of memory, the heaviest first."""
    lines: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for site in trace.sites:
        if not site.line:
            continue
        figures = lines[site.file, site.line]
        kind = f"{site.space}_{ {'read': 'ld', 'write': 'st'}.get(site.access, 'atom') }"
        figures[f"{kind}_requests"] += site["requests"]
        figures[f"{kind}_bytes"] += site["bytes"]
        if site.space == "global":
            figures[f"{kind}_sectors"] += site["sectors"]
        if site.space == "shared":
            figures[f"{kind}_conflicts"] += site["conflicts"]
    profiles = [
        LineProfile(file=file, line=line, metrics={name: round(value, 2) for name, value in figures.items()})
        for (file, line), figures in lines.items()
    ]
    return tuple(
        sorted(profiles, key=lambda p: -sum(v for n, v in p.metrics.items() if n.endswith("_requests")))
    )
