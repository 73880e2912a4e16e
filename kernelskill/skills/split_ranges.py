"""Conditions that hold for one range of a loop's counter, and the loop in parts inside and outside that range."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import refuse_aliased_variables
from kernelskill.skills.approximations import is_defined
from kernelskill.skills.canonical import Canonical
from kernelskill.skills.clipped_bounds import conjuncts, guards_of, refuse_shape
from kernelskill.skills.expression_types import ExpressionTypes
from kernelskill.skills.invariant_conditions import CHOICES, LONGEST, condition_of, decided_body, has_one_type
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.linear_bounds import LinearForm, LinearReader, range_names
from kernelskill.skills.loop_edits import is_statement_of_block
from kernelskill.skills.loop_fusion import INDENT, margin_lines
from kernelskill.skills.loop_statements import local_values
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, find_loops
from kernelskill.source.syntax import Node, Span, walk
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class SplitLoop:
    """A loop and a condition that is one thing in a range of its counter and another outside."""

    loop: Loop
    condition: str
    choices: tuple[Node, ...]
    lows: tuple[LinearForm, ...]
    ends: tuple[LinearForm, ...]
    holds_inside: bool


def find_splits(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[SplitLoop]:
    """Yield the loops that such a condition may split."""
    for loop in find_loops(unit, kernel):
        groups = _groups(unit, kernel, loop, context)
        if not groups:
            continue
        try:
            refuse_shape(unit, kernel, loop)
            refuse_unclear(unit, kernel, loop.node, context)
            _refuse(unit, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        declarations = [node for node in walk(loop.body) if node.type == "declaration"]
        reader = LinearReader(unit, kernel, loop, local_values(unit, kernel, declarations))
        for nodes in groups.values():
            found = _read(unit, kernel, loop, reader, nodes)
            if found is not None:
                yield found


def _refuse(unit: SourceUnit, loop: Loop, context: SkillContext) -> None:
    where = f"the loop on line {loop.line}"
    if loop.has_break:
        raise SkillRefused(f"{where} can be left early")
    if loop.span.end - loop.span.start > LONGEST:
        raise SkillRefused(f"{where} is too long to stand several times")
    if any(node.type == "case_statement" for node in walk(loop.node)):
        raise SkillRefused(f"{where} has a switch")
    if is_defined(unit, "min", context) or is_defined(unit, "max", context):
        raise SkillRefused("the source defines min or max itself")


def _groups(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> dict[str, list[Node]]:
    """Return the choices of a loop by their condition, without tests that guard all that a turn does."""
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    form = Canonical(unit, kernel)
    guards = {guard.statement.id for guard in guards_of(unit, kernel, loop)[0]}
    found: dict[str, list[Node]] = {}
    for node in walk(loop.body):
        condition = condition_of(node) if node.type in CHOICES and node.id not in guards else None
        if condition is None or (node.type == "conditional_expression" and not has_one_type(types, node)):
            continue
        found.setdefault(form.of(condition), []).append(node)
    return found


def _read(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, reader: LinearReader, nodes: list[Node]
) -> SplitLoop | None:
    condition = condition_of(nodes[0])
    assert condition is not None
    for joiner, negated in (("&&", False), ("||", True)):
        leaves = conjuncts(unit, condition, joiner)
        bounds = [reader.bound(leaf, negated) for leaf in leaves]
        if None in bounds or (negated and len(leaves) == 1):
            continue
        try:
            refuse_aliased_variables(unit, kernel, condition)
        except SkillRefused:
            return None
        known = [bound for bound in bounds if bound is not None]
        lows = tuple(form for is_low, form in known if is_low)
        ends = tuple(form for is_low, form in known if not is_low)
        return SplitLoop(loop, clean_text(unit, condition), tuple(nodes), lows, ends, not negated)
    return None


def write_split(
    unit: SourceUnit, split: SplitLoop, context: SkillContext, edits: EditSet, *, is_wide: bool
) -> None:
    """Write the loop once for each part of its range."""
    loop = split.loop
    assert loop.start is not None
    assert loop.bound is not None
    names = range_names(unit, loop, split.lows, split.ends, context, is_wide=is_wide)
    start, last = clean_text(unit, loop.start), clean_text(unit, loop.bound)
    parts = [
        (names.first, f"< {names.end}" if split.ends else f"{loop.comparison} {last}", split.holds_inside)
    ]
    if split.lows:
        parts.insert(0, (start, f"< {names.first}", not split.holds_inside))
    if split.ends:
        parts.append((names.end, f"{loop.comparison} {last}", not split.holds_inside))
    place = loop.pragma_span.start if loop.pragma_span is not None else loop.span.start
    indent = unit.indent_of(Span(place, place))
    lines = list(names.lines)
    for first, test, outcome in parts:
        lines += _part(unit, split, first, test, outcome, indent)
    if not is_statement_of_block(loop.node):
        lines = ["{", *(f"{INDENT}{line}" if line else line for line in lines), "}"]
    edits.replace(Span(place, loop.span.end), f"\n{indent}".join(lines))


def _part(unit: SourceUnit, split: SplitLoop, first: str, test: str, outcome: bool, indent: str) -> list[str]:
    loop = split.loop
    update = loop.node.child_by_field_name("update")
    assert update is not None
    header = f"for (int {loop.variable} = {first}; {loop.variable} {test}; {clean_text(unit, update)})"
    body = decided_body(unit, loop, split.choices, outcome)
    text = body if body.startswith("{") else f"{{\n{indent}{INDENT}{body.strip()}\n{indent}}}"
    pragma = [loop.pragma] if loop.pragma else []
    return [*pragma, *margin_lines(f"{indent}{header} {text}")]
