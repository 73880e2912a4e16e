"""Options of commands that may ask a language model."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="none, openai:NAME, openai:NAME@URL, mailbox:DIR, scripted:FILE, record:FILE:MODEL or replay:FILE. "
        "Default: none.",
        show_default=False,
    ),
]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        min=1,
        max=64,
        metavar="N",
        help="Answers asked of the model for each specialist and round. Default: 1.",
        show_default=False,
    ),
]
Repairs = Annotated[
    int | None,
    typer.Option(
        "--repairs",
        min=0,
        max=16,
        metavar="N",
        help="Times that the model may mend a change that failed. Default: 2.",
        show_default=False,
    ),
]
Plan = Annotated[
    bool | None, typer.Option("--plan", help="Ask the model first which of the directions to try.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=1,
        metavar="N",
        help="Stop after so many tokens, in and out together.",
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost", metavar="USD", help="Stop after so much money for the model.", show_default=False
    ),
]
MaxRequests = Annotated[
    int | None,
    typer.Option(
        "--max-requests",
        min=1,
        metavar="N",
        help="Stop after so many calls of the model.",
        show_default=False,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Measure the original, then print what a model would be asked and may cost. Asks no model.",
    ),
]
