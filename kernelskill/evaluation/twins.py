"""Twins: a rewrite that compiles to a program already judged need not run to be judged.

Compilers undo many rewrites, and different ones often end as the same program. Where machine code,
resources and every launch are equal, values and time are equal too; measuring them again would cost
device time and add noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.backends.base import Call
from kernelskill.evaluation.workshop import Workshop
from kernelskill.schema.build import Build
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.evaluation import Evaluation, PairedTiming, Request
from kernelskill.schema.launch_plan import LaunchPlan


@dataclass(frozen=True)
class TimedProgram:
    """A candidate that was timed against an incumbent."""

    candidate: Candidate
    incumbent: str
    """Digest of the incumbent; the candidate's own for the original timed against itself."""
    evaluation: Evaluation


class TimedPrograms:
    """What one evaluator has timed so far, by machine code."""

    def __init__(self) -> None:
        self._programs: dict[str, list[TimedProgram]] = {}

    def add(self, request: Request, evaluation: Evaluation) -> None:
        """Keep a timed evaluation; others are of no use, and a brief one must not stand for a long one."""
        if request.depth == "cheap":
            return
        if evaluation.timings and evaluation.machine_code and request.incumbent is not None:
            known = self._programs.setdefault(evaluation.machine_code, [])
            known.append(TimedProgram(request.candidate, request.incumbent.digest, evaluation))

    def like(self, build: Build, incumbent: Candidate) -> list[TimedProgram]:
        """Return what was timed with this machine code: the incumbent itself, or beside it."""
        digest = incumbent.digest
        known = self._programs.get(build.machine_code, []) if build.machine_code else []
        return [p for p in known if digest in (p.incumbent, p.candidate.digest)]


def are_twins(workshop: Workshop, one: Build, other: Build, calls: Sequence[Call]) -> bool:
    """Return whether two builds ask the same of the device for every call."""
    if not one.machine_code or one.machine_code != other.machine_code:
        return False
    mine, theirs = workshop.plans(one), workshop.plans(other)
    for call in calls:
        plans = mine.plan(call), theirs.plan(call)
        same = [plan.model_copy(update={"device_code": ""}) for plan in plans if isinstance(plan, LaunchPlan)]
        if len(same) < len(plans) or same[0] != same[1]:
            return False
    return True


def evaluation_of_twin(known: TimedProgram, request: Request, build: Build) -> Evaluation:
    """Return what a twin's evaluation says: as its twin's, and a ratio of one where that is its incumbent."""
    found = known.evaluation
    changes: dict[str, object] = {
        "key": request.key,
        "candidate": request.candidate.digest,
        "depth": request.depth,
        "kernels": build.kernels,
        "commands": build.commands,
        "baseline_timings": (),
        "seconds": (),
    }
    if request.incumbent is not None and known.candidate.digest == request.incumbent.digest:
        changes["paired"] = tuple(
            PairedTiming(case=t.case, ratios=(1.0,), median=1.0, low=1.0, high=1.0) for t in found.timings
        )
        changes["incumbent_timings"] = found.timings
        note = "compiles to the same machine code and launches as its base; not run again"
    else:
        note = f"compiles to the same machine code and launches as candidate {found.candidate[:12]}; not run again"
    return found.model_copy(update={**changes, "notes": (*found.notes, note)})
