"""`kernelskill init`: draft a test.py for a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelskill.errors import UsageError
from kernelskill.runs import write_atomically


def init(
    kernel: Annotated[Path, typer.Argument(help="The .cu file.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write; default test.py beside it.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    stdout: Annotated[bool, typer.Option("--stdout", help="Print instead of writing.")] = False,
) -> None:
    """Draft a test.py from the launcher's signature; you fill in the reference."""
    from kernelskill.tasks.draft import draft_tests
    from kernelskill.tasks.sources import require_file

    require_file(kernel, "kernel")
    text = draft_tests(kernel.read_text(encoding="utf-8-sig"))
    if stdout:
        typer.echo(text, nl=False)
        return
    target = out or kernel.parent / "test.py"
    if target.exists() and not force:
        raise UsageError(f"{str(target)!r} exists", remedy="--force replaces it, --out writes elsewhere")
    try:
        write_atomically(target, text.encode())
    except OSError as error:
        raise UsageError(
            f"cannot write {str(target)!r}: {error.strerror}", remedy="use --out or --stdout"
        ) from error
    typer.echo(f"wrote {target}; fill in reference(), then: kernelskill check {kernel} --tests {target}")
