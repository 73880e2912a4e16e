"""A run on any evaluator, with skills that replace one word of the source by another."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelskill.config import RunConfig
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.events import Clock, EventLog
from kernelskill.experience.pool import ExperiencePool
from kernelskill.graph.context import RoundContext
from kernelskill.policy.rank import Policy
from kernelskill.runs import RunFolder, StopFlag, SystemClock, fold
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.event import BaseEvent, Event, RunStarted
from kernelskill.schema.task import Task
from kernelskill.search.budget import budget_of
from kernelskill.session import rounds
from kernelskill.skills.library import SkillLibrary

SKILL = """\
---
title: {title}
triggers: []
{fields}
prior: {{log_speedup: {prior}, deviation: 0.05}}
---
A rung of a ladder.

## When

## How

## Example

## Pitfalls
"""
TRANSFORM = """\
from kernelskill.schema.candidate import Edit
from kernelskill.skills.transformation import Rewrite, Site, SkillRefused

OLD, NEW, MS, KERNEL = {old!r}, {new!r}, {ms!r}, {kernel!r}


def sites(unit, kernel, context):
    if OLD not in unit.text or KERNEL not in ("", kernel.name):
        raise SkillRefused("the rung below is missing")
    return [Site(key=f"{{kernel.name}}/{{NEW}}", kernel=kernel.name, reason="it is a rung")]


def rewrite(unit, site, parameters, context):
    ms = MS[parameters["width"]] if parameters and MS else MS
    edits = [_replace(unit, OLD, NEW.format(**parameters) if "{{width}}" in NEW else NEW)]
    if ms is not None:
        first = unit.text.split("\\n")[0]
        if isinstance(ms, str):
            ms = float(first.rpartition("=")[2]) * float(ms)
        edits.append(_replace(unit, first, f"// scripted: right ms={{ms}}"))
    return Rewrite(edits=tuple(edits))


def _replace(unit, old, new):
    start = unit.data.index(old.encode())
    return Edit(path=unit.path, start=start, end=start + len(old.encode()), text=new)
"""


OpenEvaluator = Callable[[Path, SeedFile, Clock], Evaluator]


class Shop:
    """A run whose parts are given; `close` lets go of its files."""

    def __init__(
        self, folder: Path, task: Task, original: Candidate, evaluator: OpenEvaluator, **settings: Any
    ) -> None:
        self.folder, self.task, self.original = folder, task, original
        self.skills = folder / "skills"
        self.settings = {"rounds": 1, "confirm": False, **settings}
        self._evaluator = evaluator
        self._open: list[Callable[[], None]] = []

    def skill(
        self,
        name: str,
        old: str,
        new: str,
        ms: Any = None,
        *,
        fields: str = "",
        prior: float = 0.1,
        kernel: str = "",
    ) -> None:
        """Add a skill that turns one word of the source into another, of every kernel or of one.

        The time becomes `ms`; a text is what it is multiplied with.
        """
        folder = self.skills / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(title=name, fields=fields, prior=prior))
        (folder / "transform.py").write_text(TRANSFORM.format(old=old, new=new, ms=ms, kernel=kernel))

    def context(self, out: str = "out", *, stop_at: type[BaseEvent] | None = None) -> RoundContext:
        """Open the run, new or continued, with nothing kept in memory.

        Args:
            out: Name of the run.
            stop_at: Kind of event after which the user asks to stop.
        """
        stop = StopFlag()

        def sink(event: Event) -> None:
            stop.is_set = stop.is_set or (stop_at is not None and isinstance(event, stop_at))

        run = RunFolder(self.folder / out)
        run.root.mkdir(exist_ok=True)
        seeds = SeedFile(run.seeds, random.Random(7))
        clock = SystemClock()
        evaluator = self._evaluator(run.root, seeds, clock)
        log = EventLog(run.events, run="r", clock=clock, sinks=(sink,))
        pool = ExperiencePool.open(run.root / "pool.sqlite")
        self._open += [log.close, evaluator.close, pool.close]
        config = RunConfig(**{"forecasts": 0, **self.settings})
        log.emit(
            RunStarted(
                task=self.task,
                config=self.settings,
                original=self.original.digest,
                conditions=evaluator.conditions(),
            )
        )
        return RoundContext(
            run=run, run_id="r", log=log, clock=clock, task=self.task, config=config,
            budget=budget_of(config), evaluator=evaluator, library=SkillLibrary.load([self.skills]),
            policy=Policy(evaluator.evidence, pool), pool=pool, seed_pool=seeds.pool(size=2).digest,
            started_s=clock.seconds(), stop=stop,
        )  # fmt: skip

    def run(self, context: RoundContext) -> RoundContext:
        """Establish the baseline and run the rounds."""
        rounds.establish(context, self.original)
        rounds.run_rounds(context)
        return context

    def close(self) -> None:
        for close in self._open:
            close()


def of_kind(context: RoundContext, kind: type) -> list[Any]:
    """Return the events of one kind, the earliest first."""
    return [event for event in context.log.events if isinstance(event, kind)]


def best_source(context: RoundContext) -> str:
    """Return the text of what the run found best."""
    return context.member(fold(context.log.events).best).candidate.source
