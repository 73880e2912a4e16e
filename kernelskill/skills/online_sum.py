"""A maximum and the sum of exponentials relative to it, taken in one pass instead of two."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import (
    LoopPair,
    counter_type,
    refuse_aliased_variables,
    refuse_lost_counter,
    refuse_other_range,
    used_variables,
    written_variables,
)
from kernelskill.skills.canonical import Canonical
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.disjoint import separate
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.loop_fusion import is_never_zero, replace_body
from kernelskill.skills.loop_statements import (
    addition,
    expression_of,
    local_values,
    maximum,
    named_variable,
    split_body,
)
from kernelskill.skills.plain_code import accesses_in, refuse_unclear
from kernelskill.skills.text_changes import clean_text, uses_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.affine import index_reader
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import flow_of, range_nodes
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_EXPONENTIALS = frozenset({"expf", "exp", "exp2f", "exp2", "exp10f", "exp10", "__expf", "__exp10f"})


@dataclass(frozen=True)
class OnlineSum:
    """A loop that takes a maximum, and the next one that sums exponentials of the distance to it."""

    pair: LoopPair
    kind: str
    """`float` or `double`: the type of the elements and their maximum."""
    total_kind: str
    """Type of the sum."""
    maximum: VariableDef
    value: Node
    """What the first loop takes the maximum of."""
    total: VariableDef
    sum_statement: Node
    call: Node
    """The exponential in the second loop."""
    distance: Node
    """The difference from the maximum inside it."""
    start: Node | None
    """Start of the second loop where the first one takes its first element before it."""
    keeps_second: bool
    """Whether the second loop does more than the sum."""
    assumptions: tuple[str, ...]


def read_online_sum(unit: SourceUnit, kernel: KernelDef, pair: LoopPair, context: SkillContext) -> OnlineSum:
    """Return how two loops form a maximum and a sum of exponentials.

    Raises:
        SkillRefused: They do something else, or what they do can't be done in one pass.
    """
    for loop in (pair.first, pair.second):
        refuse_unclear(unit, kernel, loop.node, context)
        refuse_aliased_variables(unit, kernel, loop.node)
        if loop.has_break or loop.has_return or loop.has_continue:
            raise SkillRefused(f"the loop on line {loop.line} skips or leaves turns")
    largest, value = _read_maximum(unit, kernel, pair.first)
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    kind = str(types.of(value))
    if kind not in ("float", "double") or types.of_name(largest.name, value) != kind:
        raise SkillRefused(f"the maximum on line {pair.first.line} is not of float or double")
    forms = [
        Canonical(
            unit, kernel, pair.canonical(unit, kernel).placeholders, local_values(unit, kernel, declared)
        )
        for declared in (split_body(pair.first)[0], split_body(pair.second)[0])
    ]
    total, statement, call = _read_sum(unit, kernel, pair.second, types, kind)
    distance = _distance(unit, kernel, pair, call, largest, forms[1].of(call))
    left, right = distance.child_by_field_name("left"), distance.child_by_field_name("right")
    assert left is not None
    if named_variable(unit, kernel, right) is not largest or forms[1].of(left) != forms[0].of(value):
        raise SkillRefused(
            f"line {unit.line_of(call)}: the exponential is not of the elements minus their maximum"
        )
    start = _other_start(unit, kernel, pair, largest, value, forms[0])
    if start is None:
        refuse_other_range(unit, kernel, pair)
    keeps = _keeps_second(unit, kernel, pair, total, statement)
    if not keeps:
        refuse_lost_counter(pair)
    assumptions = _refuse_changes(unit, kernel, pair, (largest, total), statement, call, context)
    total_kind = str(types.of_name(total.name, statement))
    return OnlineSum(
        pair, kind, total_kind, largest, value, total, statement, call, distance, start, keeps, assumptions
    )


def _read_maximum(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> tuple[VariableDef, Node]:
    declarations, rest = split_body(loop)
    found = maximum(unit, kernel, rest[0]) if len(rest) == 1 else None
    if found is None or not all(_is_pure_declaration(unit, entry) for entry in declarations):
        raise SkillRefused(f"the loop on line {loop.line} does not just take a maximum")
    largest, value = found
    outside = (
        not loop.span.contains(largest.name_span) and not largest.dimensions and not largest.pointer_depth
    )
    if not outside or largest.storage.value != "local" or not is_pure(unit, value):
        raise SkillRefused(
            f"the maximum of the loop on line {loop.line} is no local variable of plain values"
        )
    if uses_of(unit, kernel, value, largest):
        raise SkillRefused(f"the loop on line {loop.line} compares the maximum with itself")
    return largest, value


def _is_pure_declaration(unit: SourceUnit, declaration: Node) -> bool:
    values = [
        child.child_by_field_name("value") for child in declaration.children_by_field_name("declarator")
    ]
    return all(value is not None and is_pure(unit, value) for value in values)


def _read_sum(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, types: ExpressionTypes, kind: str
) -> tuple[VariableDef, Node, Node]:
    """Return the variable that sums exponentials, the statement that does it, and the exponential."""
    declarations, rest = split_body(loop)
    values = local_values(unit, kernel, declarations)
    found: list[tuple[VariableDef, Node, Node]] = []
    for statement in rest:
        parts = addition(unit, statement)
        target = named_variable(unit, kernel, parts[0]) if parts is not None else None
        call = _exponential(unit, kernel, parts[1], rest, values, types, kind) if parts is not None else None
        if isinstance(target, VariableDef) and call is not None:
            found.append((target, statement, call))
    if len(found) != 1:
        raise SkillRefused(f"the loop on line {loop.line} does not sum exponentials in one variable")
    total, statement, call = found[0]
    plain = not loop.span.contains(total.name_span) and not total.dimensions and not total.pointer_depth
    if (
        not plain
        or total.storage.value != "local"
        or types.of_name(total.name, statement) not in (kind, "double")
    ):
        raise SkillRefused(
            f"the sum of the loop on line {loop.line} is no local variable of type {kind} or double"
        )
    if len(uses_of(unit, kernel, loop.node, total)) != len(uses_of(unit, kernel, statement, total)):
        raise SkillRefused(f"the loop on line {loop.line} also uses {total.name!r}")
    return total, statement, call


def _exponential(
    unit: SourceUnit,
    kernel: KernelDef,
    node: Node,
    statements: list[Node],
    values: dict[int, Node],
    types: ExpressionTypes,
    kind: str,
) -> Node | None:
    """Return the call whose value an addend has: written there, kept in a local or just stored."""
    node = strip_parentheses(node)
    declared = named_variable(unit, kernel, node)
    if declared is not None and id(declared) in values and types.of(node) == kind:
        node = strip_parentheses(values[id(declared)])
    elif node.type == "subscript_expression" and types.of(node) == kind:
        stored = [
            _stored(unit, entry, unit.text_of(node))
            for entry in statements
            if entry.end_byte <= node.start_byte
        ]
        kept = [value for value in stored if value is not None]
        node = strip_parentheses(kept[0]) if len(kept) == 1 else node
    is_call = node.type == "call_expression" and called_name(unit, node) in _EXPONENTIALS
    return node if is_call and is_pure(unit, node) and types.of(node) == kind else None


def _stored(unit: SourceUnit, statement: Node, element: str) -> Node | None:
    node = expression_of(statement)
    if node is None or node.type != "assignment_expression" or unit.operator(node) != "=":
        return None
    left = node.child_by_field_name("left")
    return node.child_by_field_name("right") if left is not None and unit.text_of(left) == element else None


def _distance(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, call: Node, largest: VariableDef, form: str
) -> Node:
    """Return the difference inside the exponential; a factor that stays the same may stand beside it."""
    listed = call.child_by_field_name("arguments")
    arguments = named(listed) if listed is not None else []
    reason = f"line {unit.line_of(call)}: the exponential is not of the elements minus their maximum"
    if len(arguments) != 1:
        raise SkillRefused(reason)
    node = strip_parentheses(arguments[0])
    for _ in range(2):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type != "binary_expression" or left is None or right is None:
            break
        operator = unit.operator(node)
        if operator == "-":
            return node
        if operator not in ("*", "/"):
            break
        factor, node = (right, left) if uses_of(unit, kernel, left, largest) else (left, right)
        if (operator == "/" and factor != right) or not is_invariant(unit, kernel, factor, pair.span):
            raise SkillRefused(reason)
        node = strip_parentheses(node)
    raise SkillRefused(reason)


def _other_start(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, largest: VariableDef, value: Node, form: Canonical
) -> Node | None:
    """Return the second loop's start where the first begins one later because the maximum starts as element 0."""
    first, second = pair.first, pair.second
    if (first.start_value, second.start_value, first.signed_step, second.signed_step) != (1, 0, 1, 1):
        return None
    if first.bound is None or second.bound is None or first.declared is None or second.declared is None:
        return None
    reaching = flow_of(unit, kernel).reaching(first.node, largest)
    if reaching is None or reaching.value is None or reaching.node.end_byte > first.span.start:
        return None
    zero = Canonical(unit, kernel, {**form.placeholders, id(first.declared): "0"}, form.inlined)
    same_end = form.of(first.bound) == form.of(second.bound) and first.comparison == second.comparison
    plain = all(loop.is_counted for loop in (first, second)) and counter_type(first) == counter_type(second)
    fixed = is_invariant(unit, kernel, first.bound, pair.span)
    element = zero.of(reaching.value) == zero.of(value)
    before = Span(reaching.node.end_byte, first.span.start)
    untouched = _nothing_changes(unit, kernel, before, value)
    return second.start if same_end and plain and fixed and element and untouched else None


