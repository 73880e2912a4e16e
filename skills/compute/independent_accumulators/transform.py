"""Sum into several accumulators by taking several turns of a loop at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import BARRIERS, fresh_name, macros_in, words_in
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_unsigned, plain_type
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, LoopKind, find_loop, find_loops, loop_body_statements
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, span_of, walk
from kernelskill.source.unit import SourceUnit

_MIN_TURNS = 8


@dataclass(frozen=True)
class _Plan:
    """A loop and the sums that it forms."""

    loop: Loop
    counter: str
    counter_type: str
    sums: tuple[tuple[str, str], ...]
    """Name and type of each accumulator."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every innermost counted loop that sums."""
    found, refusals = [], []
    for loop in find_loops(unit, kernel):
        if not loop.is_innermost:
            continue
        try:
            plan = _plan(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        names = ", ".join(name for name, _ in plan.sums)
        reason = f"line {loop.line}: each addition to {names} waits for the one before"
        found.append(Site(key=f"{kernel.name}/{loop.key}", kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused(refusals[0] if refusals else "it has no loop")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the main loop, the remainder loop and the final sums."""
    kernel = unit.kernel(site.kernel)
    loop = find_loop(unit, kernel, site.key.split("/", 1)[1]) if kernel is not None else None
    if kernel is None or loop is None:
        raise SkillRefused(f"site {site.key!r} is gone")
    plan = _plan(unit, kernel, loop, context)
    text = _loop_text(unit, plan, int(parameters["accumulators"]), context)
    start = loop.pragma_span.start if loop.pragma_span is not None else loop.span.start
    edits = EditSet(unit).replace(Span(start, loop.span.end), text)
    return Rewrite(edits=edits.edits)


def _plan(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> _Plan:
    where = f"the loop on line {loop.line}"
    declared, start = loop.declared, loop.start
    if loop.kind is not LoopKind.FOR or not loop.is_counted or loop.comparison != "<" or start is None:
        raise SkillRefused(f"{where} is not `for (i = a; i < b; i += c)`")
    if not isinstance(declared, VariableDef) or not loop.span.contains(declared.name_span):
        raise SkillRefused(f"{where} declares its counter elsewhere")
    if loop.step_operator != "+" or loop.step_value != 1:
        raise SkillRefused(f"{where} does not count by one")
    if loop.has_break or loop.has_continue or loop.has_return or loop.has_barrier:
        raise SkillRefused(f"{where} can be left or synchronises")
    if loop.trip_count is not None and loop.trip_count < _MIN_TURNS:
        raise SkillRefused(f"{where} is short")
    counter_type = plain_type(declared.base_type)
    if not is_unsigned(counter_type) and (loop.start_value is None or loop.start_value < 0):
        raise SkillRefused(f"{where} may start below zero")
    bound_type = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context)).of(loop.bound)
    if not is_integer(counter_type) or not is_integer(bound_type):
        raise SkillRefused(f"{where} does not count in integers of known type")
    if is_unsigned(counter_type) != is_unsigned(bound_type) and is_unsigned(bound_type):
        raise SkillRefused(f"{where} compares signed with unsigned")
    _refuse_hidden(unit, loop, context)
    sums = _sums(unit, kernel, loop)
    if not sums:
        raise SkillRefused(f"{where} forms no sum in a local variable that it uses nowhere else")
    return _Plan(loop, declared.name, declared.base_type, sums)


def _refuse_hidden(unit: SourceUnit, loop: Loop, context: SkillContext) -> None:
    words = words_in(unit, loop.node)
    if set(words) & (BARRIERS | {"static", "goto"}):
        raise SkillRefused(f"the loop on line {loop.line} does more than compute")
    for macro in macros_in(unit, words, context):
        if "=" in macro.possible or loop.variable in macro.possible.split():
            raise SkillRefused(f"macro {macro.name!r} may change a variable of the loop")
    if any(node.type in ("preproc_call", "preproc_if", "labeled_statement") for node in walk(loop.body)):
        raise SkillRefused(f"the loop on line {loop.line} holds a directive or label")


def _sums(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> tuple[tuple[str, str], ...]:
    """Return the local variables that the body only adds to."""
    flow = flow_of(unit, kernel)
    uses: dict[int, list[Node]] = {}
    for node in walk(loop.node):
        declared = flow.resolve(node) if node.type == "identifier" else None
        if declared is not None:
            uses.setdefault(id(declared), []).append(node)
    found = []
    for variable in kernel.locals:
        nodes = uses.get(id(variable), [])
        kind = plain_type(variable.base_type)
        plain = not variable.pointer_depth and not variable.dimensions and not variable.is_reference
        outside = not loop.span.contains(variable.name_span)
        if not nodes or not plain or not outside or kind not in ("float", "double", "int", "unsigned"):
            continue
        if any(write.operator in ("&", "asm", "lambda") for write in flow.writes_to(variable)):
            continue
        if variable.storage.value == "local" and len(nodes) == 1 and _is_sum(unit, nodes[0], loop):
            found.append((variable.name, kind))
    return tuple(found)


def _is_sum(unit: SourceUnit, node: Node, loop: Loop) -> bool:
    """Whether a use is the target of `s += e;` or `s -= e;` as a statement of the body."""
    parent = node.parent
    if parent is None or parent.type != "assignment_expression" or parent.child_by_field_name("left") != node:
        return False
    statement = parent.parent
    if unit.operator(parent) not in ("+=", "-=") or statement is None:
        return False
    return statement.type == "expression_statement" and loop.body_span.contains(span_of(statement))


def _loop_text(unit: SourceUnit, plan: _Plan, count: int, context: SkillContext) -> str:
    loop, counter = plan.loop, plan.counter
    assert loop.start is not None
    assert loop.bound is not None
    indent = unit.indent_of(loop.node)
    taken: list[str] = []
    names: dict[str, list[str]] = {}
    for name, _ in plan.sums:
        for index in range(1, count):
            fresh = fresh_name(unit, context, f"{name}_{index}", taken)
            taken.append(fresh)
            names.setdefault(name, []).append(fresh)
    bound = unit.text_of(loop.bound)
    bound = bound if loop.bound.type in ("identifier", "number_literal") else f"({bound})"
    lines = [f"{kind} {', '.join(f'{n} = 0' for n in names[name])};" for name, kind in plan.sums]
    lines.append(f"{plan.counter_type} {counter} = {unit.text_of(loop.start)};")
    head = f"for (; {counter} < {bound} && {bound} - {counter} > {count - 1}; {counter} += {count}) {{"
    lines.append(head)
    for index in range(count):
        lines.append(
            "    "
            + _turn(unit, plan, index, {n: names[n][index - 1] for n in names} if index else {}, context)
        )
    lines.append("}")
    lines.append(f"for (; {counter} < {bound}; ++{counter}) {unit.text_of(loop.body)}")
    lines += [f"{name} += {_balanced(names[name])};" for name, _ in plan.sums]
    body = f"\n{indent}    ".join(lines)
    return f"{{\n{indent}    {body}\n{indent}}}"


def _turn(unit: SourceUnit, plan: _Plan, index: int, sums: dict[str, str], context: SkillContext) -> str:
    """Return the body for one of the turns, with its own counter and sums."""
    renamed = dict(sums)
    opening = "{"
    if index:
        own = fresh_name(unit, context, f"{plan.counter}_{index}")
        renamed[plan.counter] = own
        opening = f"{{ const {plan.counter_type} {own} = {plan.counter} + {index};"
    statements = [_renamed(unit, node, renamed) for node in loop_body_statements(plan.loop)]
    return f"{opening} {' '.join(statements)} }}"


def _renamed(unit: SourceUnit, node: Node, names: Mapping[str, str]) -> str:
    text, position = "", node.start_byte
    for entry in walk(node):
        if entry.type == "comment":
            text += unit.text_of(Span(position, entry.start_byte))
            position = entry.end_byte
        elif entry.type == "identifier" and unit.text_of(entry) in names:
            text += unit.text_of(Span(position, entry.start_byte)) + names[unit.text_of(entry)]
            position = entry.end_byte
    return text + unit.text_of(Span(position, node.end_byte))


def _balanced(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    middle = len(names) // 2
    left, right = (_balanced(half) for half in (names[:middle], names[middle:]))
    return f"({left} + {right})" if len(names) > 1 else left
