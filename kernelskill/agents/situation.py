"""Situation: everything that a model is told about a base, in records; `prompt_facts` puts it into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelskill.agents.profiler import Diagnosis
from kernelskill.profiling.potential import Potential
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.device import Evidence, Gpu
from kernelskill.schema.evaluation import Timing
from kernelskill.schema.proposal import Skill
from kernelskill.schema.task import Task


@dataclass(frozen=True)
class Attempt:
    """One change that was tried in this run."""

    round: int
    specialist: str
    label: str
    outcome: str
    """In words: the verdict and why."""
    gain: float | None = None
    """Over its base."""
    won: bool = False


@dataclass(frozen=True)
class FittingSkill:
    """A skill that answers the diagnosis."""

    skill: Skill
    declined: str = ""
    """Why its mechanical form did not apply, where it has one and was asked."""
    offered: bool = False
    """Whether its mechanical form applies, so that it is tried anyway."""


@dataclass(frozen=True)
class PoolRecord:
    """How one skill has done in earlier runs where the same was diagnosed."""

    skill: str
    tried: int
    won: int
    mean_speedup: float | None
    """Geometric mean over those that were timed."""
    last_failure: str = ""
    same_limit: bool = True
    """Whether the same limit came first there; if not, these are outcomes of any context."""


@dataclass(frozen=True)
class Situation:
    """What is known of a base when a model is asked about it."""

    task: Task
    base: Candidate
    speedup: float
    """Of the base over the original."""
    evidence: Evidence
    gpu: Gpu
    diagnosis: Diagnosis
    timings: tuple[Timing, ...]
    potentials: Mapping[str, Potential] = field(default_factory=dict)
    skills: tuple[FittingSkill, ...] = ()
    pool: tuple[PoolRecord, ...] = ()
    others: tuple[str, ...] = ()
    """What other specialists offer or did last, a line each."""
    tried: tuple[Attempt, ...] = ()
    """The latest last."""
    only_kernel: str = ""
    wishes: tuple[str, ...] = ()
    """What the user asked of this run, a line each."""
    direction: str = ""
    is_free: bool = False
    """Whether the direction is an idea outside those that the rules allow."""
    answer_tokens: int = 16384
    """Most tokens of an answer."""
    structured: bool = True
    """Whether a JSON schema is sent with the prompt; of no use to people who answer by hand."""