def _nothing_changes(unit: SourceUnit, kernel: KernelDef, span: Span, value: Node) -> bool:
    """Whether a stretch of code declares or sets other variables only, and touches no memory."""
    needed = used_variables(unit, kernel, value)
    for node in range_nodes(kernel, span):
        if node.type not in ("declaration", "expression_statement", "comment", ";", ",", "identifier"):
            return False
        writes = {"subscript_expression", "pointer_expression", "call_expression"}
        if any(entry.type in writes for entry in walk(node)):
            return False
        if written_variables(unit, kernel, node).keys() & needed.keys():
            return False
    return True


def _keeps_second(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, total: VariableDef, statement: Node
) -> bool:
    written = written_variables(unit, kernel, pair.second.node)
    counters = {id(pair.second.declared), id(total)}
    others = [entry for key, entry in written.items() if key not in counters]
    if others:
        raise SkillRefused(f"the loop on line {pair.second.line} also changes {others[0].name!r}")
    _, rest = split_body(pair.second)
    return any(entry != statement for entry in rest)


def _refuse_changes(
    unit: SourceUnit,
    kernel: KernelDef,
    pair: LoopPair,
    own: tuple[VariableDef, VariableDef],
    statement: Node,
    call: Node,
    context: SkillContext,
) -> tuple[str, ...]:
    """Decline where the elements, or the maximum, may change before the sum is taken.

    Raises:
        SkillRefused: They may.
    """
    needed = {**used_variables(unit, kernel, call), id(own[0]): own[0]}
    for entry in split_body(pair.second)[0]:
        needed |= used_variables(unit, kernel, entry)
    for between in pair.between:
        refuse_unclear(unit, kernel, between, context)
        changed = written_variables(unit, kernel, between)
        writes = [a for a in accesses_in(unit, kernel, between, context) if a.mode.writes]
        if writes or changed.keys() & needed.keys():
            raise SkillRefused(f"line {unit.line_of(between)} may change what {pair.lines} use")
    found: list[str] = []
    accesses = accesses_in(unit, kernel, pair.second.node, context)
    accesses_in(unit, kernel, pair.first.node, context)
    if not span_of(statement).contains(span_of(call)) and sum(a.mode.writes for a in accesses) > 1:
        raise SkillRefused(f"the loop on line {pair.second.line} stores more than the exponentials")
    for write in (access for access in accesses if access.mode.writes):
        for load in (access for access in accesses if access.mode.reads):
            if span_of(statement).contains(load.span) and not span_of(call).contains(load.span):
                continue
            answer = separate(unit, kernel, load, write, context)
            if answer.disjoint:
                found += [answer.assumption] if answer.assumption else []
            elif not _is_later_store(unit, kernel, pair.second, load, write):
                raise SkillRefused(
                    f"line {write.line} writes {unit.text_of(write.node)}, which may be an element still to come"
                )
    return tuple(dict.fromkeys(found))


