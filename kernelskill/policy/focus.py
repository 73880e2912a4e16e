"""Focus: what a change of one kernel is worth to the whole launcher.

A skill's prior speaks of the kernel that it changes. The launcher gains by the kernel's share of the
time, and never more than what is left above the kernel's roof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelskill.policy.features import relevance
from kernelskill.policy.model import Array
from kernelskill.profiling.potential import Potential, plain_name
from kernelskill.schema.profile import Bottleneck
from kernelskill.schema.proposal import Proposal

UNSEEN = Potential(time_share=0.05, distance=1.0)
"""Of a kernel that the profile does not hold: it may run in cases that were not profiled."""


@dataclass(frozen=True)
class Focus:
    """Where a proposal works."""

    fit: float
    """How much of its triggers' fit belongs to its own kernels, 0 to 1."""
    share: float
    """Of the launcher's time, 0 to 1."""
    winnable: float
    """Share of the launcher's time that can be won at most, 0 to 1."""

    def whole(self, gains: Array) -> Array:
        """Return ln(speedup) of the launcher for ln(speedup) of the kernels, by Amdahl's law."""
        fitting = np.where(gains > 0, gains * self.fit, gains)
        left = 1 - self.share + self.share * np.exp(-np.clip(fitting, -30, 30))
        return np.asarray(-np.log(np.maximum(left, max(1e-6, 1 - self.winnable))), dtype=np.float64)


EVERYWHERE = Focus(1.0, 1.0, 1.0)
"""Of a launcher of which nothing is known."""


def focus_of(
    proposal: Proposal, bottlenecks: Sequence[Bottleneck], potentials: Mapping[str, Potential]
) -> Focus:
    """Return the focus of a proposal.

    Args:
        proposal: The change; its steps' sites name their kernels.
        bottlenecks: Of all kernels of the base.
        potentials: Of all profiled kernels of the base; empty where nothing is known.
    """
    kernels = {kernel for step in proposal.steps for kernel in step.kernels}
    if not kernels and proposal.kernel in potentials:
        kernels = {proposal.kernel}
    if len(potentials) < 2 or not kernels:
        return EVERYWHERE
    own = [potentials.get(plain_name(kernel), UNSEEN) for kernel in sorted(kernels)]
    share = min(1.0, sum(potential.time_share for potential in own))
    winnable = min(share, sum(potential.winnable for potential in own))
    names = {plain_name(kernel) for kernel in kernels}
    anywhere = relevance(proposal, bottlenecks)
    here = relevance(proposal, [b for b in bottlenecks if plain_name(b.kernel) in names])
    return Focus(here / anywhere if anywhere else 1.0, share, winnable)
