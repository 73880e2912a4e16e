"""Keep an element that a loop updates in a local variable for the length of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import (
    entry_condition,
    is_invariant,
    is_unconditional,
    statement_siblings_before,
    visible_accesses,
)
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, AccessMode
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.syntax import Node, walk
from kernelskill.source.unit import SourceUnit

_CHANGING = frozenset({"assignment_expression", "update_expression", "call_expression"})


@dataclass(frozen=True)
class _Plan:
    """How one element of one loop is kept."""

    loop: Loop
    element: str
    """Text of the element."""
    element_type: str
    base: str
    uses: tuple[Access, ...]
    """Every access to the element inside the loop."""
    condition: str
    """Test under which the loop and the load are put; empty where none is needed."""
    stores_each: bool
    """Whether the element is still stored in every turn, for others that may read it."""
    assumptions: tuple[str, ...]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every element that a loop updates and that can be kept."""
    found: list[Site] = []
    refusals: list[str] = []
    for loop in find_loops(unit, kernel):
        for text in _updated_elements(unit, kernel, loop, context, refusals):
            key = f"{kernel.name}/{loop.key}/{''.join(text.split())}"
            try:
                _plan(unit, kernel, loop, text, context)
            except SkillRefused as refused:
                refusals.append(refused.reason)
                continue
            reason = f"line {loop.line}: the loop reads and writes {text} in global memory in every turn"
            found.append(Site(key=key, kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "no loop updates an element at a fixed index")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Load before the loop, update the local variable, store after it."""
    kernel = unit.kernel(site.kernel)
    for loop in find_loops(unit, kernel) if kernel is not None else ():
        for text in _updated_elements(unit, kernel, loop, context, []) if kernel is not None else ():
            if kernel is not None and f"{kernel.name}/{loop.key}/{''.join(text.split())}" == site.key:
                return _write(unit, _plan(unit, kernel, loop, text, context), context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _updated_elements(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext, refusals: list[str]
) -> list[str]:
    """Return the texts of elements at a fixed index that a loop both reads and writes."""
    try:
        accesses = visible_accesses(unit, kernel, loop, context)
    except SkillRefused as refused:
        refusals.append(refused.reason)
        return []
    texts: dict[str, set[str]] = {}
    for access in accesses:
        plain = access.is_global and access.mode is not AccessMode.ATOMIC and not access.member
        if plain and _is_fixed(unit, kernel, access, loop):
            modes = texts.setdefault(unit.text_of(access.node), set())
            modes |= {"r"} if access.mode.reads else set()
            modes |= {"w"} if access.mode.writes else set()
    return [text for text, modes in texts.items() if modes == {"r", "w"}]


def _is_fixed(unit: SourceUnit, kernel: KernelDef, access: Access, loop: Loop) -> bool:
    parts = [*access.indices]
    argument = access.node.child_by_field_name("argument")
    if argument is None:
        return False
    parts.append(argument)
    return all(is_invariant(unit, kernel, part, loop.span) for part in parts)


def _plan(unit: SourceUnit, kernel: KernelDef, loop: Loop, text: str, context: SkillContext) -> _Plan:
    accesses = visible_accesses(unit, kernel, loop, context)
    uses = [access for access in accesses if unit.text_of(access.node) == text]
    element = uses[0]
    if not element.element_type or element.root is None:
        raise SkillRefused(f"what {text} points into can't be told")
    if loop.has_return or any(node.type == "goto_statement" for node in walk(loop.node)):
        raise SkillRefused(f"the loop on line {loop.line} can leave the kernel")
    if any(not loop.body_span.contains(access.span) for access in uses):
        raise SkillRefused(f"the head of the loop on line {loop.line} uses {text}")
    assumptions: list[str] = []
    stores_each = False
    for other in accesses:
        if other in uses:
            continue
        answer = separate(unit, kernel, element, other, context)
        if answer.disjoint:
            assumptions += [answer.assumption] if answer.assumption else []
        elif other.mode is AccessMode.READ:
            stores_each = True
        else:
            raise SkillRefused(f"line {other.line} writes {unit.text_of(other.node)}, which may be {text}")
    if stores_each and _only_stores(unit, uses):
        raise SkillRefused("nothing would be saved")
    certain = _is_certain(unit, kernel, loop, text)
    first = next((access for access in uses if is_unconditional(unit, loop, access.node)), None)
    if not certain and first is None:
        raise SkillRefused(f"the loop on line {loop.line} may never access {text}")
    condition = "" if certain else entry_condition(unit, kernel, loop)
    return _Plan(
        loop=loop,
        element=text,
        element_type=element.element_type,
        base=element.base,
        uses=tuple(uses),
        condition="" if condition == "true" else condition,
        stores_each=stores_each,
        assumptions=tuple(dict.fromkeys(() if stores_each else assumptions)),
    )


def _only_stores(unit: SourceUnit, uses: list[Access]) -> bool:
    return all(access.mode is AccessMode.WRITE for access in uses)


def _is_certain(unit: SourceUnit, kernel: KernelDef, loop: Loop, text: str) -> bool:
    """Whether a statement right before the loop, in the same block, accesses the element."""
    for statement in statement_siblings_before(loop.node):
        if statement.type == "expression_statement":
            for node in walk(statement):
                if node.type == "assignment_expression" and node.parent == statement:
                    target = node.child_by_field_name("left")
                    return target is not None and unit.text_of(target) == text
            return False
        if statement.type != "declaration" or any(node.type in _CHANGING for node in walk(statement)):
            return False
    return False


def _write(unit: SourceUnit, plan: _Plan, context: SkillContext) -> Rewrite:
    edits = EditSet(unit)
    name = fresh_name(unit, context, f"{plan.base}_sum")
    for access in plan.uses:
        _replace_use(unit, edits, access, name, plan)
    load = f"{plan.element_type} {name} = {plan.element};"
    after = [] if plan.stores_each else [f"{plan.element} = {name};"]
    surround_loop(unit, edits, plan.loop, [load], after, plan.condition)
    return Rewrite(edits=edits.edits, assumptions=plan.assumptions)


def _replace_use(unit: SourceUnit, edits: EditSet, access: Access, name: str, plan: _Plan) -> None:
    parent: Node | None = access.node.parent
    if not plan.stores_each or access.mode is AccessMode.READ or parent is None:
        edits.replace(access.node, name)
        return
    # `y[i] += e` becomes `y[i] = (y_sum += e)`: others still see each partial result.
    edits.insert_before(parent, f"{plan.element} = (")
    edits.replace(access.node, name)
    edits.insert_after(parent, ")")
