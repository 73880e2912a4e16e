"""Specialist: offers what its skills can make of a candidate. It never says what is faster."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kernelskill.agents.verifier import permitted
from kernelskill.schema.candidate import Candidate, Lineage, Step
from kernelskill.schema.proposal import Proposal, Refusal, Skill
from kernelskill.schema.task import Task
from kernelskill.skills.apply import find_steps, make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused

MOST_PER_SKILL = 24
"""Proposals one skill may make of one base; parameters are listed best first, so the tail is cut."""

MOST_CHAINS = 2
"""Values of a skill's parameters for which all its sites in a kernel are rewritten at once."""


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
        for proposal in made:
            if proposal.candidate.digest not in known:
                proposals.setdefault(proposal.candidate.digest, proposal)
    return Offer(tuple(proposals.values()), tuple(refusals))


def combined(
    first: Proposal, second: Proposal, library: SkillLibrary, context: SkillContext
) -> Proposal | Refusal:
    """Apply the steps of one proposal again to the result of another.

    Returns:
        A proposal whose base is the result of `first`, or why the two cannot be combined.
    """
    try:
        proposal = make_proposal(
            first.candidate,
            second.steps,
            library,
            context,
            origin="combined",
            reason=f"together with {first.label}",
        )
    except SkillRefused as refused:
        return Refusal(skill=second.steps[-1].skill, kernel=second.steps[-1].site, reason=refused.reason)
    assumptions = tuple(dict.fromkeys((*first.assumptions, *proposal.assumptions)))
    return proposal.model_copy(update={"assumptions": assumptions})


def _try_skill(skill: Skill, brief: Brief, library: SkillLibrary) -> tuple[list[Proposal], list[Refusal]]:
    context = SkillContext(task=brief.task)
    only = (brief.only_kernel,) if brief.only_kernel else ()
    found, refusals = find_steps(brief.base, skill, library, context, only_kernels=only)
    single = [(each.step,) for each in found if each.step not in brief.lineage.steps]
    reasons = {each.step: each.site.reason for each in found}
    made: list[Proposal] = []
    for steps in [*chains([step for (step,) in single]), *single][:MOST_PER_SKILL]:
        reason = reasons[steps[0]] if len(steps) == 1 else f"{len(steps)} places at once: {reasons[steps[0]]}"
        try:
            made.append(make_proposal(brief.base, steps, library, context, reason=reason))
        except SkillRefused as refused:
            if len(steps) == 1:
                refusals.append(Refusal(skill=skill.id, kernel=steps[0].site, reason=refused.reason))
    return made, refusals


def chains(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Return chains that apply one skill at every site of a kernel with equal parameters.

    What is slow in one place of a kernel is often slow in its neighbours too, and mending one of
    them gains nothing. The first parameters at each site are the most promising ones.
    """
    found: list[tuple[Step, ...]] = []
    for kernel in dict.fromkeys(step.site.partition("/")[0] for step in steps):
        own = [step for step in steps if step.site.partition("/")[0] == kernel]
        for parameters in list(dict.fromkeys(step.parameters for step in own))[:MOST_CHAINS]:
            chain = tuple(step for step in own if step.parameters == parameters)
            if len({step.site for step in chain}) > 1:
                found.append(chain)
    return found
