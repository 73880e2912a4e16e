"""open_evaluator: from what the user calls a device to the Evaluator that answers for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelskill.backends.devices import open_backend
from kernelskill.errors import UsageError
from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.local import LocalEvaluator
from kernelskill.evaluation.protocol import CheckRules
from kernelskill.evaluation.replay import ReplayEvaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.evaluation.spool import SpoolEvaluator, SpoolRules
from kernelskill.evaluation.store import EvaluationStore
from kernelskill.evaluation.task_parts import TaskParts
from kernelskill.events import Clock
from kernelskill.tasks.process import TestProcess

FORMS = "auto, cuda:N, emulated, emulated:GPU, spool:DIR or replay:PATH"


def open_evaluator(
    device: str,
    parts: TaskParts,
    *,
    run_folder: Path,
    seeds: SeedFile,
    clock: Clock,
    spool_rules: SpoolRules | None = None,
    progress: Callable[[str], None] | None = None,
    check_rules: CheckRules | None = None,
) -> Evaluator:
    """Open the evaluator of a device for one task.

    Args:
        device: `auto`, `cuda:N`, `emulated[:GPU]`, `spool:DIR` or `replay:PATH`.
        parts: The task with its kernel and tests.
        run_folder: Where finished evaluations and the values of the cases are kept.
        seeds: The run's secret seeds.
        clock: Measures the stages.
        spool_rules: How long to wait for workers.
        progress: Told in one line what is waited for.
        check_rules: How much a device of this machine checks; its own rules by default.

    Raises:
        UsageError: The device has no such form.
        DeviceUnavailable: It cannot be used on this machine.
        TaskError: test.py cannot be loaded.
    """
    kind, _, argument = device.partition(":")
    store = EvaluationStore(run_folder)
    if kind in ("spool", "replay"):
        if not argument:
            raise UsageError(f"device {device!r} names no folder", remedy=f"write {kind}:FOLDER")
        place = Path(argument).expanduser()
        if kind == "replay":
            return ReplayEvaluator.open(place)
        _require_folder(place)
        return SpoolEvaluator(
            place, parts, seeds=seeds, store=store, clock=clock, rules=spool_rules, progress=progress
        )
    if kind not in ("auto", "cuda", "emulated"):
        raise UsageError(f"no device is called {device!r}", remedy=f"use {FORMS}")
    backend = open_backend(device)
    gpu = parts.task.has_baseline and backend.evidence == "measured"
    values = TestProcess.start(parts.tests, gpu=gpu)
    return LocalEvaluator(
        backend,
        parts.task,
        parts.original,
        values,
        seeds=seeds,
        store=store,
        data=run_folder / "data",
        clock=clock,
        check_rules=check_rules,
        closes=(values,),
    )


def _require_folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot use {str(place)!r} as a spool folder: {error.strerror}",
            remedy="give a folder that this user may write to",
        ) from None
