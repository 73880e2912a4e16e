"""Find where a skill applies to a candidate, apply steps, and make proposals of the results."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelskill.schema.candidate import Candidate, Step
from kernelskill.schema.proposal import (
    Effect,
    Exactness,
    MetricChange,
    Proposal,
    Refusal,
    Skill,
    SkillParameter,
    needs,
)
from kernelskill.schema.task import Allowance, Promise
from kernelskill.skills.library import SkillLibrary
from kernelskill.skills.macro_names import without_macro_names
from kernelskill.skills.parsed_files import parsed, with_included_macros
from kernelskill.skills.result_check import check_result
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditConflict, LockedRegion, apply_edits
from kernelskill.source.unit import SourceUnit

SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".inl")
_STRICTNESS = (
    Exactness.EXACT,
    Exactness.ROUNDING,
    Exactness.REORDERS,
    Exactness.LOWER_PRECISION,
    Exactness.FAST_MATH,
)
_NEEDED = {
    # `--keep-exact` takes the permission to reorder away, and with it that to round otherwise.
    Exactness.ROUNDING: Allowance.REORDER,
    Exactness.REORDERS: Allowance.REORDER,
    Exactness.FAST_MATH: Allowance.FAST_MATH,
    Exactness.LOWER_PRECISION: Allowance.LOWER_PRECISION,
}


@dataclass(frozen=True)
class FoundStep:
    """One application that a skill offers."""

    step: Step
    site: Site
    path: str
    """File that holds the kernel."""


@dataclass(frozen=True)
class AppliedStep:
    """What a step, or several in a row, made of a candidate."""

    candidate: Candidate
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_steps(
    candidate: Candidate,
    skill: Skill,
    library: SkillLibrary,
    context: SkillContext,
    *,
    only_kernels: Collection[str] = (),
) -> tuple[list[FoundStep], list[Refusal]]:
    """Return every step that a skill offers on a candidate, and why it declined elsewhere.

    Steps of one site stand in the order of the parameters' values, the most promising first. A
    step can still be refused when it is applied.

    Args:
        candidate: The sources to change.
        skill: The skill to ask.
        library: Holds the skill's transformation.
        context: The task's promises and allowances.
        only_kernels: Names of the kernels to look at; empty for all.

    Raises:
        SkillError: The skill's `transform.py` cannot be loaded.
    """
    steps: list[FoundStep] = []
    refusals: list[Refusal] = []
    whole = _with_units(candidate, context)
    reason = _not_permitted(skill, context)
    for unit, kernel in _kernels(whole):
        if only_kernels and kernel.name not in only_kernels:
            continue
        declined = reason or _untouchable(unit, kernel, whole)
        if not declined:
            try:
                found = _steps_of(unit, kernel, skill, library, whole)
                declined = "" if found else "nothing in this kernel matches"
                steps.extend(found)
            except SkillRefused as refused:
                declined = refused.reason
        if declined:
            refusals.append(Refusal(skill=skill.id, kernel=kernel.name, reason=declined))
    return steps, refusals


def apply_step(candidate: Candidate, step: Step, library: SkillLibrary, context: SkillContext) -> AppliedStep:
    """Apply one step; its site is looked for again, so any candidate that still has it will do.

    Raises:
        SkillRefused: The site is gone, a precondition fails now, or the result fails its check.
        SkillError: The skill's `transform.py` cannot be loaded.
        UnknownNameError: The step names a skill that the library lacks.
    """
    skill = library.get(step.skill)
    reason = _not_permitted(skill, context)
    if reason:
        raise SkillRefused(reason)
    whole = _with_units(candidate, context)
    unit, site = _find_site(skill, step, library, whole)
    parameters = dict(step.parameters)
    _check_parameters(parameters, site.parameters or skill.parameters)
    try:
        rewrite = library.transformation(skill).rewrite(unit, site, parameters, whole)
        return _carry_out(candidate, without_macro_names(rewrite, whole.units))
    except (EditConflict, LockedRegion) as error:
        raise SkillRefused(error.message) from error


def combine(
    candidate: Candidate, steps: Iterable[Step], library: SkillLibrary, context: SkillContext
) -> AppliedStep:
    """Apply steps in order, each to the result of the one before.

    Raises:
        SkillRefused: One of them cannot be applied any more; the reason names it.
    """
    result = AppliedStep(candidate)
    for step in steps:
        try:
            applied = apply_step(result.candidate, step, library, context)
        except SkillRefused as refused:
            raise SkillRefused(f"{step.label}: {refused.reason}") from refused
        result = AppliedStep(
            applied.candidate,
            tuple(dict.fromkeys((*result.assumptions, *applied.assumptions))),
            tuple(dict.fromkeys((*result.notes, *applied.notes))),
        )
    return result


def make_proposal(
    base: Candidate,
    steps: Sequence[Step],
    library: SkillLibrary,
    context: SkillContext,
    *,
    origin: Literal["mechanical", "combined", "user"] = "mechanical",
    reason: str = "",
) -> Proposal:
    """Apply a chain of steps to a base and return the result as a proposal.

    Raises:
        SkillRefused: A step cannot be applied, or the chain changes nothing.
    """
    applied = combine(base, steps, library, context)
    if applied.candidate.digest == base.digest:
        raise SkillRefused("the source already is what the steps would make of it")
    skills = [library.get(step.skill) for step in steps]
    rationale = reason or "; ".join(dict.fromkeys(skill.title for skill in skills))
    return Proposal(
        base=base.digest,
        candidate=applied.candidate,
        specialist=skills[0].specialist,
        origin=origin,
        steps=tuple(steps),
        predicted=_predicted(list(dict.fromkeys(skills))),
        predicted_metrics=_predicted_metrics(skills),
        exactness=strictest([skill.exactness for skill in skills]),
        assumptions=applied.assumptions,
        rationale=rationale,
        triggers=tuple(dict.fromkeys(trigger for skill in skills for trigger in skill.triggers)),
    )


def strictest(levels: Iterable[Exactness]) -> Exactness:
    """Return the level that covers all of them: what asks most of the user's permission."""
    return max(levels, key=_STRICTNESS.index, default=Exactness.EXACT)


