"""`kernelskill doctor`: what works on this machine, and one line on what to do about the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from kernelskill.session.checkup import Finding

_MARKS = {"ok": ("ok", "green"), "limited": ("--", "yellow"), "missing": ("no", "red")}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Check compiler, driver, GPU, counters, packages, model, skills and folders.

    Exits with 0 where `kernelskill run` can work, on a GPU or emulated, else with 3.
    """
    from kernelskill.session.checkup import checkup

    findings = checkup()
    usable = all(finding.state != "missing" for finding in findings)
    if as_json:
        rows = [finding.model_dump(mode="json") for finding in findings]
        typer.echo(json.dumps({"usable": usable, "findings": rows}, indent=1))
    else:
        _print(findings, usable)
    return 0 if usable else 3


def _print(findings: list[Finding], usable: bool) -> None:
    console = Console(highlight=False)
    for finding in findings:
        mark, style = _MARKS[finding.state]
        line = Text(f"{mark:>2}  ", style=style)
        line.append(f"{finding.name:<18} {finding.detail}", style="default")
        console.print(line, soft_wrap=True)
        if finding.remedy:
            console.print(Text(f"    {'':<18} -> {finding.remedy}", style="dim"), soft_wrap=True)
    console.print("kernelskill can run here" if usable else "something needed is missing")
