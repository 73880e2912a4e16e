"""`kernelskill evaluator report`: the protocol, this machine, and how often the evaluator was found wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.errors import UsageError

if TYPE_CHECKING:
    from kernelskill.sweep.evaluator_sheet import EvaluatorSheet
    from kernelskill.sweep.rates import Rate
    from kernelskill.sweep.zoo_run import ZooRecord

app = typer.Typer(help="Say how candidates are judged, and how well.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Say how candidates are judged, and how well."""


@app.command("report")
def report(
    results: Annotated[
        Path | None,
        typer.Option("--results", help="Folder of recorded visits to the zoo; the shipped ones by default."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the protocol, the versions of this machine, the zoo's outcome and the noise figures.

    Nothing is measured: `benchmarks/evaluator/zoo.py` records the zoo.
    """
    from kernelskill.sweep.evaluator_sheet import evaluator_sheet, recorded_results

    if results is not None and not results.is_dir():
        raise UsageError(
            f"there is no folder {str(results)!r}", remedy="give the folder that holds the records"
        )
    sheet = evaluator_sheet(results or recorded_results())
    if as_json:
        typer.echo(sheet.model_dump_json(indent=1))
        return
    _print_protocol(sheet)
    _print_zoo(sheet)
    _print_noise(sheet)


def _print_protocol(sheet: EvaluatorSheet) -> None:
    typer.echo("This machine")
    for name, value in sheet.versions.items():
        typer.echo(f"  {name:<20} {value}")
    for part in sheet.protocol:
        typer.echo(f"\n{part.title.capitalize()}")
        for setting in part.settings:
            typer.echo(f"  {setting.name:<20} {setting.value:<12} {setting.meaning}".rstrip())


def _print_zoo(sheet: EvaluatorSheet) -> None:
    typer.echo("\nZoo of bad and honest kernels")
    if not sheet.zoo:
        typer.echo(f"  not measured: no record in {sheet.results}")
    for record in sheet.zoo:
        _print_visit(record)


def _print_visit(record: ZooRecord) -> None:
    where = record.conditions
    figures = "times estimated, check only" if where.evidence == "estimated" else "measured"
    typer.echo(
        f"  {where.device} ({where.gpu}; {figures}; nvcc {where.cuda or '-'}, driver {where.driver or '-'}, "
        f"kernelskill {where.kernelskill}, {record.trials} seeds)"
    )
    typer.echo(f"    falsely accepted   {_rate(record.false_accept)} of the bad ones")
    typer.echo(f"    falsely rejected   {_rate(record.false_reject)} of the honest ones")
    for outcome in record.outcomes:
        if not outcome.as_it_must:
            why = f"; known: {outcome.kernel.hole}" if outcome.kernel.hole else ""
            typer.echo(
                f"    {outcome.kernel.name}: {outcome.status}, must be {' or '.join(outcome.expected)}{why}"
            )
    if record.left_out:
        typer.echo(f"    left out there: {', '.join(record.left_out)}")


def _print_noise(sheet: EvaluatorSheet) -> None:
    typer.echo("\nNoise of the decision")
    if not sheet.noise:
        typer.echo(f"  not measured: no record in {sheet.results}")
    for record in sheet.noise:
        typer.echo(f"  {record.conditions.device} ({record.conditions.gpu})")
        typer.echo(f"    a kernel against itself accepted   {_rate(record.same_accepted)}")
        typer.echo(f"    a true gain of {record.gain:.1%} accepted      {_rate(record.gain_accepted)}")


def _rate(found: Rate) -> str:
    share = "-" if found.share is None else f"{found.share:.1%}"
    interval = f"exact {found.confidence:.0%} interval {found.low:.1%} to {found.high:.1%}"
    return f"{found.count} of {found.of} = {share} ({interval})"
