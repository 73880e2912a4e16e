"""The run of memory that an access of a loop touches, as C text that can be evaluated before the loop.

A run is given by the elements of the first and the last turn: an index that is linear in the loop's
variable takes its extremes there, whatever the sign of its factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernelskill.skills.expression_types import (
    ExpressionTypes,
    common_type,
    is_integer,
    is_unsigned,
    is_wide,
    plain_type,
)
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.accesses import Access
from kernelskill.source.affine import index_polynomial, index_reader
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, Span, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_BUILTIN_SIZES = frozenset(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz")


class Order(StrEnum):
    """How the addresses of the two end elements lie."""

    ONE = "one"
    """The loop touches one element."""
    RISING = "rising"
    FALLING = "falling"
    EITHER = "either"
    """Known at run time only."""


@dataclass(frozen=True)
class Run:
    """The elements that an access can touch while a loop runs."""

    base: str
    first: str
    """Text of the element of the first turn."""
    last: str
    """Text of the element that no turn goes beyond."""
    size: str
    """C text for the bytes of an element."""
    order: Order


@dataclass(frozen=True)
class Turns:
    """The loop variable's first value, and one that no turn goes beyond."""

    first: str
    last: str
    """As whole indices."""
    wide_first: str
    wide_last: str
    """The same for use inside arithmetic, in 64 bits."""
    rising: bool


def run_of(unit: SourceUnit, kernel: KernelDef, loop: Loop, access: Access) -> Run:
    """Return the run that an access inside a loop touches.

    Raises:
        SkillRefused: It has no bound that is linear in the loop's variable and known before the loop.
    """
    text = unit.text_of(access.node)
    where = f"line {access.line}: what {text} touches"
    argument = access.node.child_by_field_name("argument")
    if access.node.type not in ("subscript_expression", "pointer_expression") or argument is None:
        raise SkillRefused(f"{where} can't be bounded: it is no plain element")
    size = f"sizeof({access.element_type or text})"
    uses = _uses_of_variable(unit, kernel, loop, access.node)
    for part in (argument, *access.indices):
        if not _is_known_before(unit, kernel, loop, part, uses):
            raise SkillRefused(f"{where} can't be bounded before the loop on line {loop.line}")
    if not uses:
        own = _with(unit, access.node, [], "")
        return Run(access.base, own, own, size, Order.ONE)
    atom = index_reader(unit, kernel).loop_atom(loop)
    factor = access.index.coefficient(atom) if access.index is not None else None
    if factor is None or access.node.type != "subscript_expression":
        raise SkillRefused(f"{where} is not linear in {loop.variable!r}")
    _refuse_narrow(unit, kernel, access, uses)
    turns = turns_of(unit, kernel, loop)
    order = Order.EITHER
    if factor.value is not None and factor.value != 0:
        # A loop that starts by the thread is counted in turns, any other by its variable.
        rising = turns.rising or atom != loop.variable
        order = Order.RISING if (factor.value > 0) == rising else Order.FALLING
    bare = len(uses) == 1 and uses[0] in [strip_parentheses(index) for index in access.indices]
    first, last = (turns.first, turns.last) if bare else (turns.wide_first, turns.wide_last)
    ends = [_with(unit, access.node, uses, value) for value in (first, last)]
    return Run(access.base, ends[0], ends[1], size, order)


def _uses_of_variable(unit: SourceUnit, kernel: KernelDef, loop: Loop, node: Node) -> list[Node]:
    flow = flow_of(unit, kernel)
    return [
        entry
        for entry in walk(node)
        if entry.type == "identifier" and loop.declared is not None and flow.resolve(entry) is loop.declared
    ]


def _is_known_before(unit: SourceUnit, kernel: KernelDef, loop: Loop, part: Node, uses: list[Node]) -> bool:
    """Whether all of an expression but the loop's variable is the same before and in the loop."""
    if part in uses:
        return True
    if not any(entry in uses for entry in walk(part)):
        return is_invariant(unit, kernel, part, loop.span)
    kinds = ("binary_expression", "parenthesized_expression", "cast_expression", "unary_expression")
    inner = [child for child in part.named_children if child.type not in ("comment", "type_descriptor")]
    return part.type in kinds and all(_is_known_before(unit, kernel, loop, one, uses) for one in inner)


