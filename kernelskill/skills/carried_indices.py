"""Products, quotients and remainders of a loop's counter, carried from turn to turn instead of computed anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelskill.skills.adjacent_loops import is_own_counter, refuse_aliased_variables
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_pure, is_unsigned
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_UNSIGNED = {
    "int": "unsigned",
    "unsigned": "unsigned",
    "long": "unsigned long",
    "unsigned long": "unsigned long",
    "long long": "unsigned long long",
    "unsigned long long": "unsigned long long",
}
_SIZES = frozenset(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz")
_THREADS = frozenset(f"threadIdx.{axis}" for axis in "xyz")


@dataclass(frozen=True)
class Carried:
    """One product or division that a loop makes of its counter in every turn."""

    loop: Loop
    operator: str
    """`*`, or `/` for quotients and remainders together."""
    kind: str
    """Type of the results."""
    other: str
    """Text of the factor or divisor."""
    nodes: tuple[Node, ...]
    start: str
    step: str
    """Text of the amount; `1` for `++`."""

    @property
    def key(self) -> str:
        """Names it within its kernel."""
        name = "product" if self.operator == "*" else "quotient"
        return f"{self.loop.key}/{name}/{''.join(self.other.split())}/{self.kind.replace(' ', '_')}"


def find_carried(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[Carried]:
    """Yield what the loops of a kernel may carry."""
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    for loop in find_loops(unit, kernel):
        groups: dict[tuple[str, str, str], list[Node]] = {}
        for node in walk(loop.body):
            found = _read(unit, kernel, types, loop, node)
            if found is not None and not unit.is_locked(node):
                groups.setdefault(found, []).append(node)
        for (operator, kind, other), nodes in groups.items():
            try:
                _refuse_loop(unit, kernel, types, loop, operator, context)
            except SkillRefused as refused:
                refusals.append(refused.reason)
                continue
            assert loop.start is not None
            step = _as_counter(unit, types, loop, loop.step) if loop.step is not None else "1"
            start = _as_counter(unit, types, loop, loop.start)
            yield Carried(loop, operator, kind, other, tuple(nodes), start, step)


def _as_counter(unit: SourceUnit, types: ExpressionTypes, loop: Loop, node: Node) -> str:
    """Return the text of a start or step, converted as the counter converts it."""
    text, own = clean_text(unit, node), types.of_name(loop.variable, loop.body)
    same = types.of(node) == own or node.type == "number_literal"
    return _atom(text) if same else f"({own}){_atom(text)}"


def _read(
    unit: SourceUnit, kernel: KernelDef, types: ExpressionTypes, loop: Loop, node: Node
) -> tuple[str, str, str] | None:
    """Return operator, type and other operand of `counter * n`, `counter / n` and `counter % n`."""
    operator = unit.operator(node)
    other = _other(unit, kernel, loop, node)
    kind = types.of(node)
    if other is None or kind not in _UNSIGNED or other.type not in ("identifier", "field_expression"):
        return None
    if not is_integer(types.of(other)) or unit.constants.value(other) is not None:
        return None
    if not is_invariant(unit, kernel, other, loop.span):
        return None
    return ("*" if operator == "*" else "/"), str(kind), clean_text(unit, other)


def _other(unit: SourceUnit, kernel: KernelDef, loop: Loop, node: Node) -> Node | None:
    """Return what the counter is multiplied with or divided by; None for another expression."""
    operator = unit.operator(node)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if node.type != "binary_expression" or operator not in ("*", "/", "%") or left is None or right is None:
        return None
    if _is_counter(unit, kernel, loop, left):
        return strip_parentheses(right)
    if operator == "*" and _is_counter(unit, kernel, loop, right):
        return strip_parentheses(left)
    return None


def _is_counter(unit: SourceUnit, kernel: KernelDef, loop: Loop, node: Node) -> bool:
    node = strip_parentheses(node)
    if node.type == "cast_expression":
        value = node.child_by_field_name("value")
        kind = ExpressionTypes(unit, kernel).of(node)
        wider = kind in _UNSIGNED and kind not in ("int", "unsigned")
        return wider and value is not None and _is_counter(unit, kernel, loop, value)
    if node.type != "identifier" or loop.declared is None:
        return False
    return flow_of(unit, kernel).resolve(node) is loop.declared


def _refuse_loop(
    unit: SourceUnit,
    kernel: KernelDef,
    types: ExpressionTypes,
    loop: Loop,
    operator: str,
    context: SkillContext,
) -> None:
    where = f"the loop on line {loop.line}"
    if loop.kind is not LoopKind.FOR or not loop.is_counted or not is_own_counter(loop):
        raise SkillRefused(f"{where} does not count plainly by a counter of its own")
    update = loop.node.child_by_field_name("update")
    if update is None or update != loop.step_statement or loop.start is None:
        raise SkillRefused(f"{where} does more than count in its header")
    if loop.step_operator != "+" and not (operator == "*" and loop.step_operator == "-"):
        raise SkillRefused(f"{where} does not count up")
    parts = [loop.start, *([loop.step] if loop.step is not None else [])]
    for part in parts:
        if not is_integer(types.of(part)) or not is_pure(unit, part):
            raise SkillRefused(f"{where} starts or steps by more than plain integers")
        if not is_invariant(unit, kernel, part, loop.span):
            raise SkillRefused(f"{where} starts or steps by what changes in it")
    refuse_unclear(unit, kernel, loop.body, context)
    for part in parts:
        refuse_aliased_variables(unit, kernel, part)
    if operator == "/":
        _refuse_negative(unit, kernel, types, loop)


def _refuse_negative(unit: SourceUnit, kernel: KernelDef, types: ExpressionTypes, loop: Loop) -> None:
    """Decline where the counter may be negative or stand still: then quotients don't carry.

    Raises:
        SkillRefused: It may.
    """
    assert loop.start is not None
    where = f"the counter of the loop on line {loop.line}"
    if loop.comparison not in ("<", "<="):
        raise SkillRefused(f"{where} may pass its bound and wrap around")
    own = is_unsigned(types.of_name(loop.variable, loop.body))
    start = own or (loop.start_value is not None and loop.start_value >= 0)
    start = start or _is_made_of(unit, kernel, loop.start, _THREADS)
    step = loop.step is None or (loop.step_value is not None and loop.step_value > 0)
    step = step or (loop.step is not None and _is_made_of(unit, kernel, loop.step, _SIZES))
    if not start or not step:
        raise SkillRefused(f"{where} may be negative")


def _is_made_of(unit: SourceUnit, kernel: KernelDef, node: Node, names: frozenset[str]) -> bool:
    """Whether an expression is one of some positive built-in numbers, or a positive multiple of it."""
    value = index_polynomial(unit, kernel, node)
    if len(value.terms) != 1:
        return False
    atoms, factor = value.terms[0]
    return factor > 0 and bool(atoms) and all(atom.text in names for atom in atoms)


@dataclass(frozen=True)
class _Code:
    """What is written for one carried value."""

    before: tuple[str, ...]
    steps: tuple[str, ...]
    """Statements for the end of the body."""
    updates: tuple[str, ...]
    """The same as expressions, for the loop's header."""


