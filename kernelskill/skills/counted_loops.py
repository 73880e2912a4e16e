"""Loops that count up to a bound: how many turns are left, and what a later turn's variable is, as C text."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelskill.skills.expression_types import (
    ExpressionTypes,
    common_type,
    is_integer,
    is_pure,
    is_unsigned,
    is_wide,
    plain_type,
)
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, LoopKind, find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of, strip_parentheses
from kernelskill.source.unit import SourceUnit

_BUILTIN_SIZES = frozenset(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz")
_SIMPLE = frozenset({"identifier", "number_literal", "field_expression", "parenthesized_expression"})


@dataclass(frozen=True)
class CountedLoop:
    """A `for` that declares its variable, counts it up by a positive step and ends at a bound."""

    loop: Loop
    variable: VariableDef
    kind: str
    """Type of the variable as written."""
    start: Node = field(repr=False)
    first: str
    """Text of the first value, of the variable's type."""
    bound: str
    """Text of the bound, an operand."""
    step: str
    """Text of the step, an operand; `1` for `++`."""
    is_plain: bool
    """Whether the first value is made of plain variables, so that it can be written again."""
    is_inclusive: bool
    difference: str
    """Text that turns the bound into an operand of a difference that can't overflow."""
    is_unsigned: bool

    def has_turns_left(self, variable: str, turns: int) -> str:
        """Return C text for: a turn begins with this value, and `turns` follow it."""
        begins = f"{variable} {self.loop.comparison} {self.bound}"
        return f"{begins} && {self.follows(variable, turns)}"

    def follows(self, variable: str, turns: int) -> str:
        """Return C text for: a turn that has begun with this value is followed by `turns` others."""
        if self.step == "1" and turns == 1:
            return f"{variable} < {self.bound}" if self.is_inclusive else f"{variable} + 1 < {self.bound}"
        if self.step.isdigit():
            distance = str(turns * int(self.step))
        else:
            distance = f"{turns}{'ULL' if self.is_unsigned else 'LL'} * {self.step}"
        sign = ">=" if self.is_inclusive else ">"
        return f"{self.difference}{self.bound} - {variable} {sign} {distance}"

    def later(self, variable: str, turns: str) -> str:
        """Return C text, to be assigned to a variable of the type, for the value some turns later."""
        if self.step == "1":
            return f"{variable} + {turns}"
        if turns.isdigit() and self.step.isdigit():
            return f"{variable} + {int(turns) * int(self.step)}"
        if turns == "1":
            return f"{variable} + {self.step}"
        factor = turns if self.step.isdigit() else f"({self.kind}){turns}"
        return f"{variable} + {factor} * {self.step}"


def read_counted(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> CountedLoop:
    """Return what a loop counts.

    Raises:
        SkillRefused: It is another kind of loop, or one whose end can't be told from plain variables.
    """
    where = f"the loop on line {loop.line}"
    declared, start, bound = loop.declared, loop.start, loop.bound
    inside = isinstance(declared, VariableDef) and loop.span.contains(declared.name_span)
    if loop.kind is not LoopKind.FOR or not loop.is_counted or not inside or start is None or bound is None:
        raise SkillRefused(f"{where} does not count a variable of its own up to a bound")
    assert isinstance(declared, VariableDef)
    one = len(declared.declaration.children_by_field_name("declarator")) == 1
    in_head = loop.step_statement is not None and not loop.body_span.contains(span_of(loop.step_statement))
    if not one or not in_head or loop.comparison not in ("<", "<="):
        raise SkillRefused(f"{where} does not count one variable up to a bound")
    types = ExpressionTypes(unit, kernel)
    own, other = plain_type(declared.base_type), types.of(bound)
    common = common_type(own, other)
    if not is_integer(own) or common is None or not is_integer(common) or common_type(own, "int") != own:
        raise SkillRefused(f"{where} counts in a type that can't be told")
    if not is_invariant(unit, kernel, bound, loop.span) or not is_pure(unit, start):
        raise SkillRefused(f"the bounds of {where} are more than plain variables")
    if is_unsigned(own) and not is_unsigned(common):
        raise SkillRefused(f"{where} may wrap around before it ends")
    first = unit.text_of(start)
    if types.of(start) != own:
        first = f"({declared.base_type}){_operand(unit, start)}"
    return CountedLoop(
        loop=loop,
        variable=declared,
        kind=declared.base_type,
        start=start,
        first=first,
        bound=_operand(unit, bound),
        step=_step(unit, kernel, loop),
        is_plain=is_invariant(unit, kernel, start, loop.span),
        is_inclusive=loop.comparison == "<=",
        difference="" if is_wide(common) or is_unsigned(common) else "(long long)",
        is_unsigned=is_unsigned(common),
    )


def _operand(unit: SourceUnit, node: Node) -> str:
    text = " ".join(unit.text_of(node).split())
    return text if node.type in _SIMPLE else f"({text})"


def _step(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> str:
    """Return the step as an operand.

    Raises:
        SkillRefused: It is not certain to be positive.
    """
    if loop.step_operator == "+" and loop.step_value is not None and loop.step_value > 0:
        return str(loop.step_value)
    if loop.step_operator == "+" and loop.step is not None:
        amount = index_polynomial(unit, kernel, loop.step)
        sizes = all(atom.text in _BUILTIN_SIZES for atom in amount.atoms)
        if sizes and amount.terms and all(factor > 0 for _, factor in amount.terms):
            return _operand(unit, loop.step)
    raise SkillRefused(f"the step of the loop on line {loop.line} is not certain to be positive")


def is_tail(unit: SourceUnit, kernel: KernelDef, loop: Loop) -> bool:
    """Whether a loop goes on where another loop before it has stopped."""
    start = strip_parentheses(loop.start) if loop.start is not None else None
    if start is None or start.type != "identifier":
        return False
    flow = flow_of(unit, kernel)
    declared = flow.resolve(start)
    writes = flow.writes_to(declared) if declared is not None else ()
    return any(
        other.span.contains(span_of(write.node)) and other.span.end <= loop.span.start
        for other in find_loops(unit, kernel)
        for write in writes
    )
