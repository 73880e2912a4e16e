"""Assemble what a run needs: task, evaluator, skills, policy, pool and log, new or taken up again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelskill.agents.prompts import PromptLibrary
from kernelskill.config import RunConfig
from kernelskill.errors import ArtifactCorrupt, UsageError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile, SeedSource
from kernelskill.evaluation.spool import SpoolRules
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.task_parts import TaskParts
from kernelskill.events import Clock, EventLog, Sink, read_events
from kernelskill.experience.pool import POOL_FILE, ExperiencePool
from kernelskill.graph.context import RoundContext
from kernelskill.graph.learning import learn_again, stated_preferences
from kernelskill.isolation.locks import FileLock
from kernelskill.llm.budget import ModelBudget, ModelLimits
from kernelskill.llm.models import absolute_spec, open_budgeted
from kernelskill.policy.rank import Policy
from kernelskill.resources import data_dir, data_folder
from kernelskill.runs import RunFolder, StopFlag, fold
from kernelskill.schema.base import canonical_json, sha256_text
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.chat_event import Opened
from kernelskill.schema.device import Evidence
from kernelskill.schema.event import Note, RunResumed, RunStarted
from kernelskill.search.budget import budget_of
from kernelskill.session.borders import Asker, Borders
from kernelskill.session.gating import gate
from kernelskill.session.guard import GuardedEvaluator, guarded
from kernelskill.session.user_file import opened
from kernelskill.skills.library import SkillLibrary, default_folders
from kernelskill.source.unit import SourceUnit
from kernelskill.tasks.load import load_task
from kernelskill.tasks.snapshot import read_snapshot, write_snapshot

LOCK_FILE = ".lock"


@dataclass(frozen=True)
class Surroundings:
    """What a front end gives a run beside its settings."""

    stop: StopFlag
    """Set from outside to stop at the next safe point."""
    clock: Clock
    sinks: Sequence[Sink] = ()
    """Told of every event."""
    waiting: Callable[[str], None] | None = None
    """Told in one line what is waited for."""
    ask: Asker | None = None
    """Asked at the borders."""
    seed_source: SeedSource | None = None
    """Where the secret seeds come from; the system by default."""


@dataclass
class Assembly:
    """A run's parts, and how to let go of them."""

    context: RoundContext
    original: Candidate
    seeds: SeedFile
    attempt: int
    """0 for a new run, then counted up at every resume."""
    moved: bool
    """Whether the run continues on another GPU than before."""
    guard: GuardedEvaluator
    borders: Borders
    generated: str
    """The launcher that was made for a bare kernel; part of the original, and not of the user's file."""
    resources: ExitStack
    opened: Opened | None = None
    """The user's own files, where they are known."""

    def fresh_pool(self, candidate: str) -> str:
        """Return the digest of seeds that the search never used; drawn once for a candidate."""
        return self.seeds.pool(f"confirm-{candidate[:16]}", self.context.config.trials).digest

    def close(self) -> None:
        """Release processes and files."""
        self.resources.close()


def assemble_new(
    kernel: Path,
    tests: Path,
    config: RunConfig,
    out: Path,
    around: Surroundings,
) -> Assembly:
    """Load and gate the task, make the run folder and begin the log."""
    RunFolder(out).require_new()
    # A run goes on from other folders too; and a wrong spelling is told before anything is built.
    config = config.model_copy(update={"model": absolute_spec(config.model, Path.cwd())})
    _open_model(config, None)
    loaded = load_task(kernel, tests, keep_exact=config.keep_exact)
    weak = gate(loaded, accept_weak=config.accept_weak_test)
    run = RunFolder.create(out)
    with ExitStack() as stack:
        _hold(run, stack)
        run.require_new()
        run.clear()
        left_behind = write_snapshot(
            run.task,
            loaded.task,
            loaded.original,
            loaded.tests,
            generated=loaded.generated,
            assumptions=loaded.assumptions,
        )
        assembly = _assemble(
            run, loaded, config, around, stack, seeds=SeedFile(run.seeds, around.seed_source)
        )
        context = assembly.context
        context.log.emit(
            RunStarted(
                task=loaded.task,
                config=config.model_dump(mode="json"),
                original=loaded.original.digest,
                conditions=context.evaluator.conditions(),
                specialists=context.library.specialists(),
                skills=len(context.library.all()),
            )
        )
        notes = [*loaded.warnings, *loaded.assumptions, *weak]
        notes += [f"{name} was too large to keep with the run" for name in left_behind]
        for note in notes:
            context.log.emit(Note(text=note))
        assembly.resources = stack.pop_all()
        assembly.opened = opened(kernel, loaded.original)
        return assembly