def write_carried(unit: SourceUnit, carried: Carried, context: SkillContext, edits: EditSet) -> None:
    """Declare what is carried before the loop, step it with the counter, and use it in the body."""
    loop = carried.loop
    update = loop.node.child_by_field_name("update")
    assert update is not None
    stem = carried.other.replace(".", "_")
    write = _product if carried.operator == "*" else _division
    code = write(unit, carried, stem, context, edits)
    surround_loop(unit, edits, loop, code.before, [])
    closing = loop.body.children[-1] if loop.body.type == "compound_statement" else None
    several_lines = closing is not None and unit.line_of(closing) > unit.line_of(loop.body)
    if carried.operator == "*" or loop.has_continue or not several_lines or closing is None:
        edits.insert_after(update, "".join(f", {step}" for step in code.updates))
        return
    indent = unit.indent_of(closing)
    edits.insert_before(closing, "".join(f"    {step}\n{indent}" for step in code.steps))


def _product(unit: SourceUnit, carried: Carried, stem: str, context: SkillContext, edits: EditSet) -> _Code:
    kind = _UNSIGNED[carried.kind]
    name = fresh_name(unit, context, f"{carried.loop.variable}_times_{stem}")
    first = "0" if carried.loop.start_value == 0 else f"({kind}){carried.start} * {carried.other}"
    lines = [f"{kind} {name} = {first};"]
    amount = carried.other
    if carried.step != "1":
        amount = fresh_name(unit, context, f"{name}_step", [name])
        lines.append(f"const {kind} {amount} = ({kind}){carried.step} * {carried.other};")
    for node in carried.nodes:
        edits.replace(node, name if kind == carried.kind else f"({carried.kind}){name}")
    step = f"{name} {carried.loop.step_operator}= {amount}"
    return _Code(tuple(lines), (f"{step};",), (step,))


