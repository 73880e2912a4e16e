"""What the programs of this folder write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kernelskill.evaluation.base import Evaluator
from kernelskill.evaluation.seeds import SeedFile
from kernelskill.schema.base import Record
from kernelskill.schema.device import Conditions
from kernelskill.schema.evaluation import Request
from kernelskill.schema.profile import Profile, Roofline
from kernelskill.tasks.load import LoadedTask

HERE = Path(__file__).parent
CORE = HERE.parent / "core"
VARIANTS = HERE / "variants"
PATTERNS = HERE / "patterns"
ORIGINAL = "original"
"""Label of a task's own kernel."""
TASKS = (
    "transpose", "softmax", "matmul", "stencil", "nbody", "matvec", "column_mean", "sum", "bias_relu",
    "particles", "conv1d", "batched_matmul", "rgb_to_grey", "layernorm", "conv2d", "histogram",
)  # fmt: skip
"""Kernels of the core suite that are compared, of every kind: streams, rows, tiles, stencils, atomics."""


class Variant(Record):
    """One way to write a task's kernel."""

    label: str
    """The steps that made it; `original` for the task's own kernel."""
    source: str


class TaskVariants(Record):
    """The variants of one task, the original first."""

    task: str
    variants: tuple[Variant, ...]


class TimedVariant(Record):
    """The time of one variant on one device."""

    task: str
    label: str
    candidate: str
    """Digest of its sources: the two halves of a comparison are joined by it."""
    status: str
    detail: str = ""
    case: str = ""
    median_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    original_ms: float | None = None
    """Time of the task's own kernel, taken in turns with this one."""
    samples: int = 0
    conditions: Conditions
    notes: tuple[str, ...] = ()


class PatternRecord(Record):
    """The figures of one kernel with a known fault, on one device."""

    name: str
    profile: Profile | None = None
    """None where it could not be profiled; source lines are left out."""
    roofline: Roofline | None = None
    error: str = ""


class Answer(Record):
    """What was said of a kernel with a known fault."""

    name: str
    right: bool
    said: tuple[str, ...]
    """Kinds of limits, the first diagnosis first."""
    conditions: Conditions | None = None
    error: str = ""


def request_of(
    loaded: LoadedTask,
    source: str,
    evaluator: Evaluator,
    seeds: SeedFile,
    *,
    stage: Literal["check", "time"],
) -> Request:
    """Return the brief evaluation of a main file, against the task's own kernel where it is timed."""
    return Request(
        task=loaded.task.content_digest(),
        candidate=loaded.original.with_text(loaded.original.main, source),
        stage=stage,
        incumbent=loaded.original if stage == "time" else None,
        device=evaluator.identity,
        depth="cheap",
        seed_pool=seeds.pool("main", 1).digest,
    )
