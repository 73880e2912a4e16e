"""Specialist: offers what its skills can make of a candidate. It never says what is faster."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kernelskill.agents.verifier import permitted
from kernelskill.schema.candidate import Candidate, Lineage, Step
from kernelskill.schema.proposal import Proposal, Refusal, Skill
from kernelskill.schema.task import Task
from kernelskill.skills.apply import AppliedStep, apply_step, find_steps, make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused

MOST_PER_SKILL = 24
"""Proposals one skill may make of one base; parameters are listed best first, so the tail is cut."""


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


@dataclass(frozen=True)
class Offer:
    """What a specialist answers."""

    proposals: tuple[Proposal, ...]
    refusals: tuple[Refusal, ...]


def propose(specialist: str, brief: Brief, library: SkillLibrary) -> Offer:
    """Return everything the mechanical skills of a specialist can make of the base.

    Results that were evaluated before, and results equal to the base, are left out.
    """
    proposals: dict[str, Proposal] = {}
    refusals: list[Refusal] = []
    known = {*brief.tried, brief.base.digest}
    for skill in library.of(specialist):
        if not skill.mechanical:
            continue
        reason = permitted(skill.exactness, brief.task, keep_exact=brief.keep_exact)
        if reason:
            refusals.append(Refusal(skill=skill.id, kernel="", reason=reason))
            continue
        made, declined = _try_skill(skill, brief, library)
        refusals.extend(declined)
        for proposal in made[:MOST_PER_SKILL]:
            if proposal.candidate.digest not in known:
                proposals.setdefault(proposal.candidate.digest, proposal)
    return Offer(tuple(proposals.values()), tuple(refusals))


def combine(
    first: Proposal, second: Proposal, library: SkillLibrary, context: SkillContext
) -> Proposal | Refusal:
    """Apply the steps of one proposal again to the result of another.

    Returns:
        A proposal whose base is the result of `first`, or why the two cannot be combined.
    """
    candidate = first.candidate
    assumptions: list[str] = list(first.assumptions)
    for step in second.steps:
        try:
            applied = apply_step(candidate, step, library, context)
        except SkillRefused as refused:
            return Refusal(skill=step.skill, kernel=step.site, reason=refused.reason)
        candidate = applied.candidate
        assumptions.extend(applied.assumptions)
    return second.model_copy(
        update={
            "base": first.candidate.digest,
            "candidate": candidate,
            "origin": "combined",
            "assumptions": tuple(dict.fromkeys(assumptions)),
            "rationale": f"together with {first.label}",
        }
    )


def _try_skill(skill: Skill, brief: Brief, library: SkillLibrary) -> tuple[list[Proposal], list[Refusal]]:
    context = SkillContext(task=brief.task)
    steps, refusals = find_steps(brief.base, skill, library, context, only_kernel=brief.only_kernel)
    made: list[Proposal] = []
    for step in steps:
        if _repeats(step, brief.lineage):
            continue
        try:
            applied: AppliedStep = apply_step(brief.base, step, library, context)
        except SkillRefused as refused:
            refusals.append(Refusal(skill=skill.id, kernel=step.site, reason=refused.reason))
            continue
        made.append(make_proposal(brief.base, step, applied, skill))
    return made, refusals


def _repeats(step: Step, lineage: Lineage) -> bool:
    """Return whether the very same step was already taken on the way to the base."""
    return step in lineage.steps
