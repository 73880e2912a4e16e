"""Check a kernel, or a rewrite of it, with its test; leaves no run behind."""

from __future__ import annotations

from pathlib import Path

from kernelskill.config import RunConfig
from kernelskill.errors import TaskError
from kernelskill.evaluation.devices import open_evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.runs import SystemClock
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation, Request
from kernelskill.session.gating import gate
from kernelskill.tasks.load import load_task


class CheckResult(Record):
    """What a check found."""

    evaluation: Evaluation
    notes: tuple[str, ...] = ()


def check_kernel(
    kernel: Path, tests: Path, config: RunConfig, scratch: Path, *, candidate: Path | None, cheap: bool
) -> CheckResult:
    """Build and verify once.

    Args:
        kernel: The user's kernel.
        tests: Its test.
        config: Device and permissions.
        scratch: Folder for what is made on the way.
        candidate: A rewrite of the kernel's main file to check in its place.
        cheap: Whether the two smallest cases and one trial suffice.

    Raises:
        TaskError: The kernel or its test cannot be used.
        ToolchainError: A compiler or device is missing.
    """
    loaded = load_task(kernel, tests, keep_exact=config.keep_exact)
    weak = gate(loaded, accept_weak=config.accept_weak_test)
    checked = loaded.original if candidate is None else rewrite_of(loaded.original, candidate)
    seeds = SeedFile(scratch / "seeds.json")
    evaluator = open_evaluator(config.device, loaded, run_folder=scratch, seeds=seeds, clock=SystemClock())
    try:
        evaluation = evaluator.evaluate(
            Request(
                task=loaded.task.content_digest(),
                candidate=checked,
                stage="check",
                device=evaluator.identity,
                depth="cheap" if cheap else "full",
                seed_pool=seeds.pool("main", config.trials).digest,
            )
        )
    finally:
        evaluator.close()
    return CheckResult(evaluation=evaluation, notes=(*loaded.warnings, *loaded.assumptions, *weak))


def rewrite_of(original: Candidate, path: Path) -> Candidate:
    """Return the candidate whose main file is the one at `path`.

    Raises:
        TaskError: It cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(
            f"cannot read {str(path)!r}: {error}", remedy="give a readable UTF-8 .cu file"
        ) from None
    return original.with_text(original.main, text)