def _is_later_store(unit: SourceUnit, kernel: KernelDef, loop: Loop, load: Access, write: Access) -> bool:
    """Whether a store hits the element that the same turn has loaded before it, and no other."""
    if load.root is None or load.root is not write.root or load.element_type != write.element_type:
        return False
    if load.index is None or write.index is None or not (load.index - write.index).is_zero:
        return False
    factor = load.index.coefficient(index_reader(unit, kernel).loop_atom(loop))
    target = write.node.parent
    value = target.child_by_field_name("right") if target is not None else None
    inside = value is not None and span_of(value).contains(load.span)
    return factor is not None and is_never_zero(factor) and (inside or load.span.end <= write.span.start)


def write_online_sum(
    unit: SourceUnit, kernel: KernelDef, plan: OnlineSum, context: SkillContext, edits: EditSet
) -> None:
    """Sum in the first loop, and take the sum out of the second one."""
    first, second = plan.pair.first, plan.pair.second
    partial = fresh_name(unit, context, f"{plan.total.name}_online")
    zero, one = ("0.0f", "1.0f") if plan.total_kind == "float" else ("0.0", "1.0")
    unit_term = "1.0f" if plan.kind == "float" else "1.0"
    largest = plan.maximum.name
    place = first.node if first.pragma_span is None else first.pragma_span
    edits.insert_line_before(
        place, f"{plan.total_kind} {partial} = {zero};  // of exponentials relative to {largest}"
    )
    if plan.start is not None and first.start is not None:
        edits.replace(first.start, unit.text_of(plan.start))
    indent = unit.indent_of(first.node)
    lines = [unit.text_of(entry) for entry in split_body(first)[0]]
    name = clean_text(unit, strip_parentheses(plan.value))
    if strip_parentheses(plan.value).type != "identifier":
        name = fresh_name(unit, context, "value", [partial])
        lines.append(f"const {plan.kind} {name} = {clean_text(unit, strip_parentheses(plan.value))};")
    lines += [
        f"if ({name} > {largest}) {{",
        f"    {partial} = {partial} * {_term(unit, plan, largest, name)} + {one};",
        f"    {largest} = {name};",
        "} else {",
        f"    {partial} += {name} == {largest} ? {unit_term} : {_term(unit, plan, name, largest)};",
        "}",
    ]
    replace_body(edits, first, lines, indent)
    why = "// An infinite maximum gives NaN, as in two passes."
    undefined = f"if ({partial} != {zero}) {partial} += {_argument(unit, plan, largest, largest)};"
    edits.insert_after(first.node, f"\n{indent}{why}\n{indent}{undefined}")
    added = f"{plan.total.name} += {partial};"
    if plan.keeps_second:
        edits.insert_line_before(second.node if second.pragma_span is None else second.pragma_span, added)
        edits.delete_line(plan.sum_statement)
    else:
        start = second.pragma_span.start if second.pragma_span is not None else second.span.start
        edits.replace(Span(start, second.span.end), added)


def _argument(unit: SourceUnit, plan: OnlineSum, larger: str, smaller: str) -> str:
    listed = plan.call.child_by_field_name("arguments")
    assert listed is not None
    argument = named(listed)[0]
    whole = strip_parentheses(argument) == plan.distance
    difference = f"{larger} - {smaller}" if whole else f"({larger} - {smaller})"
    parent = plan.distance.parent
    bracketed = parent is not None and parent.type == "parenthesized_expression"
    place: Node = parent if bracketed and parent is not None else plan.distance
    return difference if whole else clean_text(unit, argument, [(place, difference)])


def _term(unit: SourceUnit, plan: OnlineSum, larger: str, smaller: str) -> str:
    function = plan.call.child_by_field_name("function")
    assert function is not None
    return f"{unit.text_of(function)}({_argument(unit, plan, larger, smaller)})"
