"""`kernelskill worker`: evaluate the jobs of a spool folder on this machine's device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelskill.cli import options

EXIT_INTERRUPTED = 130


def worker(
    folder: Annotated[Path, typer.Argument(help="The spool folder, shared or copied.", show_default=False)],
    device: Annotated[str, typer.Option("--device", help="auto, cuda:N or emulated[:GPU].")] = "auto",
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when no job waits.")] = False,
) -> int:
    """Take jobs from a spool folder, evaluate them here and leave the results there.

    The searching side uses `--device spool:DIR`. Either side may be stopped at any time; Ctrl-C waits for the
    job in hand, and a second one does not.
    """
    from kernelskill.evaluation.spool_worker import serve

    with options.stop_on_interrupt() as stop:
        done = serve(folder, device=device, until_empty=until_empty, log=typer.echo, stop=stop)
    typer.echo(f"{done} job{'' if done == 1 else 's'} done")
    return EXIT_INTERRUPTED if stop.is_set else 0
