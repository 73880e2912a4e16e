"""`kernelskill profile`: what limits a kernel and how that is known; of a kernel, or of a report."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import options
from kernelskill.cli.comparison import print_comparison
from kernelskill.cli.progress import spinner
from kernelskill.errors import UsageError

if TYPE_CHECKING:
    from kernelskill.agents.profiler import Diagnosis
    from kernelskill.schema.profile import ProfileDepth
    from kernelskill.session.profiling import Profiled

_DEPTHS = ("quick", "full")
_SOURCES = (".cu", ".cuh")


def profile(
    kernel: Annotated[
        Path | None, typer.Argument(metavar="KERNEL", help="The .cu file.", show_default=False)
    ] = None,
    tests: Annotated[
        Path | None, typer.Option("--tests", "-t", metavar="FILE", help="Its test.py.", show_default=False)
    ] = None,
    candidate: Annotated[
        Path | None, typer.Option("--candidate", help="Profile this rewrite of the kernel instead.")
    ] = None,
    device: options.Device = None,
    depth: Annotated[
        str, typer.Option("--depth", metavar="DEPTH", help="quick or full, where there are counters.")
    ] = "quick",
    report: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Diagnose a report instead: what `ncu --csv` printed, or a .ncu-rep. Needs no GPU.",
        ),
    ] = None,
    gpu: Annotated[str, typer.Option("--gpu", help="With --import: the GPU it was captured on.")] = "",
    sides: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            help="Put two side by side, each a .cu file (with --tests), a report, or JSON of `profile --json`.",
        ),
    ] = None,
    sass: Annotated[
        bool, typer.Option("--sass", help="With --compare of two .cu files: how the machine code differs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say what limits a kernel and how that is known, without changing anything.

    Give a kernel with its test, or `--import FILE`, or `--compare A B`.
    """
    from kernelskill.session.profiling import import_diagnosis

    chosen = _depth(depth)
    _require_one(kernel, report, sides)
    if sass:
        _require_sources(sides)
    if sides is not None:
        before, after = (_side(side, tests, device, chosen, shown=not as_json, gpu=gpu) for side in sides)
        print_comparison(before, after, sass=sass, as_json=as_json)
        return 0
    if report is not None:
        diagnosis = import_diagnosis(report, gpu=gpu)
    else:
        assert kernel is not None
        diagnosis = _profiled(kernel, tests, candidate, device, chosen, shown=not as_json).diagnosis
    _print(diagnosis, as_json=as_json)
    return 0


def _depth(text: str) -> ProfileDepth:
    if text not in _DEPTHS:
        raise UsageError(f"--depth is {text!r}", remedy="give quick or full")
    return "full" if text == "full" else "quick"


def _require_one(*given: object) -> None:
    if sum(each is not None for each in given) != 1:
        raise UsageError(
            "give one of KERNEL, --import FILE and --compare A B",
            remedy="kernelskill profile kernel.cu --tests test.py",
        )


def _require_sources(sides: tuple[Path, Path] | None) -> None:
    if sides is None or any(side.suffix not in _SOURCES for side in sides):
        raise UsageError(
            "--sass needs the machine code of two kernels", remedy="give --compare A.cu B.cu --tests test.py"
        )


def _side(
    side: Path, tests: Path | None, device: str | None, depth: ProfileDepth, *, shown: bool, gpu: str
) -> Profiled:
    from kernelskill.session.profiling import Profiled, import_diagnosis

    if side.suffix in _SOURCES:
        return _profiled(side, tests, None, device, depth, shown=shown)
    return Profiled(diagnosis=import_diagnosis(side, gpu=gpu), code={})


def _profiled(
    kernel: Path,
    tests: Path | None,
    candidate: Path | None,
    device: str | None,
    depth: ProfileDepth,
    *,
    shown: bool,
) -> Profiled:
    from kernelskill.session.profiling import profile_with_code

    if tests is None:
        raise UsageError(
            "a kernel needs its test to be run",
            remedy=f"add --tests test.py; `kernelskill init {kernel}` drafts one",
        )
    config = options.settings({"device": device}, folder=Path.cwd(), budget=None, wall=None)
    with (
        spinner(f"building, checking and profiling {kernel.name}", shown=shown),
        tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch,
    ):
        return profile_with_code(kernel, tests, config, Path(scratch), candidate=candidate, depth=depth)


def _print(diagnosis: Diagnosis, *, as_json: bool) -> None:
    from kernelskill.report.diagnosis import diagnosis_lines

    if as_json:
        typer.echo(diagnosis.model_dump_json())
        return
    for line in diagnosis_lines(diagnosis):
        typer.echo(line)
