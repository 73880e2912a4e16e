"""`kernelskill run`, `resume` and `report`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import model_options, options, pool_report
from kernelskill.cli.dry_run import print_dry_run
from kernelskill.cli.progress import make_progress
from kernelskill.config import RunConfig
from kernelskill.errors import UsageError
from kernelskill.events import read_events
from kernelskill.runs import RunFolder, SystemClock, new_run_name

if TYPE_CHECKING:
    from kernelskill.report.view import RunView

WORTH_SAYING = 3
"""Skills that declined for want of one promise, from which the end of a run says so; the report always does."""

KernelArgument = Annotated[Path, typer.Argument(metavar="KERNEL", help="The .cu file.", show_default=False)]
TestsOption = Annotated[
    Path, typer.Option("--tests", "-t", metavar="FILE", help="Its test.py.", show_default=False)
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="The run folder. Default: a new one under kernelskill-runs/."
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.", show_default=False)]


def run(
    kernel: KernelArgument,
    tests: TestsOption,
    device: options.Device = None,
    rounds: options.Rounds = None,
    patience: options.Patience = None,
    budget: options.Budget = None,
    wall: options.Wall = None,
    out: OutOption = None,
    seed: options.Seed = None,
    only_kernel: options.OnlyKernel = None,
    keep_exact: options.KeepExact = None,
    accept_weak_test: options.AcceptWeak = None,
    no_learn: options.NoLearn = False,
    no_wait: options.NoWait = False,
    model: model_options.Model = None,
    samples: model_options.Samples = None,
    repairs: model_options.Repairs = None,
    plan: model_options.Plan = None,
    max_tokens: model_options.MaxTokens = None,
    max_cost: model_options.MaxCost = None,
    max_requests: model_options.MaxRequests = None,
    dry_run: model_options.DryRun = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Optimise a kernel: measure it, try rewrites, keep what is right and faster, write the result.

    The run folder holds the optimised source under `result/`, a patch for every accepted change, a
    standalone reproducer and `report.md`. It can be killed and continued with `kernelskill resume`.
    """
    config = options.settings(
        {
            "device": device,
            "rounds": rounds,
            "patience": patience,
            "seed": seed,
            "only_kernel": only_kernel,
            "keep_exact": keep_exact,
            "accept_weak_test": accept_weak_test,
            "learn": False if no_learn else None,
            "wait": False if no_wait else None,
            "model": model,
            "samples": samples,
            "repairs": repairs,
            "plan": plan,
            "model_tokens": max_tokens,
            "model_usd": max_cost,
            "model_requests": max_requests,
        },
        folder=Path.cwd(),
        budget=budget,
        wall=wall,
    )
    if dry_run:
        print_dry_run(kernel, tests, config, as_json=as_json)
        return
    folder = out or Path("kernelskill-runs") / new_run_name(kernel.stem, SystemClock().timestamp())
    _start(kernel, tests, config, folder, as_json=as_json, quiet=quiet)


def _start(kernel: Path, tests: Path, config: RunConfig, folder: Path, *, as_json: bool, quiet: bool) -> None:
    from kernelskill.session import Session

    progress = make_progress(as_json=as_json, quiet=quiet)
    with options.stop_on_interrupt() as stop, progress:
        session = Session.start(
            kernel, tests, config, folder, sinks=(progress,), stop=stop, waiting=progress.say
        )
        with session:
            view = session.run()
    _print_result(view, folder, as_json=as_json)


