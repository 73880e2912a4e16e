"""Chains: different skills in a row, offered as one proposal.

Many ladders have a rung that gains nothing by itself: axes are swapped so that a tile can be staged,
sums go to a register so that a loop can be unrolled. Skills name what they enable; a chain follows
those names, each skill asked about the result of the ones before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from kernelskill.agents.brief import Brief
from kernelskill.agents.families import points, shifted, site_families, steps_at
from kernelskill.agents.verifier import permitted
from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.proposal import Part, Proposal, Refusal, Skill
from kernelskill.skills.apply import SUFFIXES, find_steps, make_proposal
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.parsed_files import parsed
from kernelskill.skills.transformation import SkillContext, SkillRefused

LONGEST = 4
"""Steps of different skills in a chain."""
MOST_CHAINS = 8
"""Chains that one specialist offers of one base."""
MOST_ASKED = 24
"""Times that a specialist asks a skill about the result of another, a base."""
_PLACES = 1
"""Places of one skill behind one chain that are followed."""
_LEADS = 4
"""Points of a follower that are tried until one applies."""


def chains_from(
    singles: Sequence[Proposal], brief: Brief, library: SkillLibrary, known: AbstractSet[str]
) -> list[Proposal]:
    """Return chains that begin with one of the proposals of single skills, the most promising first.

    Args:
        singles: What the specialist makes of the base with one skill each.
        brief: The base and what was tried on it.
        library: All skills; a chain may leave the specialist's own.
        known: Digests of candidates that need no further look.
    """
    seen = {*known, *(proposal.candidate.digest for proposal in singles)}
    # Asking is bounded, so it begins where most can be won.
    waiting = sorted(singles, key=lambda single: (-_worth(single, brief), single.id))
    found: list[Proposal] = []
    asked = 0
    # Breadth first: every beginning gets its second step before one gets its fourth.
    while waiting and asked < MOST_ASKED:
        begun = waiting.pop(0)
        for skill in _followers(begun, brief, library):
            asked += 1
            for chain in _extended(begun, skill, brief, library):
                if chain.candidate.digest in seen:
                    continue
                seen.add(chain.candidate.digest)
                found.append(chain)
                if len(chain.parts) < LONGEST:
                    waiting.append(chain)
    return sorted(found, key=lambda chain: (-_worth(chain, brief), chain.id))[:MOST_CHAINS]


def _worth(proposal: Proposal, brief: Brief) -> float:
    kernels = {step.site.partition("/")[0] for step in proposal.steps}
    return proposal.predicted.log_speedup * max(brief.winnable(kernel) for kernel in kernels)


def _followers(begun: Proposal, brief: Brief, library: SkillLibrary) -> list[Skill]:
    used = {step.skill for step in begun.steps}
    return [
        skill
        for skill in library.followers(library.get(begun.steps[-1].skill))
        if skill.id not in used
        and not brief.steering.declines(skill.id)
        and not permitted(skill.exactness, brief.task, keep_exact=brief.keep_exact)
    ]


def _extended(begun: Proposal, skill: Skill, brief: Brief, library: SkillLibrary) -> list[Proposal]:
    """Return the chain with one more skill behind it, at the places that the chain has touched."""
    context = SkillContext(task=brief.task)
    touched = _touched(begun, brief)
    if not touched:
        return []
    found, _ = find_steps(begun.candidate, skill, library, context, only_kernels=touched)
    chains = []
    for offered in site_families(skill, found):
        family = brief.steering.restricted(offered)
        if isinstance(family, Refusal):
            continue
        choices = (*begun.choices, *shifted(family.choices, len(begun.steps)))
        for values in points(family.choices, _LEADS):
            steps = steps_at(family.steps, family.choices, values)
            made = _made((*begun.steps, *steps), brief, library)
            if made is not None:
                chains.append(
                    made.model_copy(update={"choices": choices, "parts": (*_parts(begun), _part(skill))})
                )
                break
        if len(chains) == _PLACES:
            break
    return chains


def _made(steps: tuple[Step, ...], brief: Brief, library: SkillLibrary) -> Proposal | None:
    if any(step in brief.lineage.steps for step in steps):
        return None
    titles = dict.fromkeys(library.get(step.skill).title for step in steps)
    context = SkillContext(task=brief.task)
    try:
        made = make_proposal(brief.base, steps, library, context, reason=", then ".join(titles))
    except SkillRefused:
        return None
    return None if brief.steering.objection(brief.base, made.candidate) else made


def _touched(begun: Proposal, brief: Brief) -> set[str]:
    """Return the kernels that a chain has changed or made, in as far as they may be changed."""
    flags = brief.task.flags
    before, after = _kernel_texts(brief.base, flags), _kernel_texts(begun.candidate, flags)
    touched = {name for name, text in after.items() if before.get(name) != text}
    # A launch may have changed and the kernel's text not.
    touched |= {step.site.partition("/")[0] for step in begun.steps} & set(after)
    if brief.only_kernel:
        touched -= set(before) - {brief.only_kernel}
    return touched


def _kernel_texts(candidate: Candidate, flags: tuple[str, ...]) -> dict[str, str]:
    units = [parsed(file.text, file.path, flags) for file in candidate.files if file.path.endswith(SUFFIXES)]
    return {kernel.name: unit.text_of(kernel.span) for unit in units for kernel in unit.kernels}


def _parts(begun: Proposal) -> tuple[Part, ...]:
    if begun.parts:
        return begun.parts
    return (Part(log_speedup=begun.predicted.log_speedup, triggers=begun.triggers),)


def _part(skill: Skill) -> Part:
    return Part(log_speedup=skill.prior.log_speedup, triggers=skill.triggers)
