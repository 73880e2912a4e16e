"""Specialist: offers what its skills can make of a candidate. It never says what is faster."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kernelskill.agents.brief import Brief
from kernelskill.agents.chains import chains_from
from kernelskill.agents.families import Family, points, site_families, steps_at
from kernelskill.agents.verifier import permitted
from kernelskill.schema.proposal import Proposal, Refusal, Skill
from kernelskill.skills.apply import combine, find_steps, make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused

MOST_PER_SKILL = 24
"""Places, chains of places among them, that one skill may offer of one base."""

MOST_LEADS = 24
"""Points of a family that are tried until one applies; parameters are listed best first."""


@dataclass(frozen=True)
class Offer:
    """What a specialist answers."""

    proposals: tuple[Proposal, ...]
    refusals: tuple[Refusal, ...]


def propose(specialist: str, brief: Brief, library: SkillLibrary) -> Offer:
    """Return everything the mechanical skills of a specialist can make of the base.

    The parameters of a skill are left open: each place is offered once, however many values there are.
    Results that were evaluated before, and results equal to the base, are left out.
    """
    proposals: dict[str, Proposal] = {}
    refusals: list[Refusal] = []
    known = {*brief.tried, brief.base.digest}
    for skill in library.of(specialist):
        if not skill.mechanical:
            continue
        reason = brief.steering.declines(skill.id)
        reason = reason or permitted(skill.exactness, brief.task, keep_exact=brief.keep_exact)
        if reason:
            refusals.append(Refusal(skill=skill.id, kernel="", reason=reason))
            continue
        made, declined = _try_skill(skill, brief, library, known)
        refusals.extend(declined)
        for proposal in made:
            proposals.setdefault(proposal.candidate.digest, proposal)
    for chain in chains_from(list(proposals.values()), brief, library, known):
        proposals.setdefault(chain.candidate.digest, chain)
    return Offer(tuple(proposals.values()), tuple(refusals))


def combined(
    first: Proposal, others: Sequence[Proposal], library: SkillLibrary, context: SkillContext
) -> Proposal | Refusal:
    """Apply the steps of other proposals again to the result of one, each where it still applies.

    Returns:
        A proposal whose base is the result of `first`, or why none of the others goes with it.
    """
    kept: list[Proposal] = []
    reason = ""
    for other in others:
        steps = [step for each in (*kept, other) for step in each.steps]
        try:
            combine(first.candidate, steps, library, context)
        except SkillRefused as refused:
            reason = reason or refused.reason
        else:
            kept.append(other)
    steps = [step for each in kept for step in each.steps]
    try:
        proposal = make_proposal(
            first.candidate,
            steps,
            library,
            context,
            origin="combined",
            reason=f"together with {first.label}",
        )
    except SkillRefused as refused:
        last = others[-1].steps[-1]
        return Refusal(skill=last.skill, kernel=last.site, reason=reason or refused.reason)
    assumptions = tuple(dict.fromkeys((*first.assumptions, *proposal.assumptions)))
    return proposal.model_copy(update={"assumptions": assumptions})


def _try_skill(
    skill: Skill, brief: Brief, library: SkillLibrary, known: AbstractSet[str]
) -> tuple[list[Proposal], list[Refusal]]:
    context = SkillContext(task=brief.task)
    only = (brief.only_kernel,) if brief.only_kernel else ()
    found, refusals = find_steps(brief.base, skill, library, context, only_kernels=only)
    made: list[Proposal] = []
    families: list[Family] = []
    for family in site_families(skill, found):
        restricted = brief.steering.restricted(family)
        if isinstance(restricted, Family):
            families.append(restricted)
        elif len(family.steps) == 1:
            refusals.append(restricted)
    # The tail is cut, so kernels in which most can be won come first.
    families.sort(key=lambda family: -brief.winnable(family.steps[0].site.partition("/")[0]))
    for family in families[:MOST_PER_SKILL]:
        outcome = lead(family, brief, library, known)
        if isinstance(outcome, Proposal):
            made.append(outcome)
        elif outcome is not None and len(family.steps) == 1:
            refusals.append(outcome)
    return made, refusals


def lead(
    family: Family, brief: Brief, library: SkillLibrary, known: AbstractSet[str]
) -> Proposal | Refusal | None:
    """Return the proposal that stands for a family: its first point that applies and was not tried.

    Returns:
        The proposal; why the first point was refused where none applies; None where all were tried.
    """
    refusal: Refusal | None = None
    context = SkillContext(task=brief.task)
    for values in points(family.choices, MOST_LEADS):
        steps = steps_at(family.steps, family.choices, values)
        if any(step in brief.lineage.steps for step in steps):
            continue
        try:
            proposal = make_proposal(brief.base, steps, library, context, reason=family.reason)
        except SkillRefused as refused:
            first = steps[0]
            refusal = refusal or Refusal(skill=first.skill, kernel=first.site, reason=refused.reason)
            continue
        reason = brief.steering.objection(brief.base, proposal.candidate)
        if reason:
            first = steps[0]
            refusal = refusal or Refusal(skill=first.skill, kernel=first.site, reason=reason)
            continue
        if proposal.candidate.digest not in known:
            return proposal.model_copy(update={"choices": family.choices})
    return refusal
