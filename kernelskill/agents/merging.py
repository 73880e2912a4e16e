"""Combine accepted changes of one base where a model wrote some: as text, and mechanical skills applied again."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.agents.changes import ChangeRefused, require_kept
from kernelskill.agents.specialist import combined
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.proposal import Proposal, Refusal
from kernelskill.skills.apply import combine, strictest
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.edits import EditConflict, LockedRegion, merge_candidates

_COMBINED = "combined"


def combined_changes(
    base: Candidate,
    first: Proposal,
    others: Sequence[Proposal],
    library: SkillLibrary,
    context: SkillContext,
) -> Proposal | Refusal:
    """Return what several accepted changes of a base make together.

    Where all are mechanical, the others are applied again to the result of the first. Changes that a
    model wrote are merged as text by source ranges, and the mechanical ones applied to the result.

    Args:
        base: What all of them start from.
        first: The one that gained most; the proposal is to beat it.
        others: The rest, the larger gain first.
        library: Holds the skills.
        context: The task's promises and allowances.
    """
    group = [first, *others]
    if all(proposal.steps for proposal in group):
        return combined(first, others, library, context)
    written = [proposal for proposal in group if not proposal.steps]
    try:
        candidate = written[0].candidate
        for proposal in written[1:]:
            candidate = merge_candidates(base, candidate, proposal.candidate)
        if context.task is not None:
            require_kept(base, candidate, context.task.signature)
    except (EditConflict, LockedRegion) as error:
        return _refused(written[-1], error.message)
    except ChangeRefused as refused:
        return _refused(written[-1], refused.reason)
    steps = [step for proposal in group for step in proposal.steps]
    try:
        applied = combine(candidate, steps, library, context)
    except SkillRefused as refused:
        return _refused(first, refused.reason)
    if applied.candidate.digest in {first.candidate.digest, base.digest}:
        return _refused(first, "together they make what one of them makes alone")
    assumed = [a for proposal in group for a in proposal.assumptions]
    return first.model_copy(
        update={
            "base": first.candidate.digest,
            "candidate": applied.candidate,
            "origin": _COMBINED,
            "steps": tuple(step for proposal in others for step in proposal.steps),
            "exactness": strictest([proposal.exactness for proposal in group]),
            "assumptions": tuple(dict.fromkeys((*assumed, *applied.assumptions))),
            "rationale": f"together with {first.label}",
            "title": " + ".join(proposal.label for proposal in others),
            "choices": (),
            "parts": (),
            "request": "",
        }
    )


def _refused(proposal: Proposal, reason: str) -> Refusal:
    return Refusal(skill=proposal.label, kernel=proposal.kernel, reason=reason)
