"""Brief: what a specialist is told."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kernelskill.agents.steering import Steering
from kernelskill.profiling.potential import Potential
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
    potentials: Mapping[str, Potential] = field(default_factory=dict)
    """What can be won in each kernel of the base, where its profile tells."""

    steering: Steering = field(default_factory=Steering)
    """What the user asked for."""

    def winnable(self, kernel: str) -> float:
        """Return the share of the time that can be won in a kernel; 1 where nothing is known."""
        found = self.potentials.get(kernel)
        return found.winnable if found is not None else 0.0 if self.potentials else 1.0