def resume(
    folder: RunArgument,
    device: options.Device = None,
    rounds: Annotated[
        int, typer.Option("--more-rounds", min=0, metavar="N", help="Rounds beyond those asked for before.")
    ] = 0,
    no_wait: options.NoWait = False,
    model: model_options.Model = None,
    max_tokens: model_options.MaxTokens = None,
    max_cost: model_options.MaxCost = None,
    max_requests: model_options.MaxRequests = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Continue a run that was stopped or killed, or that waits for a model's answers.

    Nothing finished is done again. The model and its limits are those of before, unless they are given.
    """
    from kernelskill.llm.models import absolute_spec
    from kernelskill.session import Session

    given = {
        "model": None if model is None else absolute_spec(model, Path.cwd()),
        "model_tokens": max_tokens,
        "model_usd": max_cost,
        "model_requests": max_requests,
    }
    progress = make_progress(as_json=as_json, quiet=quiet)
    with options.stop_on_interrupt() as stop, progress:
        session = Session.resume(
            folder,
            device=device or "",
            sinks=(progress,),
            stop=stop,
            waiting=progress.say,
            more_rounds=rounds,
            wait=not no_wait,
            changes={name: value for name, value in given.items() if value is not None},
        )
        with session:
            view = session.run()
    _print_result(view, folder, as_json=as_json)


def report(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="The run folder.", show_default=False)
    ] = None,
    pool: Annotated[
        bool,
        typer.Option(
            "--pool", help="How often what skills predict of counters held, over all runs that learnt."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    raw: Annotated[bool, typer.Option("--markdown", help="Print Markdown as it is.")] = False,
) -> None:
    """Show the report of a run, finished or not."""
    if pool == (folder is not None):
        raise UsageError("give either a run folder or --pool", remedy="see `kernelskill report --help`")
    if folder is None:
        pool_report.show(as_json=as_json)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    from kernelskill.report.markdown import render
    from kernelskill.report.view import build_view

    run_folder = RunFolder.open(folder)
    events = list(read_events(run_folder.events))
    if not any(event.kind == "baseline_measured" for event in events):
        failures = [event for event in events if event.kind == "failed"]
        reason = f": {failures[-1].error}" if failures else ""
        raise UsageError(
            f"the run in {str(folder)!r} has no baseline yet{reason}",
            remedy=(failures[-1].remedy if failures else "") or f"continue it: kernelskill resume {folder}",
        )
    view = build_view(run_folder, events)
    if as_json:
        typer.echo(json.dumps(_summary(view, folder), indent=1))
        return
    console = Console(highlight=False)
    if raw or not console.is_terminal:
        typer.echo(render(view), nl=False)
    else:
        console.print(Markdown(render(view)))


def _print_result(view: RunView, folder: Path, *, as_json: bool) -> None:
    from kernelskill.report import figures
    from kernelskill.report.markdown import headline
    from kernelskill.report.promises import wanted_promises

    if as_json:
        typer.echo(json.dumps({"kind": "result", **_summary(view, folder)}))
        return
    typer.echo(f"\n{headline(view)}")
    for row in view.cases:
        typer.echo(f"  {row.case.label}: {figures.timing(row.original)} -> {figures.timing(row.best)}")
    for wanted in wanted_promises(view.refusals):
        if len(wanted.skills) >= WORTH_SAYING:
            typer.echo(f"  {wanted}")
    finished = view.state.finished
    if finished is not None:
        typer.echo(f"  source  {folder / finished.files[0]}")
    typer.echo(f"  report  {folder / 'report.md'}")
    typer.echo(f"  run     {folder}")


def _summary(view: RunView, folder: Path) -> dict[str, object]:
    from kernelskill.report.promises import wanted_promises

    finished = view.state.finished
    return {
        "run": str(folder),
        "task": view.task.name,
        "improved": view.improved,
        "speedup": view.headline_speedup if view.improved else 1.0,
        "evidence": view.evidence,
        "reason": finished.reason if finished else None,
        "accepted": [change.label for change in view.changes] if view.improved else [],
        "cases": [
            {
                "case": row.case.label,
                "original_ms": row.original.median_ms,
                "result_ms": row.best.median_ms,
                "roof_fraction": row.roof_best.fraction if row.roof_best else None,
                "library": row.library.call if row.library else None,
                "library_ms": row.library.median_ms if row.library else None,
            }
            for row in view.cases
        ],
        "assumptions": list(view.best.assumptions),
        "unverified": list(view.unverified),
        "wanted_promises": {each.promise.value: list(each.skills) for each in wanted_promises(view.refusals)},
        "files": list(finished.files) if finished else [],
        "conditions": view.conditions.model_dump(mode="json"),
        "spend": view.state.spend.model_dump(mode="json"),
        "model": [asdict(row) for row in view.usage],
        "predictions": [asdict(row) for row in view.predictions],
    }
