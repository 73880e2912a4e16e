"""Two profiles side by side on the terminal, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from kernelskill.report.comparison import ComparedFigure, ComparedKernel
    from kernelskill.session.profiling import Profiled


def print_comparison(before: Profiled, after: Profiled, *, sass: bool, as_json: bool) -> None:
    """Print the kernels of two profiles side by side.

    Args:
        before: One side.
        after: The other.
        sass: Whether to add how the machine code differs.
        as_json: Print JSON.
    """
    from kernelskill.report.comparison import compare, sass_diff

    compared = compare(before.diagnosis, after.diagnosis)
    diffs = [sass_diff(each, before.code, after.code) if sass else None for each in compared]
    if as_json:
        rows = [_as_json(each, diff) for each, diff in zip(compared, diffs, strict=True)]
        typer.echo(json.dumps(rows, indent=1))
        return
    for each, diff in zip(compared, diffs, strict=True):
        _print_kernel(each)
        if sass and diff is None:
            typer.echo("one side has no machine code to compare")
        elif sass:
            typer.echo("\n".join(diff or ["the machine code is equal"]))


def _as_json(compared: ComparedKernel, diff: list[str] | None) -> dict[str, object]:
    found: dict[str, object] = {
        "before": compared.before.kernel if compared.before else None,
        "after": compared.after.kernel if compared.after else None,
        "figures": [_figure(figure) for figure in compared.figures],
        "instructions": [_figure(figure) for figure in compared.instructions],
    }
    return found if diff is None else found | {"sass_diff": diff}


def _figure(figure: ComparedFigure) -> dict[str, object]:
    return {
        "name": figure.name,
        "metric": figure.metric,
        "unit": figure.unit,
        "before": figure.before,
        "after": figure.after,
        "ratio": figure.ratio,
    }


def _print_kernel(compared: ComparedKernel) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(_table("figure", compared, compared.figures))
    if compared.instructions:
        console.print(_table("instructions in the code", compared, compared.instructions))


def _table(title: str, compared: ComparedKernel, rows: Sequence[ComparedFigure]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column(title, overflow="fold")
    for side in (compared.before, compared.after):
        table.add_column(side.kernel if side else "-", justify="right", overflow="fold")
    table.add_column("ratio", justify="right")
    for row in rows:
        label = f"{row.name} [{row.unit}]" if row.unit not in ("", "inst") else row.name
        cells = ("-" if value is None else f"{value:.4g}" for value in (row.before, row.after))
        table.add_row(label.replace("[", r"\["), *cells, "-" if row.ratio is None else f"{row.ratio:.3g}")
    return table
