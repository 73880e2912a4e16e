"""A mean and the sum of squared distances to it, taken in one pass instead of two."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import (
    LoopPair,
    refuse_aliased_variables,
    refuse_lost_counter,
    refuse_other_range,
    used_variables,
    written_variables,
)
from kernelskill.skills.canonical import Canonical
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes, called_name, is_integer, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_fusion import replace_body
from kernelskill.skills.loop_statements import (
    addition,
    expression_of,
    local_values,
    named_variable,
    split_body,
)
from kernelskill.skills.plain_code import accesses_in, refuse_unclear
from kernelskill.skills.text_changes import clean_text, uses_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_number
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import Write, flow_of
from kernelskill.source.syntax import Node, Span, named, span_of, strip_parentheses
from kernelskill.source.unit import SourceUnit

_POWERS = frozenset({"pow", "powf"})


@dataclass(frozen=True)
class RunningVariance:
    """A loop that sums elements, and the next one that sums squared distances to their mean."""

    pair: LoopPair
    kind: str
    """`float` or `double`."""
    value: Node
    """What the first loop sums."""
    sum_statement: Node
    squares: VariableDef
    """What the second loop adds the squares to."""
    mean: VariableDef


def read_running_variance(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, context: SkillContext
) -> RunningVariance:
    """Return how two loops form a mean and a sum of squared distances.

    Raises:
        SkillRefused: They do something else, or it can't be told that they form those.
    """
    for loop in (pair.first, pair.second):
        refuse_unclear(unit, kernel, loop.node, context)
        refuse_aliased_variables(unit, kernel, loop.node)
        if loop.has_break or loop.has_return or loop.has_continue:
            raise SkillRefused(f"the loop on line {loop.line} skips or leaves turns")
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    forms = [
        Canonical(
            unit, kernel, pair.canonical(unit, kernel).placeholders, local_values(unit, kernel, declared)
        )
        for declared in (split_body(pair.first)[0], split_body(pair.second)[0])
    ]
    total, value, statement = _read_sum(unit, kernel, pair.first, types)
    squares, square, _ = _read_sum(unit, kernel, pair.second, types)
    kind = str(types.of_name(total.name, statement))
    mean = _read_square(unit, kernel, pair, square, forms)
    same = types.of(value) == kind and types.of_name(squares.name, square) == kind
    if not same or types.of_name(mean.name, square) != kind or types.of(square) != kind:
        raise SkillRefused(f"{pair.lines} mix types")
    _, element, _ = _sides(unit, kernel, square, forms[1], mean)
    if element != forms[0].of(value):
        raise SkillRefused(
            f"the second of {pair.lines} takes squares of something else than the first one sums"
        )
    refuse_other_range(unit, kernel, pair)
    refuse_lost_counter(pair)
    _refuse_other_count(unit, kernel, pair, total, mean, forms[0])
    _refuse_changes(unit, kernel, pair, (total, squares, mean), context)
    return RunningVariance(pair, kind, value, statement, squares, mean)


def _read_sum(
    unit: SourceUnit, kernel: KernelDef, loop: Loop, types: ExpressionTypes
) -> tuple[VariableDef, Node, Node]:
    """Return the variable that a loop sums in, what it adds and the statement; the loop may do nothing else."""
    declarations, rest = split_body(loop)
    parts = addition(unit, rest[0]) if len(rest) == 1 else None
    target = named_variable(unit, kernel, parts[0]) if parts is not None else None
    values = local_values(unit, kernel, declarations)
    declared = [v for v in kernel.locals if v.declaration in declarations]
    pure = all(id(v) in values and is_pure(unit, values[id(v)]) for v in declared)
    if parts is None or not isinstance(target, VariableDef) or not pure or not is_pure(unit, parts[1]):
        raise SkillRefused(f"the loop on line {loop.line} does not just sum in a local variable")
    plain = not loop.span.contains(target.name_span) and not target.dimensions and not target.pointer_depth
    own = types.of_name(target.name, rest[0]) in ("float", "double") and target.storage.value == "local"
    if (
        not plain
        or not own
        or len(uses_of(unit, kernel, loop.node, target)) != len(uses_of(unit, kernel, rest[0], target))
    ):
        raise SkillRefused(f"the sum of the loop on line {loop.line} is no local float or double of its own")
    if uses_of(unit, kernel, parts[1], target):
        raise SkillRefused(f"the loop on line {loop.line} adds the sum to itself")
    return target, parts[1], rest[0]


def _read_square(
    unit: SourceUnit, kernel: KernelDef, pair: LoopPair, square: Node, forms: list[Canonical]
) -> VariableDef:
    """Return the variable that the elements are taken from in a square."""
    side = _base_of(unit, kernel, square, forms[1])
    side = _inlined(unit, kernel, side, forms[1]) if side is not None else None
    left = side.child_by_field_name("left") if side is not None else None
    right = side.child_by_field_name("right") if side is not None else None
    if side is None or side.type != "binary_expression" or unit.operator(side) != "-":
        raise SkillRefused(f"the second of {pair.lines} does not sum squares of distances")
    for node in (right, left):
        declared = named_variable(unit, kernel, node)
        outside = isinstance(declared, VariableDef) and not pair.second.span.contains(declared.name_span)
        if isinstance(declared, VariableDef) and outside and not declared.dimensions:
            return declared
    raise SkillRefused(f"the second of {pair.lines} takes no distances to a local variable")


def _base_of(unit: SourceUnit, kernel: KernelDef, square: Node, form: Canonical) -> Node | None:
    """Return `e` of `e * e` and `powf(e, 2.0f)`."""
    square = _inlined(unit, kernel, square, form)
    if square.type == "binary_expression" and unit.operator(square) == "*":
        left, right = square.child_by_field_name("left"), square.child_by_field_name("right")
        return left if left is not None and right is not None and form.of(left) == form.of(right) else None
    listed = square.child_by_field_name("arguments")
    if square.type != "call_expression" or called_name(unit, square) not in _POWERS or listed is None:
        return None
    base, exponent = (*named(listed), None, None)[:2]
    number = read_number(unit.text_of(exponent)) if exponent is not None else None
    return base if number is not None and number.value == 2 else None


def _inlined(unit: SourceUnit, kernel: KernelDef, node: Node, form: Canonical) -> Node:
    """Return the value of a local of the body instead of its name."""
    node = strip_parentheses(node)
    declared = named_variable(unit, kernel, node)
    while declared is not None and id(declared) in form.inlined:
        node = strip_parentheses(form.inlined[id(declared)])
        declared = named_variable(unit, kernel, node)
    return node


def _sides(
    unit: SourceUnit, kernel: KernelDef, square: Node, form: Canonical, mean: VariableDef
) -> tuple[Node, str, bool]:
    """Return the difference, and the form of its side that is not the mean."""
    base = _base_of(unit, kernel, square, form)
    assert base is not None
    difference = _inlined(unit, kernel, base, form)
    left, right = difference.child_by_field_name("left"), difference.child_by_field_name("right")
    assert left is not None
    assert right is not None
    reversed_ = named_variable(unit, kernel, right) is not mean
    return difference, form.of(right if reversed_ else left), reversed_


def _refuse_other_count(
    unit: SourceUnit,
    kernel: KernelDef,
    pair: LoopPair,
    total: VariableDef,
    mean: VariableDef,
    form: Canonical,
) -> None:
    """Decline unless the mean certainly is the sum over the number of turns.

    Raises:
        SkillRefused: It may be something else.
    """
    reason = (
        f"{mean.name!r} is not certainly the sum divided by the turns of the loop on line {pair.first.line}"
    )
    loop, flow = pair.first, flow_of(unit, kernel)
    if loop.start_value != 0 or loop.signed_step != 1 or loop.comparison != "<" or loop.bound is None:
        raise SkillRefused(reason)
    between = Span(loop.span.end, pair.second.span.start)
    writes = [w for w in flow.writes_to(mean) if between.contains(span_of(w.node))]
    sums = [w for w in flow.writes_to(total) if between.contains(span_of(w.node))]
    if len(writes) != 1 or (
        mean is not total and any(w.node.start_byte < writes[0].node.start_byte for w in sums)
    ):
        raise SkillRefused(reason)
    divisor = _divisor(unit, kernel, writes[0], total, mean)
    if divisor is None or form.of(divisor) != form.of(loop.bound):
        raise SkillRefused(reason)


def _divisor(
    unit: SourceUnit, kernel: KernelDef, write: Write, total: VariableDef, mean: VariableDef
) -> Node | None:
    """Return `n` of `mean = sum / n`, `sum /= n` and `mean = sum * (1.0f / n)`."""
    if write.operator in ("/=", "*="):
        right = write.node.child_by_field_name("right")
        whole = right if mean is total else None
        factor = whole is not None and write.operator == "*="
    else:
        value = strip_parentheses(write.value) if write.value is not None and write.is_plain else None
        left = value.child_by_field_name("left") if value is not None else None
        whole = value.child_by_field_name("right") if value is not None else None
        if value is None or value.type != "binary_expression" or unit.operator(value) not in ("/", "*"):
            return None
        factor = unit.operator(value) == "*"
        if factor and named_variable(unit, kernel, whole) is total:
            left, whole = whole, left
        if named_variable(unit, kernel, left) is not total:
            return None
    if whole is None:
        return None
    return _count(unit, kernel, whole, factor)


def _count(unit: SourceUnit, kernel: KernelDef, node: Node, is_factor: bool) -> Node | None:
    """Return an integer count behind casts, and behind `1.0f / n` where it is a factor."""
    node = strip_parentheses(node)
    declared = named_variable(unit, kernel, node)
    types = ExpressionTypes(unit, kernel)
    if declared is not None and not is_integer(types.of(node)):
        write = flow_of(unit, kernel).reaching(node, declared)
        if write is None or write.value is None:
            return None
        return _count(unit, kernel, write.value, is_factor)
    if is_factor:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        one = read_number(unit.text_of(left)) if left is not None else None
        inverse = node.type == "binary_expression" and unit.operator(node) == "/" and one is not None
        return _count(unit, kernel, right, False) if inverse and one and one.value == 1 and right else None
    if node.type == "cast_expression":
        inner = node.child_by_field_name("value")
        return _count(unit, kernel, inner, False) if inner is not None and types.of(node) in _FLOATS else None
    if node.type == "call_expression" and called_name(unit, node) in _CASTS:
        listed = node.child_by_field_name("arguments")
        return _count(unit, kernel, named(listed)[0], False) if listed is not None and named(listed) else None
    return node if is_integer(types.of(node)) else None


_FLOATS = ("float", "double")
_CASTS = ("float", "double", "static_cast<float>", "static_cast<double>")


def _refuse_changes(
    unit: SourceUnit,
    kernel: KernelDef,
    pair: LoopPair,
    own: tuple[VariableDef, VariableDef, VariableDef],
    context: SkillContext,
) -> None:
    """Decline where the elements may change between the two loops, or a loop does more than sum.

    Raises:
        SkillRefused: They may.
    """
    for loop, target in ((pair.first, own[0]), (pair.second, own[1])):
        counters = {id(loop.declared), id(target)}
        changed = written_variables(unit, kernel, loop.node)
        stores = any(access.mode.writes for access in accesses_in(unit, kernel, loop.node, context))
        if stores or changed.keys() - counters:
            raise SkillRefused(f"the loop on line {loop.line} does more than sum")
    needed = used_variables(unit, kernel, pair.second.node)
    for statement in pair.between:
        refuse_unclear(unit, kernel, statement, context)
        writes = [a for a in accesses_in(unit, kernel, statement, context) if a.mode.writes]
        changed = written_variables(unit, kernel, statement)
        kept = changed.keys() & needed.keys() - {id(entry) for entry in own}
        if writes or kept:
            raise SkillRefused(f"line {unit.line_of(statement)} may change what {pair.lines} use")


def write_running_variance(
    unit: SourceUnit, kernel: KernelDef, plan: RunningVariance, context: SkillContext, edits: EditSet
) -> None:
    """Follow the mean in the first loop, and take the second one out."""
    first, second = plan.pair.first, plan.pair.second
    running = fresh_name(unit, context, "running_mean")
    squares = fresh_name(unit, context, "squares", [running])
    delta = fresh_name(unit, context, "delta", [running, squares])
    zero = "0.0f" if plan.kind == "float" else "0.0"
    place = first.node if first.pragma_span is None else first.pragma_span
    line = f"{plan.kind} {running} = {zero}, {squares} = {zero};  // of the elements so far, after Welford"
    edits.insert_line_before(place, line)
    indent = unit.indent_of(first.node)
    lines = [unit.text_of(entry) for entry in split_body(first)[0]]
    value = strip_parentheses(plan.value)
    name, statement = clean_text(unit, value), unit.text_of(plan.sum_statement)
    if value.type != "identifier":
        name = fresh_name(unit, context, "value", [running, squares, delta])
        lines.append(f"const {plan.kind} {name} = {clean_text(unit, value)};")
        expression = expression_of(plan.sum_statement)
        left = expression.child_by_field_name("left") if expression is not None else None
        assert left is not None
        statement = f"{clean_text(unit, left)} += {name};"
    lines += [
        statement,
        f"const {plan.kind} {delta} = {name} - {running};",
        f"{running} += {delta} / ({plan.kind})({first.variable} + 1);",
        f"{squares} += {delta} * ({name} - {running});",
    ]
    replace_body(edits, first, lines, indent)
    start = second.pragma_span.start if second.pragma_span is not None else second.span.start
    edits.replace(Span(start, second.span.end), f"{plan.squares.name} += {squares};")
