"""Floating-point divisions by what a loop, or the source, holds fixed."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_pure
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.text_changes import clean_text
from kernelskill.skills.transformation import SkillContext
from kernelskill.source.definitions import KernelDef
from kernelskill.source.literals import read_number
from kernelskill.source.loops import Loop, enclosing_loops, find_loops
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

FLOATS = ("float", "double")
_SMALLEST = {"float": 2.0**-126, "double": 2.0**-1022}
_LARGEST = {"float": 2.0**126, "double": 2.0**1022}


@dataclass(frozen=True)
class Division:
    """One `a / d` or `a /= d`."""

    node: Node
    left: Node
    right: Node
    kind: str
    """`float` or `double`: the type in which it divides."""
    is_compound: bool


@dataclass(frozen=True)
class DivisorGroup:
    """All divisions of one type by one value."""

    divisor: str
    """Its text."""
    kind: str
    is_integer: bool
    loop: Loop | None
    """The loop before which the inverse is computed; None for a constant."""
    divisions: tuple[Division, ...]

    @property
    def key(self) -> str:
        """Names the group within its kernel."""
        place = self.loop.key if self.loop is not None else "constant"
        return f"{place}/{''.join(self.divisor.split())}"


def read_division(types: ExpressionTypes, node: Node) -> Division | None:
    """Return a node as a division of floats or doubles; None where it is none."""
    compound = node.type == "assignment_expression" and types.unit.operator(node) == "/="
    if not compound and (node.type != "binary_expression" or types.unit.operator(node) != "/"):
        return None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return None
    kinds = types.of(left), types.of(right)
    if not all(kind in FLOATS or is_integer(kind) for kind in kinds) or kinds[0] not in FLOATS:
        return None
    kind = "double" if "double" in kinds else "float"
    if compound and (kind != kinds[0] or not is_pure(types.unit, left)):
        return None
    return Division(node, left, right, kind, compound)


def find_groups(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[DivisorGroup]:
    """Return the divisions of a kernel by invariant variables of a loop and by constants, grouped by divisor."""
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    loops = find_loops(unit, kernel)
    found: dict[tuple[str, str, str], tuple[Loop | None, bool, list[Division]]] = {}
    for node in walk(kernel.body) if kernel.body is not None else ():
        division = read_division(types, node)
        if division is None or unit.is_locked(node):
            continue
        right = strip_parentheses(division.right)
        text = clean_text(unit, right)
        loop = None
        if _constant(unit, right, division.kind) is None:
            loop = _loop_before(unit, kernel, loops, division, types)
            if loop is None:
                continue
        elif _is_constant(unit, division.left):
            continue
        key = (loop.key if loop is not None else "", text, division.kind)
        entry = found.setdefault(key, (loop, is_integer(types.of(right)), []))
        entry[2].append(division)
    return [
        DivisorGroup(text, kind, whole and loop is not None, loop, tuple(divisions))
        for (_, text, kind), (loop, whole, divisions) in found.items()
    ]


def _constant(unit: SourceUnit, node: Node, kind: str) -> float | None:
    """Return the value of a literal or macro whose inverse is a normal number, powers of two left out."""
    text = clean_text(unit, node).strip("()+ ")
    macro = unit.macro(text)
    if macro is not None and not macro.is_function_like and not macro.is_given:
        text = macro.value.strip("()+ ")
    number = read_number(text.lstrip("- "))
    if number is None:
        return None
    value = float(number.value)
    mantissa = value.hex().split("p")[0]
    exact = mantissa in ("0x1.0000000000000", "0x0.0")
    return value if not exact and _SMALLEST[kind] < abs(value) < _LARGEST[kind] else None


def _is_constant(unit: SourceUnit, node: Node) -> bool:
    """Whether the compiler folds an expression: it names and calls nothing but macros of numbers."""
    for entry in walk(node):
        if entry.type == "identifier":
            macro = unit.macro(unit.text_of(entry))
            if macro is None or read_number(macro.value.strip("()+- ")) is None:
                return False
        if entry.type in ("call_expression", "subscript_expression"):
            return False
    return True


def _loop_before(
    unit: SourceUnit, kernel: KernelDef, loops: tuple[Loop, ...], division: Division, types: ExpressionTypes
) -> Loop | None:
    """Return the outermost loop round a division that leaves its divisor, a plain variable, alone."""
    right = strip_parentheses(division.right)
    if right.type != "identifier" or flow_of(unit, kernel).resolve(right) is None:
        return None
    if types.of(right) in FLOATS:
        if not is_pure(unit, division.left):
            return None  # the dividend stands in both branches of the guard
    elif not is_integer(types.of(right)):
        return None
    for loop in enclosing_loops(loops, division.node):
        if is_invariant(unit, kernel, right, loop.span):
            return loop
    return None