def _predicted(skills: Sequence[Skill]) -> Effect:
    mean = sum(skill.prior.log_speedup for skill in skills)
    variance = sum(skill.prior.deviation**2 for skill in skills)
    return Effect(log_speedup=mean, deviation=float(variance**0.5))


def _predicted_metrics(skills: Sequence[Skill]) -> tuple[MetricChange, ...]:
    """Return what the skills predict; nothing for a metric that two of them would move apart."""
    predicted = [
        change.model_copy(update={"skill": skill.id})
        for skill in dict.fromkeys(skills)
        for change in skill.predicts
    ]
    directions: dict[str, set[str]] = {}
    for change in predicted:
        directions.setdefault(change.metric, set()).add(change.direction)
    return tuple(change for change in predicted if len(directions[change.metric]) == 1)


def _with_units(candidate: Candidate, context: SkillContext) -> SkillContext:
    flags = context.task.flags if context.task is not None else ()
    units = tuple(
        parsed(file.text, file.path, flags) for file in candidate.files if file.path.endswith(SUFFIXES)
    )
    return replace(context, units=with_included_macros(units), scheduled=candidate.scheduled)


def _kernels(context: SkillContext) -> list[tuple[SourceUnit, KernelDef]]:
    return [(unit, kernel) for unit in context.units for kernel in unit.kernels]


def _not_permitted(skill: Skill, context: SkillContext) -> str:
    """Return why the user's promises and allowances rule the skill out; empty if they do not."""
    if not skill.mechanical:
        return "only a model can apply it"
    for promise in skill.promises:
        if not context.promises(Promise(promise)):
            return f"{needs(Promise(promise))} in the tests"
    needed = _NEEDED.get(skill.exactness)
    if needed is None or context.allows(needed):
        return ""
    if context.task is None and needed is Allowance.REORDER:
        return ""  # the default of a task
    return f'it may change results ({skill.exactness}) and ALLOW lacks "{needed}"'


def _untouchable(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> str:
    """Return why a kernel must be left alone; empty if it may be changed."""
    if kernel.is_opaque:
        return kernel.opaque_reason
    if unit.is_locked(kernel.span):
        return "it lies in a region under `// kernelskill: off`"
    fast = context.emitted_with(unit.path, kernel.name, unit.text_of(kernel.span))
    if fast:
        return f"it stands in only where the arrays of {fast} overlap"
    same = [other for _, other in _kernels(context) if other.name == kernel.name]
    return f"{len(same)} kernels are named {kernel.name!r}" if len(same) > 1 else ""


def _steps_of(
    unit: SourceUnit, kernel: KernelDef, skill: Skill, library: SkillLibrary, context: SkillContext
) -> list[FoundStep]:
    found = []
    for site in library.transformation(skill).sites(unit, kernel, context):
        for parameters in _combinations(site.parameters or skill.parameters):
            step = Step(skill=skill.id, site=site.key, parameters=parameters)
            found.append(FoundStep(step=step, site=site, path=unit.path))
    return found


def _combinations(parameters: Sequence[SkillParameter]) -> Iterable[tuple[tuple[str, str], ...]]:
    names = [parameter.name for parameter in parameters]
    for values in itertools.product(*(parameter.values for parameter in parameters)):
        yield tuple(sorted(zip(names, values, strict=True)))


def _find_site(
    skill: Skill, step: Step, library: SkillLibrary, context: SkillContext
) -> tuple[SourceUnit, Site]:
    name = step.site.split("/", 1)[0]
    holders = [(unit, kernel) for unit, kernel in _kernels(context) if kernel.name == name]
    if not holders:
        raise SkillRefused(f"kernel {name!r} is gone")
    unit, kernel = holders[0]
    reason = _untouchable(unit, kernel, context)
    if reason:
        raise SkillRefused(reason)
    for site in library.transformation(skill).sites(unit, kernel, context):
        if site.key == step.site:
            return unit, site
    raise SkillRefused(f"site {step.site!r} is gone")


def _check_parameters(given: dict[str, str], known: Sequence[SkillParameter]) -> None:
    expected = {parameter.name: parameter.values for parameter in known}
    if set(given) != set(expected):
        raise SkillRefused(f"parameters {sorted(given)} given, {sorted(expected)} expected")
    for name, value in given.items():
        if value not in expected[name]:
            raise SkillRefused(f"{name}={value!r} is not one of {', '.join(expected[name])}")


def _carry_out(candidate: Candidate, rewrite: Rewrite) -> AppliedStep:
    if not rewrite.edits:
        raise SkillRefused("nothing to change")
    result = apply_edits(candidate, rewrite.edits)
    check_result(candidate, result)
    if rewrite.scheduled is not None:
        result = result.with_schedule(rewrite.scheduled)
    return AppliedStep(result, rewrite.assumptions, rewrite.notes)
