"""`kernelskill check`: build and verify, nothing else."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import options
from kernelskill.cli.progress import spinner
from kernelskill.cli.run_command import KernelArgument, TestsOption

if TYPE_CHECKING:
    from kernelskill.session.check import CheckResult

EXIT_WRONG = 1


def check(
    kernel: KernelArgument,
    tests: TestsOption,
    candidate: Annotated[
        Path | None, typer.Option("--candidate", help="Check this rewrite of the kernel instead.")
    ] = None,
    device: options.Device = None,
    cheap: Annotated[bool, typer.Option("--cheap", help="The two smallest cases, one trial.")] = False,
    keep_exact: options.KeepExact = None,
    accept_weak_test: options.AcceptWeak = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the evaluation as JSON.")] = False,
) -> int:
    """Build a kernel and verify it with its test; exits with 1 where it is wrong."""
    from kernelskill.session.check import check_kernel

    config = options.settings(
        {"device": device, "keep_exact": keep_exact, "accept_weak_test": accept_weak_test},
        folder=Path.cwd(),
        budget=None,
        wall=None,
    )
    with (
        spinner("building and checking", shown=not as_json),
        tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch,
    ):
        result = check_kernel(kernel, tests, config, Path(scratch), candidate=candidate, cheap=cheap)
    if as_json:
        typer.echo(result.model_dump_json())
    else:
        _print(result)
    return 0 if result.evaluation.passed else EXIT_WRONG


def _print(result: CheckResult) -> None:
    evaluation = result.evaluation
    for note in result.notes:
        typer.echo(f"note: {note}")
    if evaluation.passed:
        typer.echo(f"passed: {len(evaluation.checks)} comparisons on {evaluation.conditions.device}")
    else:
        typer.echo(f"{evaluation.status.value}: {evaluation.detail}")
        for diagnostic in evaluation.diagnostics[:5]:
            typer.echo(f"  {diagnostic.file}:{diagnostic.line}: {diagnostic.message}")
            if diagnostic.excerpt:
                typer.echo(f"    {diagnostic.excerpt.strip()}")
    for kernel in evaluation.kernels:
        spills = kernel.spill_store_bytes + kernel.spill_load_bytes
        typer.echo(
            f"  {kernel.display_name}: {kernel.registers} registers, "
            f"{kernel.static_shared_bytes} B shared memory, {spills} B spilled"
        )
    for text in evaluation.unverified:
        typer.echo(f"  not verified: {text}")
    for note in evaluation.notes:
        typer.echo(f"  note: {note}")
