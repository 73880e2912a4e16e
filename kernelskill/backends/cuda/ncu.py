"""Collect Nsight Compute metrics of one plan, through a one-shot replay."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from kernelskill.backends.base import ProfileRun
from kernelskill.backends.cuda.job import write_job
from kernelskill.backends.cuda.ncu_report import LaunchRow, bare_name, parse_report
from kernelskill.backends.cuda.prepared import worker_environment
from kernelskill.errors import ArtifactCorrupt, HarnessError
from kernelskill.isolation.child import ChildResult, Limits, private_folder, run_child
from kernelskill.schema.build import Build
from kernelskill.schema.launch_plan import LaunchPlan
from kernelskill.schema.profile import KernelProfile

_METRICS = Path(__file__).with_name("ncu_metrics.toml")
_LIMIT_S = 300.0
_OUTPUT_BYTES = 16 << 20
_MOST_LAUNCHES = 40
"""Each launch is replayed once a pass; more would take minutes and say nothing new."""
_UNKNOWN = re.compile(r"Failed to find metric (?:regex:\^)?([A-Za-z_][\w]*)")
_DURATION = "gpu__time_duration.sum"
Depth = Literal["quick", "full"]
_KNOWN_PROBLEMS = (
    (
        ("ERR_NVGPUCTRPERM",),
        "this user may not read the GPU's counters (ERR_NVGPUCTRPERM); "
        "run as root, or load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        (
            "driver is not compatible",
            "driver version is insufficient",
            "not supported by this version of Nsight",
        ),
        "this Nsight Compute does not fit the driver or the GPU; install the one of the driver's CUDA version, "
        "which `nvidia-smi` names",
    ),
    (
        ("driver resource was unavailable", "ERR_NVGPUCTRINUSE"),
        "another program holds the GPU's counters; end it (DCGM: `dcgmi profile --pause`) and try again",
    ),
)
"""Signs of a known problem in the tool's output, and what to tell."""


@lru_cache(maxsize=2)
def metric_names(depth: Depth) -> tuple[str, ...]:
    """Return the metrics that are asked for.

    Raises:
        HarnessError: The shipped list is damaged.
    """
    try:
        lists = tomllib.loads(_METRICS.read_text(encoding="utf-8"))
        return tuple(lists["quick"] + (lists["full"] if depth == "full" else []))
    except (OSError, ValueError, KeyError) as error:
        raise HarnessError(
            f"{_METRICS.name} cannot be read: {error}", remedy="reinstall kernelskill"
        ) from error


def find_ncu() -> str | None:
    """Return the profiler's path: from PATH, else beside the usual toolkits."""
    found = shutil.which("ncu")
    if found:
        return found
    places = sorted(Path("/usr/local").glob("cuda*/bin/ncu")) + sorted(
        Path("/opt/nvidia").glob("nsight-compute/*/ncu")
    )
    return str(places[-1]) if places else None


def profile_with_ncu(
    build: Build,
    plan: LaunchPlan,
    contents: Mapping[str, Path],
    *,
    device: int,
    core: Path,
    depth: Depth,
    limit_s: float = _LIMIT_S,
) -> ProfileRun:
    """Return counters of every kernel of the plan, or static facts alone with the reason why."""
    program = find_ncu()
    if program is None:
        return _unavailable("ncu was not found; install Nsight Compute and put it on the PATH")
    if not plan.launches():
        return _unavailable("the plan launches no kernel")
    with private_folder("kernelskill-ncu-") as folder:
        job = write_job(folder, build, plan, contents, device=device, core=core, guard_bytes=0)
        options = ("--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none")
        begin = [program, *options, "--launch-count", str(_MOST_LAUNCHES), "--metrics"]
        shown = (" ".join(begin) + " ...",)
        try:
            done = _collect(begin, metric_names(depth), job, folder, limit_s)
        except HarnessError as error:
            return _unavailable(
                f"{program} cannot be started ({error.message}); reinstall Nsight Compute", shown
            )
    return read_collection(done, build, plan, commands=shown)