@dataclass(frozen=True)
class _Quotient:
    """Names of what carries a division."""

    kind: str
    size: str
    """Divisor without its sign."""
    rest: str
    quotient: str
    """Empty where only remainders are used."""

    def first(self, value: str, operator: str) -> str:
        """Return a division that is never by zero: a loop that doesn't run divides by nothing."""
        return "0" if value == "0" else f"{self.size} == 0 ? 0 : ({self.kind}){value} {operator} {self.size}"


def _division(unit: SourceUnit, carried: Carried, stem: str, context: SkillContext, edits: EditSet) -> _Code:
    kind, variable = _UNSIGNED[carried.kind], carried.loop.variable
    signed = kind != carried.kind
    has_quotient = any(unit.operator(node) == "/" for node in carried.nodes)
    wanted = [f"{variable}_mod_{stem}", f"{variable}_div_{stem}", f"{stem}_size"]
    rest, quotient, size = (fresh_name(unit, context, name) for name in wanted)
    names = _Quotient(kind, size if signed else carried.other, rest, quotient if has_quotient else "")
    before = []
    if signed:
        divisor = f"({kind}){carried.other}"
        before.append(f"const {kind} {size} = {carried.other} < 0 ? 0 - {divisor} : {divisor};")
    before.append(f"{kind} {rest} = {names.first(carried.start, '%')};")
    if has_quotient:
        before.append(f"{kind} {quotient} = {names.first(carried.start, '/')};")
    for node in carried.nodes:
        held = rest if unit.operator(node) == "%" else quotient
        text = f"({carried.kind}){held}" if signed else held
        if signed and held == quotient:
            text = f"({carried.other} < 0 ? -{text} : {text})"
        edits.replace(node, text)
    if carried.step == "1":
        return _by_one(names, before)
    return _by_more(names, carried.step, before, unit, context)


def _by_one(names: _Quotient, before: list[str]) -> _Code:
    rest, quotient, size = names.rest, names.quotient, names.size
    counted = f" ++{quotient};" if quotient else ""
    updates = [f"{rest} = {rest} + 1 == {size} ? 0 : {rest} + 1"]
    if quotient:
        updates.insert(0, f"{quotient} += {rest} + 1 == {size}")
    return _Code(tuple(before), (f"if (++{rest} == {size}) {{ {rest} = 0;{counted} }}",), tuple(updates))


def _by_more(
    names: _Quotient, step: str, before: list[str], unit: SourceUnit, context: SkillContext
) -> _Code:
    rest, quotient = names.rest, names.quotient
    amount, gap = fresh_name(unit, context, f"{rest}_step"), fresh_name(unit, context, f"{rest}_gap")
    before.append(f"const {names.kind} {amount} = {names.first(step, '%')};")
    before.append(
        f"const {names.kind} {gap} = {names.size} - {amount};  // what is missing to the next multiple"
    )
    passed = f"{rest} >= {gap}"
    updates = [f"{rest} = {passed} ? {rest} - {gap} : {rest} + {amount}"]
    if quotient:
        whole = fresh_name(unit, context, f"{quotient}_step")
        before.append(f"const {names.kind} {whole} = {names.first(step, '/')};")
        updates.insert(0, f"{quotient} += {whole} + ({passed})")
    return _Code(tuple(before), tuple(f"{update};" for update in updates), tuple(updates))


def _atom(text: str) -> str:
    return text if text.replace("_", "").isalnum() else f"({text})"
