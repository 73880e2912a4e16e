"""`kernelskill import`: make tasks of what other projects define."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli import model_options, options
from kernelskill.cli.progress import spinner

if TYPE_CHECKING:
    from kernelskill.config import RunConfig
    from kernelskill.llm.base import Model
    from kernelskill.session.seeding import SeedResult
    from kernelskill.tasks.torch_task import ImportedTask

app = typer.Typer(
    help="Make a task of what another project defines.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXIT_WRONG = 1


@app.callback()
def _root() -> None:
    """Make a task of what another project defines."""


@app.command("kernelbench")
def kernelbench(
    problem: Annotated[
        Path,
        typer.Argument(
            help="Defines Model, get_inputs and get_init_inputs, as in KernelBench.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write; default beside it, by its name.")
    ] = None,
    model: model_options.Model = None,
    device: options.Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> int:
    """Make a task of a PyTorch module: test.py with the module as reference, and the launcher's signature.

    With `--model` the seeding role writes kernel.cu, which is kept if it passes the test. Needs the `torch` extra.
    """
    from kernelskill.llm.models import open_model
    from kernelskill.tasks.c_names import function_name
    from kernelskill.tasks.torch_problem import read_problem
    from kernelskill.tasks.torch_task import write_task

    folder = out or problem.with_suffix("")
    config = options.settings({"device": device, "model": model}, folder=Path.cwd(), budget=None, wall=None)
    asked = open_model(config.model) if model is not None else None
    with spinner("looking at the module", shown=not as_json):
        facts = read_problem(problem)
    text = problem.read_text(encoding="utf-8-sig")
    task = write_task(folder, function_name(problem.stem), text, facts)
    seeded = _seeded(task, asked, config, shown=not as_json) if asked is not None else None
    if as_json:
        typer.echo(json.dumps(_document(task, seeded)))
    else:
        _print(task, seeded)
    return 0 if seeded is None or seeded.passed else EXIT_WRONG


def _seeded(task: ImportedTask, model: Model, config: RunConfig, *, shown: bool) -> SeedResult:
    from kernelskill.session.seeding import seed_kernel

    with (
        spinner("asking for a first kernel", shown=shown),
        tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch,
    ):
        return seed_kernel(task, model, config, Path(scratch))


def _document(task: ImportedTask, seeded: SeedResult | None) -> dict[str, object]:
    return {
        "folder": task.folder,
        "symbol": task.symbol,
        "signature": task.signature,
        "cases": list(task.facts.cases),
        "files": sorted(task.files),
        "notes": list(task.facts.notes),
        "seed": None if seeded is None else seeded.model_dump(mode="json"),
    }


def _print(task: ImportedTask, seeded: SeedResult | None) -> None:
    typer.echo(f"wrote {task.folder}: {', '.join(sorted(task.files))}")
    typer.echo(f"launcher: {task.signature}")
    for note in task.facts.notes:
        typer.echo(f"note: {note}")
    arguments = f"{task.kernel} --tests {task.tests}"
    if seeded is None:
        typer.echo(
            f"next: write {task.kernel}, or give --model to have it written; then: kernelskill check {arguments}"
        )
    elif seeded.passed:
        typer.echo(f"kernel.cu passed: {seeded.detail}; next: kernelskill run {arguments}")
    else:
        typer.echo(f"no kernel.cu: the last of {seeded.attempts} answers was refused: {seeded.detail[:300]}")
        typer.echo(f"next: write {task.kernel}; then: kernelskill check {arguments}")