def assemble_resumed(
    folder: Path, changes: Mapping[str, Any], around: Surroundings, *, more_rounds: int
) -> Assembly:
    """Read the run back and continue its log.

    Args:
        folder: The run folder.
        changes: Settings that differ from now on, by name.
        around: What the front end gives.
        more_rounds: Rounds beyond those asked for before.
    """
    run = RunFolder.open(folder)
    stored = read_snapshot(run.task)
    with ExitStack() as stack:
        _hold(run, stack)
        earlier = fold(read_events(run.events))
        started = earlier.started
        if started is None:
            raise ArtifactCorrupt(f"{run.events} does not begin with a run", remedy="start the run again")
        config = RunConfig.model_validate(started.config)
        limit = earlier.round_limit or earlier.settings.get("rounds", config.rounds)
        rounds = max(limit, earlier.rounds) + more_rounds if more_rounds else limit
        config = config.model_copy(update={**earlier.settings, **changes, "rounds": rounds})
        assembly = _assemble(
            run, stored, config, around, stack, seeds=SeedFile(run.seeds), run_id=started.run
        )
        context = assembly.context
        conditions = context.evaluator.conditions()
        assembly.attempt = earlier.attempts + 1
        known = started.conditions.evidence != "none"
        assembly.moved = known and conditions.gpu != started.conditions.gpu
        context.earlier_s = earlier.spend.seconds
        learn_again(context, earlier.rounds)
        context.policy.state(stated_preferences(context))
        context.log.emit(
            RunResumed(
                conditions=conditions, attempt=assembly.attempt, rounds=rounds if more_rounds else None
            )
        )
        assembly.resources = stack.pop_all()
        return assembly


def _assemble(
    run: RunFolder,
    parts: TaskParts,
    config: RunConfig,
    around: Surroundings,
    stack: ExitStack,
    *,
    seeds: SeedFile,
    run_id: str = "",
) -> Assembly:
    seed_pool = seeds.pool("main", config.trials).digest
    inner: Evaluator = open_evaluator(
        config.device,
        parts,
        run_folder=run.root,
        seeds=seeds,
        clock=around.clock,
        spool_rules=SpoolRules(wait=config.wait),
        progress=around.waiting,
    )
    stack.callback(inner.close)
    library = SkillLibrary.load(default_folders(Path.cwd()))
    model = _open_model(config, run.root)
    pool = _open_pool(config, stack)
    # A resumed run keeps its id, wherever its folder was moved: slates and checkpoints go by it.
    run_id = run_id or sha256_text(canonical_json([parts.task.content_digest(), seed_pool]))[:12]
    log = stack.enter_context(EventLog(run.events, run=run_id, clock=around.clock, sinks=tuple(around.sinks)))
    _require_kernel(config.only_kernel, parts)
    borders = Borders(log, around.ask)
    guard = guarded(inner, borders, parts.original, EvaluationStore(run.root))
    context = RoundContext(
        run=run,
        run_id=run_id,
        log=log,
        clock=around.clock,
        task=parts.task,
        config=config,
        budget=budget_of(config),
        evaluator=guard,
        library=library,
        policy=Policy(_evidence(inner), pool),
        pool=pool,
        seed_pool=seed_pool,
        model=model,
        prompts=PromptLibrary.load() if model is not None else PromptLibrary([]),
        stop=around.stop,
        started_s=around.clock.seconds(),
    )
    return Assembly(
        context,
        parts.original,
        seeds,
        attempt=0,
        moved=False,
        guard=guard,
        borders=borders,
        generated=parts.generated,
        resources=stack,
    )


def _evidence(evaluator: Evaluator) -> Evidence:
    """Return what this run's times are; a worker that has not answered yet is taken for a GPU."""
    known = evaluator.evidence
    return "measured" if known == "none" else known


def _open_model(config: RunConfig, folder: Path | None) -> ModelBudget | None:
    limits = ModelLimits(tokens=config.model_tokens, usd=config.model_usd, requests=config.model_requests)
    return open_budgeted(config.model, limits, folder=folder)


def _open_pool(config: RunConfig, stack: ExitStack) -> ExperiencePool | None:
    if not config.learn:
        return None
    pool = ExperiencePool.open(data_dir() / POOL_FILE, shipped=data_folder("experience_pool"))
    stack.callback(pool.close)
    return pool


def _hold(run: RunFolder, stack: ExitStack) -> None:
    """Keep every other process off the run until the stack closes."""
    lock = FileLock(run.root / LOCK_FILE)
    if not lock.acquire(blocking=False):
        raise UsageError(
            f"another process works on the run in {str(run.root)!r}",
            remedy="wait for it, or end it; the run goes on with `kernelskill resume`",
        )
    stack.callback(lock.release)
    run.remove_unfinished_files()


def _require_kernel(name: str, parts: TaskParts) -> None:
    if not name:
        return
    known = {
        kernel.name
        for file in parts.original.files
        for kernel in SourceUnit.parse(file.text, file.path).kernels
    }
    if name not in known:
        raise UsageError(
            f"no kernel is called {name!r}", remedy=f"--only-kernel takes one of {', '.join(sorted(known))}"
        )
