"""Points of a family as proposals of a run."""

from __future__ import annotations

from kernelskill.graph.context import PROPOSALS, RoundContext
from kernelskill.schema.candidate import Step
from kernelskill.schema.proposal import Proposal, Refusal
from kernelskill.skills.apply import make_proposal
from kernelskill.skills.transformation import SkillRefused


def made_point(context: RoundContext, family: Proposal, steps: tuple[Step, ...]) -> Proposal | Refusal:
    """Apply the steps of a point to the base of its family, and keep what comes of it."""
    base = context.member(family.base).candidate
    try:
        made = make_proposal(base, steps, context.library, context.skill_context, reason=family.rationale)
    except SkillRefused as refused:
        return Refusal(skill=steps[0].skill, kernel=steps[0].site, reason=refused.reason)
    # The chosen proposal itself keeps its choices: the search may have to be run again after a kill.
    if not context.run.has(PROPOSALS, made.id):
        context.run.put(PROPOSALS, made.id, made)
    return made
