"""Brief: what a specialist is told."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kernelskill.schema.candidate import Candidate, Lineage
from kernelskill.schema.task import Task


@dataclass(frozen=True)
class Brief:
    """What a specialist is told about the base it works on."""

    base: Candidate
    lineage: Lineage
    task: Task
    only_kernel: str
    keep_exact: bool
    tried: AbstractSet[str]
    """Digests of candidates that were evaluated before."""