def _refuse_narrow(unit: SourceUnit, kernel: KernelDef, access: Access, uses: list[Node]) -> None:
    """Decline where an index is computed modulo 2^32: it may not be linear, whatever it looks like.

    Raises:
        SkillRefused: It is.
    """
    types = ExpressionTypes(unit, kernel)
    for use in uses:
        node, parent = use, use.parent
        while parent is not None and node not in access.indices:
            if parent.type == "binary_expression" and types.of(parent) not in (
                "int",
                "long",
                "long long",
                "unsigned long",
                "unsigned long long",
            ):
                raise SkillRefused(
                    f"line {access.line}: {unit.text_of(parent)} is computed in a type that may wrap around"
                )
            if parent.type == "cast_expression" and not is_wide(types.of(parent)):
                raise SkillRefused(f"line {access.line}: {unit.text_of(parent)} may cut its value off")
            node, parent = parent, parent.parent


def turns_of(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> Turns:
    """Return the values between which a loop's variable stays.

    Raises:
        SkillRefused: They can't be told before the loop.
    """
    reason = f"the bounds of the loop on line {loop.line} can't be told before it"
    start, bound, declared = loop.start, loop.bound, loop.declared
    inside = isinstance(declared, VariableDef) and loop.span.contains(declared.name_span)
    if start is None or bound is None or not loop.is_counted or not inside or loop.kind.value != "for":
        raise SkillRefused(reason)
    assert isinstance(declared, VariableDef)
    types = ExpressionTypes(unit, kernel)
    own, start_type, bound_type = plain_type(declared.base_type), types.of(start), types.of(bound)
    known = all(is_integer(kind) for kind in (own, start_type, bound_type))
    if not known or not all(is_invariant(unit, kernel, part, loop.span) for part in (start, bound)):
        raise SkillRefused(reason)
    rising = _direction(unit, kernel, loop)
    end = _operand(unit, bound)
    compared = common_type(own, bound_type)
    if is_unsigned(compared) and not is_unsigned(bound_type):
        end = f"({compared}){end}"
    shift = "" if "=" in loop.comparison and loop.comparison != "!=" else " - 1" if rising else " + 1"
    last, wide_last = end + shift, f"((long long){end}{shift})"
    if bound.type == "number_literal" and loop.bound_value is not None and shift:
        last = str(loop.bound_value + (-1 if rising else 1))
        wide_last = f"{last}LL"
    first = unit.text_of(start)
    first = first if start_type == own else f"({declared.base_type}){_operand(unit, start)}"
    wide_first = f"(long long){_operand(unit, start)}"
    if start.type == "number_literal" and loop.start_value is not None:
        first = str(loop.start_value)
        wide_first = first if loop.start_value == 0 else f"{first}LL"
    return Turns(first, last, wide_first, wide_last, rising)


def _direction(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> bool:
    """Return whether the variable rises towards its bound.

    Raises:
        SkillRefused: It may move away from it, or past it.
    """
    step = loop.signed_step
    if step is None and loop.step is not None and loop.step_operator in ("+", "-"):
        amount = index_polynomial(unit, kernel, loop.step)
        sizes = all(atom.text in _BUILTIN_SIZES for atom in amount.atoms)
        if sizes and amount.terms and all(factor > 0 for _, factor in amount.terms):
            step = 1 if loop.step_operator == "+" else -1
    rising = loop.comparison in ("<", "<=") or (loop.comparison == "!=" and step == 1)
    falling = loop.comparison in (">", ">=") or (loop.comparison == "!=" and step == -1)
    if step is None or not ((rising and step > 0) or (falling and step < 0)):
        raise SkillRefused(f"where the loop on line {loop.line} goes can't be told before it")
    return rising


def _operand(unit: SourceUnit, node: Node) -> str:
    text = unit.text_of(node)
    simple = node.type in ("identifier", "number_literal", "field_expression", "parenthesized_expression")
    return text if simple else f"({text})"


def _with(unit: SourceUnit, node: Node, uses: list[Node], value: str) -> str:
    """Return the text of an element with the loop's variable replaced, on one line and without comments."""
    text, position = "", node.start_byte
    for entry in walk(node):
        if entry.type == "comment" or entry in uses:
            text += unit.text_of(Span(position, entry.start_byte)) + (value if entry in uses else "")
            position = entry.end_byte
    return " ".join((text + unit.text_of(Span(position, node.end_byte))).split())
