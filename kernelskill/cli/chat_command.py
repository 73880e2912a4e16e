"""`kernelskill chat`: the workbench."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelskill.cli import model_options, options
from kernelskill.cli.run_command import OutOption
from kernelskill.errors import UsageError
from kernelskill.runs import SystemClock, new_run_name

if TYPE_CHECKING:
    from kernelskill.chat.opening import Beginning


KernelOption = Annotated[
    Path | None, typer.Argument(metavar="KERNEL", help="The .cu file.", show_default=False)
]
TestsOption = Annotated[
    Path | None, typer.Option("--tests", "-t", metavar="FILE", help="Its test.py.", show_default=False)
]
ResumeOption = Annotated[
    Path | None,
    typer.Option("--resume", metavar="RUN", help="Go on with this run instead.", show_default=False),
]
YesOption = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Ask nothing: generated code, your file and more budget are fine."),
]
AnswerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="BORDER=ANSWER",
        help="Answer one border in advance: first_run, write or budget, with yes, no or always. "
        "Unasked, without a terminal: yes, no, no. May be given again.",
        show_default=False,
    ),
]


def chat(
    kernel: KernelOption = None,
    tests: TestsOption = None,
    resume: ResumeOption = None,
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
    yes: YesOption = False,
    answer: AnswerOption = None,
    as_json: options.Json = False,
) -> int:
    """Work on a kernel by hand and with the search: commands, wishes, questions; with or without a model.

    Without a terminal, commands are read line by line from standard input and nothing is asked; the
    exit code is that of the first one that failed. In the chat, `/help` lists the commands.
    """
    from kernelskill.chat.borders import read_answers
    from kernelskill.chat.opening import open_chat

    given = {
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
    }
    answers = read_answers(answer or [], yes=yes)
    if resume is not None:
        _require_only_resume(kernel, tests, out, accept_weak_test=accept_weak_test)
        beginning = _going_on(resume, given, budget=budget, wall=wall)
    else:
        beginning = _fresh(*_require_task(kernel, tests), out, given, budget=budget, wall=wall)
    return open_chat(beginning, as_json=as_json, answers=answers)


def _fresh(
    kernel: Path,
    tests: Path,
    out: Path | None,
    given: Mapping[str, Any],
    *,
    budget: str | None,
    wall: str | None,
) -> Beginning:
    from kernelskill.chat.opening import Beginning

    config = options.settings(dict(given), folder=Path.cwd(), budget=budget, wall=wall)
    folder = out or Path("kernelskill-runs") / new_run_name(kernel.stem, SystemClock().timestamp())
    return Beginning(folder, kernel=kernel, tests=tests, config=config)


def _going_on(folder: Path, given: Mapping[str, Any], *, budget: str | None, wall: str | None) -> Beginning:
    """Return how a run goes on: settings that are not given stay what they were."""
    from kernelskill.chat.opening import Beginning
    from kernelskill.config import parse_duration
    from kernelskill.llm.models import absolute_spec

    changes = {
        name: value for name, value in given.items() if value is not None and name not in ("device", "wait")
    }
    if isinstance(changes.get("model"), str):
        changes["model"] = absolute_spec(str(changes["model"]), Path.cwd())
    if budget is not None:
        changes["budget_s"] = parse_duration(budget)
    if wall is not None:
        changes["wall_s"] = parse_duration(wall)
    return Beginning(
        folder, device=str(given["device"] or ""), wait=given["wait"] is not False, changes=changes
    )


def _require_only_resume(
    kernel: Path | None, tests: Path | None, out: Path | None, *, accept_weak_test: bool | None
) -> None:
    if kernel is not None or tests is not None or out is not None:
        raise UsageError(
            "a run that goes on has its kernel, test and folder already",
            remedy="give --resume RUN alone, or KERNEL with --tests",
        )
    if accept_weak_test:
        raise UsageError(
            "the test of a run was judged when the run began", remedy="leave --accept-weak-test out"
        )


def _require_task(kernel: Path | None, tests: Path | None) -> tuple[Path, Path]:
    if kernel is None:
        raise UsageError(
            "nothing to work on", remedy="kernelskill chat kernel.cu --tests test.py, or --resume RUN"
        )
    if tests is None:
        raise UsageError(
            "a kernel needs its test", remedy=f"add --tests test.py; `kernelskill init {kernel}` drafts one"
        )
    return kernel, tests
