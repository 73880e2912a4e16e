"""Tests inside a loop that hold for one range of its counter only: the range, and the loop without the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelskill.skills.adjacent_loops import counter_type, is_own_counter, refuse_aliased_variables
from kernelskill.skills.approximations import is_defined
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes, is_pure, plain_type
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.loop_statements import local_values
from kernelskill.skills.plain_code import refuse_unclear
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.literals import read_integer
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, named, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_DEPTH = 16
_OTHER_TYPE = re.compile(r"\d[uUlL]|\b(?:sizeof|unsigned|long|size_t)\b|\w+_t\b")
_ACTIVE = frozenset({"call_expression", "assignment_expression", "update_expression", "lambda_expression"})
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class LinearForm:
    """`factor * counter` plus terms that the loop leaves alone."""

    factor: int = 0
    terms: tuple[tuple[int, str], ...] = ()
    """Sign and text."""
    number: int = 0

    def plus(self, other: LinearForm, sign: int) -> LinearForm:
        """Return the sum, or the difference for a sign of -1."""
        terms = (*self.terms, *((sign * own, text) for own, text in other.terms))
        return LinearForm(self.factor + sign * other.factor, terms, self.number + sign * other.number)

    def text(self, is_wide: bool) -> str:
        """Return C text for it without the counter, in 64 bits where asked."""
        ordered = sorted(self.terms, key=lambda term: -term[0])
        cast = "(long long)" if is_wide else ""
        text = ""
        for sign, term in ordered:
            lead = ("-" if sign < 0 else "") if not text else (" - " if sign < 0 else " + ")
            text += f"{lead}{cast if not text else ''}{term}"
        if not text:
            return f"{self.number}{'LL' if is_wide else ''}"
        if self.number:
            text += f" {'+' if self.number > 0 else '-'} {abs(self.number)}"
        return text


@dataclass(frozen=True)
class Guard:
    """One `if` that guards all that a loop does, split into what must hold together."""

    statement: Node
    leaves: tuple[Node, ...]
    skips: bool
    """Whether it is `if (...) continue;`: then each leaf must not hold."""


@dataclass(frozen=True)
class ClippedLoop:
    """A loop with the tests that its bounds can take over."""

    loop: Loop
    guards: tuple[Guard, ...]
    lows: tuple[LinearForm, ...]
    """The counter is at least each of these."""
    ends: tuple[LinearForm, ...]
    """The counter is less than each of these."""
    taken: frozenset[int] = field(default=frozenset())
    """Ids of the leaves that the bounds take over."""


def find_clipped(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, refusals: list[str]
) -> Iterator[ClippedLoop]:
    """Yield the loops whose bounds can take over a test."""
    for loop in find_loops(unit, kernel):
        try:
            found = _read(unit, kernel, loop, context)
        except SkillRefused as refused:
            refusals.append(refused.reason)
            continue
        if found is not None:
            yield found


def _read(unit: SourceUnit, kernel: KernelDef, loop: Loop, context: SkillContext) -> ClippedLoop | None:
    guards, values = _guards_of(unit, kernel, loop)
    if not guards:
        return None
    _refuse_shape(unit, kernel, loop)
    if is_defined(unit, "min", context) or is_defined(unit, "max", context):
        raise SkillRefused("the source defines min or max itself")
    refuse_unclear(unit, kernel, loop.node, context)
    reader = _LinearReader(unit, kernel, loop, values)
    lows: list[LinearForm] = []
    ends: list[LinearForm] = []
    taken: set[int] = set()
    for guard in guards:
        for leaf in guard.leaves:
            bound = reader.bound(leaf, guard.skips)
            if bound is not None:
                (lows if bound[0] else ends).append(bound[1])
                taken.add(leaf.id)
                refuse_aliased_variables(unit, kernel, leaf)
    if not taken:
        return None
    return ClippedLoop(loop, tuple(guards), tuple(lows), tuple(ends), frozenset(taken))


def _refuse_shape(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> None:
    where = f"the loop on line {loop.line}"
    if loop.kind is not LoopKind.FOR or not loop.is_counted or loop.signed_step != 1:
        raise SkillRefused(f"{where} does not count up by one")
    if not is_own_counter(loop) or counter_type(loop) != "int" or loop.comparison not in ("<", "<="):
        raise SkillRefused(f"{where} has no int counter of its own below a bound")
    for part in (loop.start, loop.bound):
        known = part is not None and is_int(unit, kernel, part) and _is_plain(unit, part)
        if part is None or not known or not is_invariant(unit, kernel, part, loop.span):
            raise SkillRefused(f"the bounds of {where} are no plain int")


def _guards_of(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> tuple[list[Guard], dict[int, Node]]:
    """Return the tests without which a turn of a loop does nothing, and the values of locals before them."""
    guards: list[Guard] = []
    values: dict[int, Node] = {}
    inner = {entry.node.id: entry for entry in find_loops(unit, kernel)}
    statements = _statements(loop.body)
    while statements:
        head = statements.pop(0)
        if head.type == "declaration":
            if not _is_pure_declaration(unit, head):
                break
            values |= local_values(unit, kernel, [head])
            continue
        guard = _guard(unit, head)
        if guard is not None and guard.skips:
            guards.append(guard)
            continue
        if statements:
            break
        below = inner.get(head.id)
        body = head.child_by_field_name("consequence")
        if guard is not None and body is not None:
            guards.append(guard)
            statements = _statements(body)
        elif below is not None and below.is_counted and is_own_counter(below) and below.kind is LoopKind.FOR:
            statements = _statements(below.body)
    return guards, values


def _statements(body: Node) -> list[Node]:
    return named(body) if body.type == "compound_statement" else [body]


def _is_pure_declaration(unit: SourceUnit, declaration: Node) -> bool:
    for child in declaration.children_by_field_name("declarator"):
        value = child.child_by_field_name("value")
        if value is None or not (_is_plain(unit, value) or is_pure(unit, value)):
            return False
    return True


def _guard(unit: SourceUnit, statement: Node) -> Guard | None:
    condition = statement.child_by_field_name("condition")
    body = statement.child_by_field_name("consequence")
    if statement.type != "if_statement" or condition is None or body is None:
        return None
    if statement.child_by_field_name("alternative") is not None or not _is_plain(unit, condition):
        return None
    if any(child.type == "constexpr" for child in statement.children) or len(named(condition)) != 1:
        return None
    inner = _statements(body)
    skips = len(inner) == 1 and inner[0].type == "continue_statement"
    leaves = _leaves(unit, condition, "||" if skips else "&&")
    return Guard(statement, tuple(leaves), skips)


def _leaves(unit: SourceUnit, node: Node, joiner: str) -> list[Node]:
    bare = strip_parentheses(node)
    left, right = bare.child_by_field_name("left"), bare.child_by_field_name("right")
    if bare.type == "binary_expression" and unit.operator(bare) == joiner and left and right:
        return [*_leaves(unit, left, joiner), *_leaves(unit, right, joiner)]
    return [bare if node.type == "condition_clause" else node]


def is_int(unit: SourceUnit, kernel: KernelDef, node: Node) -> bool:
    """Whether an expression certainly has the type `int`; macros of numbers and template parameters are known."""
    node = strip_parentheses(node)
    kind = ExpressionTypes(unit, kernel).of(node)
    if kind is not None:
        return kind == "int"
    if node.type == "identifier":
        name = unit.text_of(node)
        macro = unit.macro(name)
        if macro is not None:
            other_type = _OTHER_TYPE.search(macro.value)
            return unit.constants.value(node) is not None and not macro.is_given and not other_type
        return any(entry.name == name and entry.kind == "int" for entry in kernel.template_parameters)
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if (
        node.type == "binary_expression"
        and unit.operator(node) in ("+", "-", "*", "/", "%")
        and left
        and right
    ):
        return is_int(unit, kernel, left) and is_int(unit, kernel, right)
    argument = node.child_by_field_name("argument")
    is_sign = node.type == "unary_expression" and unit.operator(node) in ("-", "+")
    return is_sign and argument is not None and is_int(unit, kernel, argument)


def _is_plain(unit: SourceUnit, node: Node) -> bool:
    """Whether an expression has no effect; macros of constants count as numbers."""
    names = [entry for entry in walk(node) if entry.type == "identifier" and unit.macro(unit.text_of(entry))]
    if any(unit.constants.value(name) is None for name in names):
        return False
    passive = bool(names) and not any(entry.type in _ACTIVE for entry in walk(node))
    return passive or is_pure(unit, node)


@dataclass(frozen=True)
class _LinearReader:
    unit: SourceUnit
    kernel: KernelDef
    loop: Loop
    values: Mapping[int, Node]

    def bound(self, leaf: Node, negated: bool) -> tuple[bool, LinearForm] | None:
        """Return whether a test bounds the counter from below, and the bound; None where it does neither."""
        leaf = strip_parentheses(leaf)
        left, right = leaf.child_by_field_name("left"), leaf.child_by_field_name("right")
        operator = self.unit.operator(leaf)
        if leaf.type != "binary_expression" or operator not in _OPPOSITE or left is None or right is None:
            return None
        sides = self.read(left), self.read(right)
        if sides[0] is None or sides[1] is None:
            return None
        whole = sides[0].plus(sides[1], -1)
        operator = _OPPOSITE[operator] if negated else operator
        if whole.factor not in (1, -1):
            return None
        rest = LinearForm(0, whole.terms, whole.number)
        if whole.factor == 1:
            rest = LinearForm().plus(rest, -1)
        else:
            operator = _MIRRORED[operator]
        one = LinearForm(number=1)
        is_low = operator in (">", ">=")
        return is_low, rest.plus(one, 1) if operator in (">", "<=") else rest

    def read(self, node: Node, depth: int = 0) -> LinearForm | None:
        """Return an int expression as a linear form; None where it is none."""
        node = strip_parentheses(node)
        if depth > _DEPTH or not is_int(self.unit, self.kernel, node):
            return None
        number = self.unit.constants.value(node)
        if number is not None:
            return LinearForm(number=number)
        if node.type == "identifier":
            return self._name(node, depth)
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self.unit.operator(node)
        if node.type == "binary_expression" and operator in ("+", "-") and left and right:
            sides = self.read(left, depth + 1), self.read(right, depth + 1)
            if sides[0] is None or sides[1] is None:
                return None
            return sides[0].plus(sides[1], 1 if operator == "+" else -1)
        argument = node.child_by_field_name("argument")
        if node.type == "unary_expression" and operator == "-" and argument is not None:
            value = self.read(argument, depth + 1)
            return LinearForm().plus(value, -1) if value is not None else None
        return self._fixed(node)

    def _name(self, node: Node, depth: int) -> LinearForm | None:
        declared = flow_of(self.unit, self.kernel).resolve(node)
        if declared is not None and declared is self.loop.declared:
            return LinearForm(factor=1)
        if declared is not None and id(declared) in self.values:
            whole = plain_type(getattr(declared, "base_type", "")) in ("int", "auto")
            return self.read(self.values[id(declared)], depth + 1) if whole else None
        return self._fixed(node)

    def _fixed(self, node: Node) -> LinearForm | None:
        text = clean_text(self.unit, node)
        risky = any(sign in text for sign in ("/", "%"))
        if (
            risky
            or not _is_plain(self.unit, node)
            or not is_invariant(self.unit, self.kernel, node, self.loop.span)
        ):
            return None
        simple = node.type in ("identifier", "number_literal")
        return LinearForm(terms=((1, text if simple else f"({text})"),))


def write_clipped(
    unit: SourceUnit, clipped: ClippedLoop, context: SkillContext, edits: EditSet, *, is_wide: bool
) -> None:
    """Compute the bounds before the loop and take the tests out of it.

    Args:
        unit: The file.
        clipped: The loop and its tests.
        context: Tells which names are taken.
        edits: Collects the edits.
        is_wide: Whether the bounds must be computed in 64 bits.
    """
    loop = clipped.loop
    assert loop.start is not None
    assert loop.bound is not None
    first = fresh_name(unit, context, f"{loop.variable}_first")
    end = fresh_name(unit, context, f"{loop.variable}_end", [first])
    start, bound = clean_text(unit, loop.start), clean_text(unit, loop.bound)
    limit = LinearForm(terms=((1, _operand(bound, loop.bound)),), number=int(loop.comparison == "<="))
    if unit.constants.value(loop.bound) is not None and read_integer(bound) is not None:
        limit = LinearForm(number=(read_integer(bound) or 0) + int(loop.comparison == "<="))
    origin = LinearForm(terms=((1, _operand(start, loop.start)),))
    if read_integer(start) is not None:
        origin = LinearForm(number=read_integer(start) or 0)
    cast = "(int)" if is_wide else ""
    lines = []
    low = origin
    if clipped.lows:
        value = _extreme("max", [origin, *clipped.lows], is_wide)
        lines.append(f"const int {first} = {cast}min({limit.text(is_wide)}, {value});")
        low = LinearForm(terms=((1, first),))
    if clipped.ends:
        value = _extreme("min", [limit, *clipped.ends], is_wide)
        lines.append(f"const int {end} = {cast}max({low.text(is_wide)}, {value});")
    surround_loop(unit, edits, loop, lines, [])
    if clipped.lows:
        edits.replace(loop.start, first)
    condition = loop.node.child_by_field_name("condition")
    if clipped.ends and condition is not None:
        edits.replace(condition, f"{loop.variable} < {end}")
    for guard in clipped.guards:
        _write_guard(unit, guard, clipped.taken, edits)


def _operand(text: str, node: Node) -> str:
    return text if strip_parentheses(node).type in ("identifier", "number_literal") else f"({text})"


def _extreme(function: str, forms: list[LinearForm], is_wide: bool) -> str:
    texts = list(dict.fromkeys(form.text(is_wide) for form in forms))
    result = texts[0]
    for text in texts[1:]:
        result = f"{function}({result}, {text})"
    return result


def _write_guard(unit: SourceUnit, guard: Guard, taken: frozenset[int], edits: EditSet) -> None:
    left = [leaf for leaf in guard.leaves if leaf.id not in taken]
    if len(left) == len(guard.leaves):
        return
    condition = guard.statement.child_by_field_name("condition")
    body = guard.statement.child_by_field_name("consequence")
    assert condition is not None
    assert body is not None
    if left:
        joiner = " || " if guard.skips else " && "
        edits.replace(condition, f"({joiner.join(clean_text(unit, leaf) for leaf in left)})")
    elif guard.skips:
        edits.delete_line(guard.statement)
    else:
        start = guard.statement.start_byte
        edits.delete(Span(start, body.start_byte))
