"""Read a user's own Nsight Compute output into a Profile; no GPU needed."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from kernelskill.backends.cuda.ncu import kernel_profiles, metric_names, total_ns
from kernelskill.backends.cuda.ncu_report import LaunchRow, parse_report
from kernelskill.errors import ArtifactCorrupt, TaskError
from kernelskill.isolation.child import Limits, private_folder, run_child
from kernelskill.isolation.environment import clean_environment
from kernelskill.profiling.imported_child import NO_PACKAGE
from kernelskill.schema.base import Record
from kernelskill.schema.device import Conditions
from kernelskill.schema.profile import Profile

BINARY_SUFFIX = ".ncu-rep"
_CHILD = "kernelskill.profiling.imported_child"
_LIMIT_S = 300.0
_OUTPUT_BYTES = 256 << 20
_REMEDY = (
    "give the output of `ncu --csv --page raw ...`, or of `ncu --import REPORT.ncu-rep --csv --page raw`"
)


def import_profile(path: Path, *, gpu: str = "") -> Profile:
    """Return what ncu's output says about each kernel, the hottest first.

    Args:
        path: Text that `ncu --csv` printed (raw or details page, or a summary a kernel), or a `.ncu-rep`.
        gpu: Name of the GPU it was captured on; empty: as the report says, which only binary ones do.

    Raises:
        TaskError: The file cannot be read, or holds no profiled kernel.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot read {str(path)!r}: {error.strerror}", remedy=_REMEDY) from None
    try:
        if path.suffix == BINARY_SUFFIX or data.startswith(b"NVR\0"):
            found = _binary_report(path)
            rows, gpu = found.launches, gpu or found.gpu
        else:
            rows = parse_report(data.decode("utf-8", errors="replace"))
    except ArtifactCorrupt as error:
        raise TaskError(f"{str(path)!r}: {error.message}", remedy=_REMEDY) from None
    if not any(row.metrics for row in rows):
        raise TaskError(f"{str(path)!r} holds no profiled kernel", remedy=_REMEDY)
    profile = Profile(
        candidate=sha256(data).hexdigest(),
        case=0,
        source="ncu",
        kernels=kernel_profiles(rows, [_without_parameters(row.kernel) for row in rows]),
        duration_ms=total_ns(rows) / 1e6 or None,
        conditions=Conditions(device="imported", gpu=gpu or "a GPU not named"),
    )
    return profile.model_copy(update={"unavailable": _lacking(profile)})


def _lacking(profile: Profile) -> str:
    """Say how many of the figures that a diagnosis reads first the report lacks."""
    wanted = metric_names("quick")
    hottest = profile.kernels[0].metrics
    missing = [name for name in wanted if name not in hottest]
    if not missing:
        return ""
    return (
        f"the report lacks {len(missing)} of the {len(wanted)} metrics that a diagnosis reads first, "
        f"{missing[0]} among them; `ncu --set full` collects them"
    )


def _without_parameters(name: str) -> str:
    """Return `ns::f<(int)3>` for `void ns::f<(int)3>(const float *)`; the name itself where it is odd."""
    depth = 0
    for place, letter in enumerate(name):
        if letter == "(" and depth == 0 and place:
            name = name[:place]
            break
        depth += (letter in "<") - (letter in ">")
    return name.removeprefix("void ").strip() or name


class _BinaryReport(Record):
    """What a binary report holds."""

    gpu: str
    launches: tuple[LaunchRow, ...]


def _binary_report(path: Path) -> _BinaryReport:
    """Read a binary report in a process of its own: its reader is native code."""
    with private_folder("kernelskill-report-") as folder:
        done = run_child(
            [sys.executable, "-m", _CHILD, str(path.resolve())],
            limits=Limits(wall_s=_LIMIT_S, output_bytes=_OUTPUT_BYTES),
            cwd=folder,
            env=clean_environment(folder),
        )
    if done.returncode == NO_PACKAGE:
        raise TaskError(
            "reading a binary report needs the package ncu-report",
            remedy="pip install 'kernelskill[ncu]', or give the output of"
            f" `ncu --import {path.name} --csv --page raw`",
        )
    try:
        return _BinaryReport.model_validate_json(done.stdout)
    except ValidationError as error:
        raise ArtifactCorrupt("this is no report that the package ncu-report can read") from error
