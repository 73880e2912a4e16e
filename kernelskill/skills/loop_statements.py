"""Read what the body of a loop does statement by statement: locals, sums, maxima, stores."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.skills.expression_types import called_name
from kernelskill.source.declarations import VariableDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.loops import Loop, loop_body_statements
from kernelskill.source.scopes import Declared, flow_of
from kernelskill.source.syntax import Node, named, strip_parentheses
from kernelskill.source.unit import SourceUnit

_MAXIMA = frozenset({"fmaxf", "fmax", "max"})


def split_body(loop: Loop) -> tuple[list[Node], list[Node]]:
    """Return the declarations and the other statements of a body."""
    statements = [node for node in loop_body_statements(loop) if node.type != "comment"]
    declarations = [node for node in statements if node.type == "declaration"]
    return declarations, [node for node in statements if node.type != "declaration"]


def local_values(unit: SourceUnit, kernel: KernelDef, declarations: Sequence[Node]) -> dict[int, Node]:
    """Return the value of each variable that the declarations give one for good, by the id of its declaration."""
    flow = flow_of(unit, kernel)
    return {
        id(variable): variable.initialiser
        for variable in kernel.locals
        if variable.declaration in declarations
        and variable.initialiser is not None
        and not variable.dimensions
        and not variable.is_reference
        and flow.is_constant(variable)
    }


def only_statement(node: Node) -> Node:
    """Return the one statement inside braces, or the node itself."""
    while node.type == "compound_statement" and len(named(node)) == 1:
        node = named(node)[0]
    return node


def expression_of(statement: Node) -> Node | None:
    """Return the expression of an expression statement."""
    inner = named(statement)
    return inner[0] if statement.type == "expression_statement" and len(inner) == 1 else None


def addition(unit: SourceUnit, statement: Node) -> tuple[Node, Node] | None:
    """Return target and addend of `s += e;`, `s = s + e;` and `s = e + s;`."""
    node = expression_of(statement)
    left = node.child_by_field_name("left") if node is not None else None
    right = node.child_by_field_name("right") if node is not None else None
    if node is None or node.type != "assignment_expression" or left is None or right is None:
        return None
    if unit.operator(node) == "+=":
        return left, right
    value = strip_parentheses(right)
    sides = [value.child_by_field_name("left"), value.child_by_field_name("right")]
    if unit.operator(node) != "=" or value.type != "binary_expression" or unit.operator(value) != "+":
        return None
    own = unit.text_of(left)
    for side, other in (sides, sides[::-1]):
        if side is not None and other is not None and unit.text_of(strip_parentheses(side)) == own:
            return left, other
    return None


def named_variable(unit: SourceUnit, kernel: KernelDef, node: Node | None) -> Declared | None:
    """Return the variable that an expression is, parentheses left out."""
    node = strip_parentheses(node) if node is not None else None
    if node is None or node.type != "identifier":
        return None
    return flow_of(unit, kernel).resolve(node)


def maximum(unit: SourceUnit, kernel: KernelDef, statement: Node) -> tuple[VariableDef, Node] | None:
    """Return the variable that a statement raises to a value where that is larger, and the value."""
    statement = only_statement(statement)
    if statement.type == "if_statement":
        return _guarded_maximum(unit, kernel, statement)
    node = expression_of(statement)
    if node is None or node.type != "assignment_expression" or unit.operator(node) != "=":
        return None
    target = named_variable(unit, kernel, node.child_by_field_name("left"))
    right = node.child_by_field_name("right")
    value = strip_parentheses(right) if right is not None else None
    if not isinstance(target, VariableDef) or value is None:
        return None
    larger = _larger(unit, kernel, value, target)
    return (target, larger) if larger is not None else None


def _larger(unit: SourceUnit, kernel: KernelDef, value: Node, target: Declared) -> Node | None:
    """Return what `max(target, e)` and `e > target ? e : target` compare with the target."""
    if value.type == "call_expression" and called_name(unit, value).split("<")[0] in _MAXIMA:
        listed = value.child_by_field_name("arguments")
        sides = named(listed) if listed is not None else []
        others = [side for side in sides if named_variable(unit, kernel, side) is not target]
        return others[0] if len(sides) == 2 and len(others) == 1 else None
    if value.type != "conditional_expression":
        return None
    condition, chosen = value.child_by_field_name("condition"), value.child_by_field_name("consequence")
    kept = value.child_by_field_name("alternative")
    larger = _compared(unit, kernel, condition, target)
    if larger is None or chosen is None or named_variable(unit, kernel, kept) is not target:
        return None
    return larger if _same_text(unit, larger, chosen) else None


def _compared(unit: SourceUnit, kernel: KernelDef, condition: Node | None, target: Declared) -> Node | None:
    """Return `e` of `e > target` and `target < e`."""
    test = strip_parentheses(condition) if condition is not None else None
    if test is None or test.type != "binary_expression":
        return None
    left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
    if unit.operator(test) in (">", ">=") and named_variable(unit, kernel, right) is target:
        return left
    if unit.operator(test) in ("<", "<=") and named_variable(unit, kernel, left) is target:
        return right
    return None


def _guarded_maximum(unit: SourceUnit, kernel: KernelDef, statement: Node) -> tuple[VariableDef, Node] | None:
    """Read `if (e > target) target = e;`."""
    body = statement.child_by_field_name("consequence")
    if body is None or statement.child_by_field_name("alternative") is not None:
        return None
    node = expression_of(only_statement(body))
    if node is None or node.type != "assignment_expression" or unit.operator(node) != "=":
        return None
    target = named_variable(unit, kernel, node.child_by_field_name("left"))
    value = node.child_by_field_name("right")
    if not isinstance(target, VariableDef) or value is None:
        return None
    larger = _compared(unit, kernel, statement.child_by_field_name("condition"), target)
    return (target, larger) if larger is not None and _same_text(unit, larger, value) else None


def _same_text(unit: SourceUnit, one: Node, other: Node) -> bool:
    texts = [" ".join(unit.text_of(strip_parentheses(node)).split()) for node in (one, other)]
    return texts[0] == texts[1]
