"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from kernelskill.config import RunConfig, load_config, parse_duration, process_environment
from kernelskill.runs import StopFlag

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="auto, cuda:N, emulated[:GPU], spool:DIR or replay:PATH. Default: auto.",
        show_default=False,
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option("--rounds", min=0, metavar="N", help="Most rounds. Default: 8.", show_default=False),
]
Patience = Annotated[
    int | None,
    typer.Option(
        "--patience",
        min=1,
        metavar="N",
        help="Stop after so many rounds without gain. Default: 3.",
        show_default=False,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="Stop after so much device time, for example 40s or 5m. Counted is what the search evaluates: not the "
        "original's own measurement, nor a library it is compared with, nor the confirmation at the end.",
        show_default=False,
    ),
]
Wall = Annotated[
    str | None,
    typer.Option(
        "--wall", metavar="TIME", help="Stop after so much wall time, for example 10m.", show_default=False
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of the search. The test data's seeds are secret.",
        show_default=False,
    ),
]
OnlyKernel = Annotated[
    str | None,
    typer.Option("--only-kernel", metavar="NAME", help="Rewrite this kernel alone.", show_default=False),
]
KeepExact = Annotated[
    bool | None,
    typer.Option("--keep-exact", help="Refuse whatever may change bits of a result.", show_default=False),
]
AcceptWeak = Annotated[
    bool | None,
    typer.Option("--accept-weak-test", help="Go on although a wrong kernel would pass.", show_default=False),
]
NoLearn = Annotated[bool, typer.Option("--no-learn", help="Neither use nor write the experience pool.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="With spool:DIR, leave the jobs there and end with exit code 4.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one event a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]


def settings(overrides: dict[str, Any], *, folder: Path, budget: str | None, wall: str | None) -> RunConfig:
    """Return the settings of a run from files, environment and the options given."""
    given = dict(overrides)
    if budget is not None:
        given["budget_s"] = parse_duration(budget)
    if wall is not None:
        given["wall_s"] = parse_duration(wall)
    return load_config(given, folder=folder, environment=process_environment())


@contextmanager
def stop_on_interrupt() -> Iterator[StopFlag]:
    """Set a flag at the first Ctrl-C or SIGTERM, so that the run ends at a safe point; the second raises."""
    flag = StopFlag()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if flag.is_set:
            raise KeyboardInterrupt
        flag.is_set = True
        # Not through a stream: the signal may have come in the middle of a write to it.
        os.write(2, b"stopping after this evaluation; Ctrl-C again stops at once\n")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
