"""Move loads and function calls that a loop doesn't change in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import (
    entry_condition,
    is_invariant,
    is_unconditional,
    visible_accesses,
)
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.syntax import Node, named, span_of, walk
from kernelskill.source.unit import SourceUnit

_CHEAP = frozenset({"fabs", "fabsf", "abs", "max", "min", "fmax", "fmaxf", "fmin", "fminf", "fma", "fmaf"})


@dataclass(frozen=True)
class _Plan:
    """One expression to keep."""

    loop: Loop
    text: str
    kind: str
    """C type of the constant."""
    stem: str
    places: tuple[Node, ...]
    condition: str
    assumptions: tuple[str, ...] = ()


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every invariant load and call that may move."""
    refusals: list[str] = []
    found = []
    for plan in _plans(unit, kernel, context, refusals):
        reason = f"line {plan.loop.line}: {plan.text} has one value in all turns of the loop"
        found.append(Site(key=_key(kernel, plan.loop, plan.text), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no loop loads or computes the same value again")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Declare a constant before the loop and use it inside."""
    kernel = unit.kernel(site.kernel)
    for plan in _plans(unit, kernel, context, []) if kernel is not None else ():
        if kernel is not None and _key(kernel, plan.loop, plan.text) == site.key:
            return _write(unit, plan, context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, loop: Loop, text: str) -> str:
    return f"{kernel.name}/{loop.key}/{''.join(text.split())}"


def _plans(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[_Plan]:
    for loop in find_loops(unit, kernel):
        yield from _call_plans(unit, kernel, loop, context)
        try:
            accesses = visible_accesses(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        texts = dict.fromkeys(unit.text_of(a.node) for a in accesses if _is_candidate(unit, kernel, a, loop))
        for text in texts:
            try:
                yield _load_plan(unit, kernel, loop, text, accesses, context)
            except SkillRefused as refused:
                refusals.append(refused.reason)


def _is_candidate(unit: SourceUnit, kernel: KernelDef, access: Access, loop: Loop) -> bool:
    argument = access.node.child_by_field_name("argument")
    if access.mode is not AccessMode.READ or not access.is_global or access.member or argument is None:
        return False
    if access.node.type not in ("subscript_expression", "pointer_expression"):
        return False
    return all(is_invariant(unit, kernel, part, loop.span) for part in (argument, *access.indices))


def _load_plan(
    unit: SourceUnit,
    kernel: KernelDef,
    loop: Loop,
    text: str,
    accesses: list[Access],
    context: SkillContext,
) -> _Plan:
    same = [access for access in accesses if unit.text_of(access.node) == text]
    inside = [access for access in same if loop.body_span.contains(access.span)]
    load = next((a for a in inside if is_unconditional(unit, loop, a.node)), None)
    if load is None or not load.element_type or load.root is None:
        raise SkillRefused(f"line {loop.line}: not every turn certainly loads {text}")
    assumptions: list[str] = []
    for other in accesses:
        if other.mode.writes:
            answer = separate(unit, kernel, load, other, context)
            if not answer.disjoint:
                raise SkillRefused(
                    f"line {other.line} writes {unit.text_of(other.node)}, which may be {text}"
                )
            assumptions += [answer.assumption] if answer.assumption else []
    condition = entry_condition(unit, kernel, loop)
    places = tuple(access.node for access in inside if access.mode is AccessMode.READ)
    stem = f"{load.base}_value"
    return _Plan(loop, text, load.element_type, stem, places, condition, tuple(dict.fromkeys(assumptions)))


def _call_plans(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> Iterator[_Plan]:
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    seen: set[str] = set()
    for node in walk(loop.body):
        listed = node.child_by_field_name("arguments") if node.type == "call_expression" else None
        name = called_name(unit, node) if listed is not None else ""
        kind = types.of(node) if listed is not None else None
        if listed is None or name in _CHEAP or kind not in ("float", "double") or not is_pure(unit, node):
            continue
        function = node.child_by_field_name("function")
        is_cast = function is not None and function.type in ("primitive_type", "template_function")
        text = unit.text_of(node)
        if is_cast or text in seen or not named(listed):
            continue
        if all(is_invariant(unit, kernel, argument, loop.span) for argument in named(listed)):
            seen.add(text)
            places = [n for n in walk(loop.body) if n.type == node.type and unit.text_of(n) == text]
            yield _Plan(loop, text, str(kind), f"{name}_value", tuple(places), "true")


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    edits = EditSet(unit)
    name = fresh_name(unit, context, plan.stem)
    spans = [span_of(place) for place in plan.places]
    for span in dict.fromkeys(spans):
        edits.replace(span, name)
    nothing = "0" if " " in plan.kind else f"{plan.kind}()"  # `long long()` is no expression
    value = plan.text if plan.condition == "true" else f"{plan.condition} ? {plan.text} : {nothing}"
    surround_loop(unit, edits, plan.loop, [f"const {plan.kind} {name} = {value};"], [])
    return Rewrite(edits=edits.edits, assumptions=plan.assumptions)
