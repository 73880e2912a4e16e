"""Show what a run would ask a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kernelskill.cli import options
from kernelskill.cli.progress import make_progress
from kernelskill.config import RunConfig

if TYPE_CHECKING:
    from kernelskill.llm.base import Usage


def print_dry_run(kernel: Path, tests: Path, config: RunConfig, *, as_json: bool) -> None:
    """Print an estimate and the first prompt; leaves no run behind."""
    from kernelskill.session.dry_run import dry_run

    progress = make_progress(as_json=False, quiet=as_json)
    with options.stop_on_interrupt() as stop, progress:
        found = dry_run(kernel, tests, config, sinks=(progress,), stop=stop)
    if as_json:
        typer.echo(json.dumps({"kind": "dry_run", **found.model_dump(mode="json")}))
        return
    typer.echo(f"\n{found.model} would be asked; nothing was.")
    typer.echo(f"  first round         {most(found.first_round)}")
    typer.echo(f"  whole run, at most  {most(found.whole_run)}")
    limits = found.limits.model_dump(exclude_none=True)
    stops = ", ".join(f"{value:g} {name}" for name, value in limits.items()) or "no limit is set"
    typer.echo(f"  limits              {stops}")
    if not found.requests:
        typer.echo("\nNothing would be asked in the first round; the run's notes say why.")
    else:
        typer.echo(f"\nThe first prompt, for role {found.requests[0].role!r}:\n")
        for message in found.requests[0].messages:
            typer.echo(f"[{message.role}]\n{message.text}")


def most(usage: Usage) -> str:
    """Return an upper estimate of what is spent in words."""
    cost = "price unknown" if usage.cost_usd is None else f"up to {usage.cost_usd:.2f} USD"
    return (
        f"{usage.requests} requests, up to {usage.input_tokens:,} tokens in"
        f" and {usage.output_tokens:,} out, {cost}"
    )
