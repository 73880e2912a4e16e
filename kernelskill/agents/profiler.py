"""Profiler: collects the figures of a candidate and names its limits with their evidence."""

from __future__ import annotations

from kernelskill.evaluation.base import Evaluator
from kernelskill.profiling.diagnose import diagnose
from kernelskill.schema.base import Record
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.profile import Bottleneck, Profile, ProfileDepth, Roofline


class Diagnosis(Record):
    """What limits a candidate, and how it is known."""

    candidate: str
    profile: Profile
    roofline: Roofline | None
    bottlenecks: tuple[Bottleneck, ...]
    """The most likely first."""


def diagnose_candidate(
    evaluator: Evaluator,
    candidate: Candidate,
    roofline: Roofline | None,
    *,
    depth: ProfileDepth = "quick",
) -> Diagnosis:
    """Profile a candidate on its first timed case and rank its bottlenecks.

    Args:
        evaluator: Where the candidate runs.
        candidate: A candidate that passed.
        roofline: Where it stands under the ceilings, where a time is known.
        depth: How much is collected.
    """
    profile = evaluator.profile(candidate, depth=depth)
    return Diagnosis(
        candidate=candidate.digest,
        profile=profile,
        roofline=roofline,
        bottlenecks=diagnose(profile, roofline),
    )