def _collect(
    begin: list[str], names: tuple[str, ...], job: list[str], folder: Path, limit_s: float
) -> ChildResult:
    """Run the profiler; names that this version does not know are left out and the rest asked for again."""
    wanted = list(names)
    while True:
        done = run_child(
            [*begin, ",".join(wanted), *job],
            limits=Limits(wall_s=limit_s, output_bytes=_OUTPUT_BYTES),
            cwd=folder,
            env=worker_environment(folder),
        )
        unknown = unknown_metrics(done.stdout + "\n" + done.stderr)
        left = [name for name in wanted if name.partition(".")[0] not in unknown]
        if not left or len(left) == len(wanted):
            return done
        wanted = left


def unknown_metrics(text: str) -> frozenset[str]:
    """Return the metrics that the profiler says it does not know."""
    return frozenset(_UNKNOWN.findall(text))


def read_collection(
    done: ChildResult, build: Build, plan: LaunchPlan, *, commands: tuple[str, ...] = ()
) -> ProfileRun:
    """Turn what a collection printed into a profile run."""
    if done.timed_out:
        return _unavailable(
            f"ncu did not finish within {done.seconds:.0f} s; profile a smaller case", commands
        )
    problem = _problem(done.stdout + "\n" + done.stderr)
    try:
        rows = parse_report(done.stdout)
    except ArtifactCorrupt as error:
        return _unavailable(error.message, commands)
    if not rows:
        return _unavailable(problem or f"ncu profiled no kernel (exit status {done.returncode})", commands)
    if not any(row.metrics for row in rows):
        return _unavailable(problem or "ncu collected no metric", commands)
    known = {kernel.display_name: kernel for kernel in build.kernels}
    kernels = tuple(
        profile.model_copy(update={"resources": known.get(profile.kernel)})
        for profile in kernel_profiles(rows, _names(rows, build, plan))
    )
    return ProfileRun(
        source="ncu", kernels=kernels, duration_ms=total_ns(rows) / 1e6 or None, commands=commands
    )


def _problem(text: str) -> str:
    """Return in one line what went wrong and what to change; empty where the tool names no error."""
    for signs, told in _KNOWN_PROBLEMS:
        if any(sign in text for sign in signs):
            return told
    for line in text.splitlines():
        if line.startswith("==ERROR=="):
            return f"ncu: {line.removeprefix('==ERROR==').strip()}"
    return ""


def _unavailable(reason: str, commands: tuple[str, ...] = ()) -> ProfileRun:
    return ProfileRun(source="static", kernels=(), unavailable=reason, commands=commands)


def kernel_profiles(rows: Sequence[LaunchRow], names: Sequence[str]) -> tuple[KernelProfile, ...]:
    """Join the rows of one kernel, the hottest first; its figures are those of its longest launch.

    Args:
        rows: At least one.
        names: The kernel's name for each row.
    """
    total = total_ns(rows)
    launches = sum(row.launches for row in rows)
    profiles = []
    for name in dict.fromkeys(names):
        own = [row for row, named in zip(rows, names, strict=True) if named == name]
        longest = max(own, key=lambda row: row.metrics.get(_DURATION, 0.0))
        count = sum(row.launches for row in own)
        profiles.append(
            KernelProfile(
                kernel=name,
                launches=count,
                time_share=total_ns(own) / total if total else count / launches,
                grid=longest.grid,
                block=longest.block,
                metrics=longest.metrics,
            )
        )
    return tuple(sorted(profiles, key=lambda profile: (-profile.time_share, profile.kernel)))


def total_ns(rows: Sequence[LaunchRow]) -> float:
    """Return the device time of all launches in nanoseconds; 0 where none was collected."""
    return sum(row.metrics.get(_DURATION, 0.0) * row.launches for row in rows)


def _names(rows: tuple[LaunchRow, ...], build: Build, plan: LaunchPlan) -> list[str]:
    """Return a display name for each row: by launch order where that fits, else by the bare name."""
    launches = plan.launches()
    in_order = [build.kernel(launch.kernel) for launch in launches[: len(rows)]]
    fits = len(in_order) == len(rows) and all(
        known is not None and bare_name(known.display_name) == row.bare_name
        for known, row in zip(in_order, rows, strict=True)
    )
    if fits:
        return [known.display_name for known in in_order if known is not None]
    by_bare = {bare_name(kernel.display_name): kernel.display_name for kernel in build.kernels}
    return [by_bare.get(row.bare_name, row.bare_name) for row in rows]
