"""`kernelskill profile`: what limits a kernel and how that is known; of a kernel, or of a report."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import options
from kernelskill.cli.progress import spinner
from kernelskill.errors import UsageError

if TYPE_CHECKING:
    from kernelskill.agents.profiler import Diagnosis
    from kernelskill.report.diagnosis import ComparedKernel
    from kernelskill.schema.profile import ProfileDepth

_DEPTHS = ("quick", "full")


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say what limits a kernel and how that is known, without changing anything.

    Give a kernel with its test, or `--import FILE`, or `--compare A B`.
    """
    from kernelskill.session.profiling import import_diagnosis

    if depth not in _DEPTHS:
        raise UsageError(f"--depth is {depth!r}", remedy="give quick or full")
    if sum(given is not None for given in (kernel, report, sides)) != 1:
        raise UsageError(
            "give one of KERNEL, --import FILE and --compare A B",
            remedy="kernelskill profile kernel.cu --tests test.py",
        )
    chosen: ProfileDepth = "full" if depth == "full" else "quick"
    if sides is not None:
        both = [_side(side, tests, device, chosen, shown=not as_json, gpu=gpu) for side in sides]
        _print_comparison(both[0], both[1], as_json=as_json)
        return 0
    if report is not None:
        diagnosis = import_diagnosis(report, gpu=gpu)
    else:
        assert kernel is not None
        diagnosis = _profiled(kernel, tests, candidate, device, chosen, shown=not as_json)
    _print(diagnosis, as_json=as_json)
    return 0


def _side(
    side: Path, tests: Path | None, device: str | None, depth: ProfileDepth, *, shown: bool, gpu: str
) -> Diagnosis:
    from kernelskill.session.profiling import import_diagnosis

    if side.suffix in (".cu", ".cuh"):
        return _profiled(side, tests, None, device, depth, shown=shown)
    return import_diagnosis(side, gpu=gpu)


def _profiled(
    kernel: Path,
    tests: Path | None,
    candidate: Path | None,
    device: str | None,
    depth: ProfileDepth,
    *,
    shown: bool,
) -> Diagnosis:
    from kernelskill.session.profiling import profile_kernel

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
        return profile_kernel(kernel, tests, config, Path(scratch), candidate=candidate, depth=depth)


def _print(diagnosis: Diagnosis, *, as_json: bool) -> None:
    from kernelskill.report.diagnosis import diagnosis_lines

    if as_json:
        typer.echo(diagnosis.model_dump_json())
        return
    for line in diagnosis_lines(diagnosis):
        typer.echo(line)


def _print_comparison(before: Diagnosis, after: Diagnosis, *, as_json: bool) -> None:
    from kernelskill.report.diagnosis import compare

    compared = compare(before, after)
    if as_json:
        typer.echo(json.dumps([_as_json(each) for each in compared], indent=1))
        return
    for each in compared:
        _print_table(each)


def _as_json(compared: ComparedKernel) -> dict[str, object]:
    return {
        "before": compared.before.kernel if compared.before else None,
        "after": compared.after.kernel if compared.after else None,
        "figures": [
            {
                "name": f.name,
                "metric": f.metric,
                "unit": f.unit,
                "before": f.before,
                "after": f.after,
                "ratio": f.ratio,
            }
            for f in compared.figures
        ],
    }


def _print_table(compared: ComparedKernel) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("figure", overflow="fold")
    for name in (compared.before, compared.after):
        table.add_column(name.kernel if name else "-", justify="right", overflow="fold")
    table.add_column("ratio", justify="right")
    for figure in compared.figures:
        label = f"{figure.name} [{figure.unit}]" if figure.unit else figure.name
        cells = ("-" if value is None else f"{value:.4g}" for value in (figure.before, figure.after))
        table.add_row(
            label.replace("[", r"\["), *cells, "-" if figure.ratio is None else f"{figure.ratio:.3g}"
        )
    Console(highlight=False).print(table)
