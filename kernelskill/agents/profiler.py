"""Profiler: collects the figures of a candidate and names its limits with their evidence."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.evaluation.base import Evaluator
from kernelskill.profiling.diagnose import diagnose
from kernelskill.profiling.potential import HotKernel, hot_kernels
from kernelskill.profiling.profile import with_measured_shares
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.profile import Bottleneck, Profile, ProfileDepth, Roofline


class Diagnosis(Record):
    """What limits a candidate, and how it is known."""

    candidate: str
    profile: Profile
    roofline: Roofline | None
    bottlenecks: tuple[Bottleneck, ...]
    """The most likely first."""
    hot: tuple[HotKernel, ...] = ()
    """What could be won in each kernel, the hottest first."""


def diagnose_candidate(
    evaluator: Evaluator,
    candidate: Candidate,
    roofline: Roofline | None,
    *,
    depth: ProfileDepth = "quick",
    timings: Sequence[Timing] = (),
) -> Diagnosis:
    """Profile a candidate on its first timed case and rank its bottlenecks.

    Args:
        evaluator: Where the candidate runs.
        candidate: A candidate that passed.
        roofline: Where it stands under the ceilings, where a time is known.
        depth: How much is collected.
        timings: The candidate's times; where there are no counters, they say which kernel is the hottest.
    """
    profile = evaluator.profile(candidate, depth=depth)
    timing = next((timing for timing in timings if timing.case == profile.case), None)
    if timing is not None:
        profile = with_measured_shares(profile, timing.launch_share, timing.median_ms)
    return Diagnosis(
        candidate=candidate.digest,
        profile=profile,
        roofline=roofline,
        bottlenecks=diagnose(profile, roofline),
        hot=hot_kernels(profile, roofline),
    )
