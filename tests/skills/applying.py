"""Apply a skill to a text and look at the result."""

from __future__ import annotations

from kernelskill.resources import data_folder
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Promise
from kernelskill.skills.apply import apply_step, find_steps
from kernelskill.skills.library import SkillLibrary
from kernelskill.source.edits import unified_diff
from tests.skills.contexts import context_for

LIBRARY = SkillLibrary.load([data_folder("skills")])


def rewritten(skill: str, source: str, **points: tuple[str, ...]) -> list[str]:
    """Return what a skill makes of a text whose launcher is `f`, at several points: the values of each parameter in turn."""
    candidate, context = Candidate.of("k.cu", {"k.cu": source}), context_for("f")
    found, refused = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)
    assert found, [refusal.reason for refusal in refused]
    steps = {tuple(dict(entry.step.parameters)[name] for name in points): entry.step for entry in found}
    wanted = zip(*points.values(), strict=True)
    return [apply_step(candidate, steps[point], LIBRARY, context).candidate.source for point in wanted]


def changed_lines(skill: str, source: str, *promises: Promise, at: int = 0, **parameters: str) -> list[str]:
    """Return the lines, without indentation, that one step takes away (`-`) and puts in (`+`).

    Args:
        skill: Id of the skill.
        source: Text of the file; its launcher is `f`.
        promises: What the user promises.
        at: Which of the offered sites to take.
        parameters: Values that the step must have.
    """
    candidate = Candidate.of("k.cu", {"k.cu": source})
    context = context_for("f", *promises)
    found, refusals = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context)
    wanted = [entry for entry in found if set(parameters.items()) <= set(entry.step.parameters)]
    sites = list(dict.fromkeys(entry.site.key for entry in wanted))
    assert sites, [refusal.reason for refusal in refusals]
    step = next(entry.step for entry in wanted if entry.site.key == sites[at])
    result = apply_step(candidate, step, LIBRARY, context).candidate
    lines = unified_diff(candidate, result).splitlines()[2:]
    return [f"{line[0]} {line[1:].strip()}" for line in lines if line[0] in "+-"]


def refusals(skill: str, source: str, *promises: Promise) -> list[str]:
    """Return why a skill declines every kernel of a text."""
    candidate = Candidate.of("k.cu", {"k.cu": source})
    found, declined = find_steps(candidate, LIBRARY.get(skill), LIBRARY, context_for("f", *promises))
    assert not found, [entry.step.label for entry in found]
    return [refusal.reason for refusal in declined]
