"""`kernelskill bench`: run every task of a suite in turn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import model_options, options
from kernelskill.cli.progress import make_progress
from kernelskill.config import RunConfig
from kernelskill.report import figures
from kernelskill.runs import SystemClock, new_run_name

if TYPE_CHECKING:
    from kernelskill.sweep.bench import BenchResults, BenchRow
    from kernelskill.tasks.suite import Suite

EXIT_FAILED = 1

OutOption = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder of the runs; give it again to go on.")
]
OnlyOption = Annotated[list[str] | None, typer.Option("--only", help="Name of a task; may be given again.")]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="As for run; may be given again, for a table each.",
        show_default=False,
    ),
]


def bench(
    suite: Annotated[str, typer.Argument(help="A folder of task folders, or a packaged suite such as core.")],
    device: options.Device = None,
    rounds: options.Rounds = None,
    patience: options.Patience = None,
    budget: options.Budget = None,
    wall: options.Wall = None,
    out: OutOption = None,
    seed: options.Seed = None,
    only: OnlyOption = None,
    keep_exact: options.KeepExact = None,
    no_learn: options.NoLearn = False,
    model: ModelsOption = None,
    samples: model_options.Samples = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the progress of every run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON at the end.")] = False,
) -> int:
    """Optimise every task of a suite and print a table; exits with 1 where a task failed.

    Results with their conditions stand in OUT/results.json. A bench that was stopped goes on with
    the same --out: finished tasks are kept, the one under way is resumed. With several models each has
    a folder of its own there.
    """
    from kernelskill.tasks.suite import load_suite

    tasks = load_suite(suite)
    config = options.settings(
        {
            "device": device,
            "rounds": rounds,
            "patience": patience,
            "seed": seed,
            "keep_exact": keep_exact,
            "learn": False if no_learn else None,
            "samples": samples,
        },
        folder=Path.cwd(),
        budget=budget,
        wall=wall,
    )
    folder = out or Path("kernelskill-runs") / new_run_name(f"bench-{tasks.name}", SystemClock().timestamp())
    every = _run_all(
        tasks, _configs(config, model or ()), tuple(only or ()), folder, verbose=verbose, as_json=as_json
    )
    if as_json:
        shown = [results.model_dump(mode="json") for results, _ in every]
        typer.echo(json.dumps(shown[0] if len(shown) == 1 else shown, indent=1))
    else:
        for results, file in every:
            _print_table(results, file)
    return EXIT_FAILED if any(row.outcome == "failed" for results, _ in every for row in results.rows) else 0


def _run_all(
    tasks: Suite,
    configs: Sequence[tuple[str, RunConfig]],
    only: tuple[str, ...],
    folder: Path,
    *,
    verbose: bool,
    as_json: bool,
) -> list[tuple[BenchResults, Path]]:
    """Run the suite once for each model; returns the results with their files."""
    from kernelskill.sweep.bench import RESULTS_FILE, BenchOptions, run_bench

    progress = make_progress(as_json=False, quiet=not verbose or as_json)
    every = []
    with options.stop_on_interrupt() as stop, progress:
        for name, own in configs:
            if name and not as_json:
                typer.echo(f"\n{own.model}")
            results = run_bench(
                tasks,
                BenchOptions(config=own, only=only),
                folder / name,
                row_done=(lambda _row: None) if as_json else _print_row,
                sinks=lambda _task: (progress,),
                stop=stop,
            )
            every.append((results, folder / name / RESULTS_FILE))
    return every


def _configs(config: RunConfig, models: Sequence[str]) -> list[tuple[str, RunConfig]]:
    """Return the settings for each model with a folder name; one model needs no folder of its own."""
    unique = list(dict.fromkeys(models)) or [config.model]
    own = [config.model_copy(update={"model": spec}) for spec in unique]
    if len(own) == 1:
        return [("", own[0])]
    names = [re.sub(r"[^A-Za-z0-9.-]+", "-", spec).strip("-.") or "model" for spec in unique]
    # Two spellings may differ in what a folder's name cannot hold.
    return [
        (f"{position}-{name}", each) for position, (name, each) in enumerate(zip(names, own, strict=True), 1)
    ]


def _print_row(row: BenchRow) -> None:
    gain = figures.speedup(row.speedup, row.evidence) if row.outcome == "improved" else row.outcome
    typer.echo(f"{row.task:<24} {gain:<18} {' + '.join(row.accepted) or row.best_try or row.reason}")


def _print_table(results: BenchResults, file: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    asked = any(row.tokens for row in results.rows)
    table = Table(
        "task",
        "outcome",
        "speedup",
        "of the library",
        "of the roof",
        "tried",
        *(("tokens", "cost") if asked else ()),
        "changes",
        box=None,
        pad_edge=False,
        title=f"model {results.config.model}" if results.config.model != "none" else None,
    )
    for row in results.rows:
        fractions = [case.roof_fraction for case in row.cases if case.roof_fraction is not None]
        table.add_row(
            row.task,
            row.outcome,
            "-" if row.outcome == "failed" else figures.speedup(row.speedup, row.evidence),
            f"{row.quotient:.2f}x" if row.quotient and any(case.library for case in row.cases) else "-",
            figures.percent(min(fractions) if fractions else None),
            str(row.tried),
            *((f"{row.tokens:,}", _cost(row.cost_usd)) if asked else ()),
            " + ".join(row.accepted) or figures.stop_reason(row.reason),
        )
    Console(highlight=False).print(table)
    improved = sum(row.outcome == "improved" for row in results.rows)
    evidence = results.conditions.evidence if results.conditions else "none"
    mean = figures.speedup(results.geometric_mean, evidence)
    typer.echo(
        f"{improved} of {len(results.rows)} improved; geometric mean over all: {mean} "
        f"(a task without gain counts as 1); {file}"
    )
    if asked:
        costs = [row.cost_usd for row in results.rows]
        known = [cost for cost in costs if cost is not None]
        total = sum(known) if len(known) == len(costs) else None
        typer.echo(f"{sum(row.tokens for row in results.rows):,} tokens, {_cost(total)}")


def _cost(usd: float | None) -> str:
    return "price unknown" if usd is None else f"{usd:.2f} USD"
