"""Dry run: what a model would be asked in the first round, and what the run may take at most. Asks nobody."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from langgraph.runtime import Runtime

from kernelskill.config import RunConfig
from kernelskill.errors import UsageError
from kernelskill.events import Sink
from kernelskill.graph import nodes
from kernelskill.graph.consulting import opening_questions
from kernelskill.graph.context import RoundContext
from kernelskill.graph.state import initial_state
from kernelskill.llm.base import NO_USAGE, ModelRequest, Usage
from kernelskill.llm.budget import ModelBudget, ModelLimits
from kernelskill.llm.models import open_budgeted
from kernelskill.runs import StopFlag, SystemClock
from kernelskill.schema.base import Record
from kernelskill.session import rounds
from kernelskill.session.assemble import Surroundings, assemble_new


class DryRun(Record):
    """What a run would ask a model."""

    model: str
    requests: tuple[ModelRequest, ...]
    """Of the first round."""
    first_round: Usage
    """The most that they take."""
    whole_run: Usage
    """The most that all rounds take, second tries and repairs included."""
    limits: ModelLimits


def dry_run(
    kernel: Path,
    tests: Path,
    config: RunConfig,
    *,
    sinks: Sequence[Sink] = (),
    stop: StopFlag | None = None,
) -> DryRun:
    """Measure and profile the original, and put the first round's requests together.

    Args:
        kernel: The `.cu` file.
        tests: Its `test.py`.
        config: All settings.
        sinks: Told of every event.
        stop: Set from outside to stop at the next safe point.

    Raises:
        UsageError: No model is set.
        TaskError: The kernel or its test cannot be used.
    """
    limits = ModelLimits(tokens=config.model_tokens, usd=config.model_usd, requests=config.model_requests)
    model = open_budgeted(config.model, limits)
    if model is None:
        raise UsageError(
            "no model is set, so nothing would be asked", remedy="add for example --model openai:NAME"
        )
    with tempfile.TemporaryDirectory(prefix="kernelskill-") as scratch:
        around = Surroundings(stop or StopFlag(), SystemClock(), tuple(sinks))
        assembly = assemble_new(kernel, tests, config, Path(scratch) / "run", around)
        try:
            rounds.establish(assembly.context, assembly.original)
            requests = _requests(assembly.context)
        finally:
            assembly.close()
    once = _most(model, requests)
    # An answer that cannot be used is asked for again once, and so is every repair of it.
    answers = 2 * (1 + config.repairs) * config.rounds
    cost = None if once.cost_usd is None else once.cost_usd * answers
    whole = Usage(
        input_tokens=once.input_tokens * answers,
        output_tokens=once.output_tokens * answers,
        requests=once.requests * answers,
        cost_usd=cost,
        estimated=True,
    )
    return DryRun(
        model=model.name, requests=tuple(requests), first_round=once, whole_run=whole, limits=limits
    )


def _requests(context: RoundContext) -> list[ModelRequest]:
    original = context.task.original
    state = initial_state(1, [original])
    runtime = Runtime(context=context)
    nodes.profiler(state, runtime)
    for name in context.library.specialists():
        offered = nodes.specialist(name, {"round": 1, "specialist": name, "base": original}, runtime)
        state["offers"] += offered["offers"]
    return [question.request for question in opening_questions(context, state)]


def _most(model: ModelBudget, requests: Sequence[ModelRequest]) -> Usage:
    return sum((model.estimate(request) for request in requests), NO_USAGE)
