"""Evaluate expressions of CUDA symbolically."""

from __future__ import annotations

from collections.abc import Callable

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Num, Unary
from kernelskill.algorithm.lifting.arithmetic import binary, condition, convert, negative
from kernelskill.algorithm.lifting.calls import call, scalar_function
from kernelskill.algorithm.lifting.casts import cast_to, combine, excerpt, listed_value
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.pairs import pair_operator
from kernelskill.algorithm.lifting.places import (
    address_of,
    component,
    place_of,
    read_place,
    row_of,
    write_place,
)
from kernelskill.algorithm.lifting.values import Aggregate, MemoryPlace, Poison, SlotPlace, Value
from kernelskill.algorithm.types import canonical, is_integer, is_known, promoted
from kernelskill.source.declarations import VariableDef
from kernelskill.source.expansion import parse_expression
from kernelskill.source.literals import read_number
from kernelskill.source.syntax import named, strip_parentheses
from kernelskill.source.unit import SourceUnit

_NAMED_NUMBERS = {
    "INFINITY": "float",
    "NAN": "float",
    "HUGE_VALF": "float",
    "HUGE_VAL": "double",
    "FLT_MAX": "float",
    "FLT_MIN": "float",
    "FLT_EPSILON": "float",
    "DBL_MAX": "double",
    "DBL_MIN": "double",
    "DBL_EPSILON": "double",
    "M_PI": "double",
    "M_E": "double",
    "M_SQRT2": "double",
    "M_SQRT1_2": "double",
    "M_2_SQRTPI": "double",
    "M_LOG2E": "double",
    "M_LN2": "double",
    "CUDART_INF_F": "float",
    "CUDART_PI_F": "float",
}
_NAMED_INTEGERS = {
    "INT_MAX": (2**31 - 1, "int"),
    "INT_MIN": (-(2**31), "int"),
    "UINT_MAX": (2**32 - 1, "unsigned"),
    "LLONG_MAX": (2**63 - 1, "long long"),
    "LLONG_MIN": (-(2**63), "long long"),
    "warpSize": (32, "int"),
    "true": (1, "bool"),
    "false": (0, "bool"),
    "CHAR_BIT": (8, "int"),
}
_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})


def evaluate(machine: Machine, node: Node) -> Value:
    """Return the value of an expression.

    Raises:
        CannotLift: It can't be followed, with the reason.
    """
    node = strip_parentheses(node)
    handler = _HANDLERS.get(node.type)
    if handler is None:
        raise machine.refuse(node, f"{_words(node.type)} {excerpt(machine, node)!r} is not understood")
    value = handler(machine, node)
    if isinstance(value, MemoryPlace | SlotPlace):
        value = read_place(machine, value)
    if isinstance(value, Poison):
        raise machine.refuse(node, value.reason)
    return value


def scalar_value(machine: Machine, node: Node) -> Expression:
    """Return the value of an expression that must be a scalar."""
    value = evaluate(machine, node)
    if not isinstance(value, Expression):
        raise machine.refuse(node, f"{excerpt(machine, node)!r} is used as a number")
    return value


def test_value(machine: Machine, node: Node) -> Expression:
    """Return a condition as a truth value, decided where the conditions on the way decide it."""
    test = condition(scalar_value(machine, node))
    known = machine.holds(test)
    return test if known is None else integers.constant(int(known), "bool")


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _child(machine: Machine, node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise machine.refuse(node, f"{excerpt(machine, node)!r} is not understood")
    return child


def _number(machine: Machine, node: Node) -> Value:
    literal = read_number(machine.text(node))
    if literal is None:
        raise machine.refuse(node, f"the literal {machine.text(node)!r} is not understood")
    kind = canonical(literal.type_name)
    if isinstance(literal.value, int):
        return integers.constant(literal.value, kind)
    if kind not in ("float", "double"):
        raise machine.refuse(node, f"the literal {machine.text(node)!r} is not understood")
    return Num(literal.text.replace("'", ""), kind)


def _character(machine: Machine, node: Node) -> Value:
    text = machine.text(node)
    if len(text) == 3:
        return integers.constant(ord(text[1]), "char")
    raise machine.refuse(node, f"the literal {text} is not understood")


def _keyword(machine: Machine, node: Node) -> Value:
    return integers.constant(int(node.type == "true"), "bool")


def _name(machine: Machine, node: Node) -> Value:
    name = machine.text(node)
    number = machine.find(name)
    if number is not None:
        value = machine.slots[number]
        if value is None:
            raise machine.refuse(node, f"{name!r} is read before it has a value")
        return value
    found = named_constant(machine, name)
    if found is None:
        raise machine.refuse(node, f"the name {name!r} is not understood")
    return found


def named_constant(machine: Machine, name: str) -> Value | None:
    """Return what a macro, an enumerator, a file constant or a name of CUDA's headers stands for."""
    macro = machine.macro(name)
    if macro is not None:
        if macro.is_function_like or macro.is_given:
            return None
        parsed = parse_expression(f"({macro.value})")
        if parsed is None:
            return None
        with machine.reading(parsed[0]):
            return evaluate(machine, parsed[1])
    for unit in machine.units:
        if name in unit.constants.enumerators:
            return integers.constant(unit.constants.enumerators[name], "int")
        variable = unit.constants.globals.get(name)
        if variable is not None and variable.initialiser is not None:
            return _file_constant(machine, unit, variable)
    plain = name.removeprefix("std::")
    if plain in _NAMED_INTEGERS:
        return integers.constant(*_NAMED_INTEGERS[plain])
    return Num(plain, _NAMED_NUMBERS[plain]) if plain in _NAMED_NUMBERS else None


def _file_constant(machine: Machine, unit: SourceUnit, variable: VariableDef) -> Value | None:
    layout = machine.types.layout(variable.base_type)
    initial = variable.initialiser
    if initial is not None and initial.type in ("argument_list", "initializer_list"):
        listed = named(initial)
        initial = listed[0] if len(listed) == 1 else None
    if layout is None or not layout.is_scalar or initial is None:
        return None
    with machine.reading(unit.syntax):
        value = evaluate(machine, initial)
    return convert(value, layout.kind) if isinstance(value, Expression) else None


def _field(machine: Machine, node: Node) -> Value:
    base, member = _child(machine, node, "argument"), machine.text(_child(machine, node, "field"))
    owner = machine.text(base)
    if owner in _BUILTINS and machine.find(owner) is None:
        found = machine.builtins.get(f"{owner}.{member}")
        if found is None:
            raise machine.refuse(node, f"{owner}.{member} is not understood here")
        return found
    if "->" in machine.text(node)[len(owner) :].split(member)[0] or base.type in (
        "subscript_expression",
        "pointer_expression",
    ):
        return read_place(machine, place_of(machine, node))
    return component(machine, evaluate(machine, base), member)


def _subscript(machine: Machine, node: Node) -> Value:
    base, listed = _child(machine, node, "argument"), _child(machine, node, "indices")
    row = row_of(machine, base, listed)
    if row is not None:
        return row
    return read_place(machine, place_of(machine, node))


def _pointer(machine: Machine, node: Node) -> Value:
    if machine.syntax.operator(node) == "&":
        return address_of(machine, place_of(machine, _child(machine, node, "argument")))
    return read_place(machine, place_of(machine, node))


def _unary(machine: Machine, node: Node) -> Value:
    operator = machine.syntax.operator(node)
    value = scalar_value(machine, _child(machine, node, "argument"))
    if operator == "-":
        return negative(value, machine.ranges)
    if operator == "+":
        return value
    if operator == "!":
        return integers.negated(condition(value))
    known = integers.value_of(value)
    if operator == "~" and is_integer(value.type):
        kind = promoted(value.type)
        return convert(integers.constant(~known), kind) if known is not None else Unary("~", value, kind)
    raise machine.refuse(node, f"the operator {operator!r} is not understood")


def _binary(machine: Machine, node: Node) -> Value:
    operator = machine.syntax.operator(node)
    operator = {"and": "&&", "or": "||"}.get(operator, operator)
    left, right = _child(machine, node, "left"), _child(machine, node, "right")
    if operator in ("&&", "||"):
        return _logical(machine, operator, left, right)
    first, second = evaluate(machine, left), evaluate(machine, right)
    if isinstance(first, Aggregate) and not any("operator" in unit.text for unit in machine.units):
        pair = pair_operator(
            operator, first, second, lambda name, values: scalar_function(machine, name, values)
        )
        if pair is not None:
            return pair
    return combine(machine, node, operator, first, second)


def _logical(machine: Machine, operator: str, left: Node, right: Node) -> Expression:
    first = test_value(machine, left)
    known = integers.value_of(first)
    if known is not None and bool(known) is (operator == "||"):
        return integers.constant(known, "bool")
    path = machine.path
    machine.path = (*path, *integers.conjuncts(first if operator == "&&" else integers.negated(first)))
    try:
        second = condition(scalar_value(machine, right))
    finally:
        machine.path = path
    return binary(operator, first, second, machine.ranges)


def _conditional(machine: Machine, node: Node) -> Value:
    test = test_value(machine, _child(machine, node, "condition"))
    sides = _child(machine, node, "consequence"), _child(machine, node, "alternative")
    known = integers.value_of(test)
    if known is not None:
        return evaluate(machine, sides[0 if known else 1])
    path, values = machine.path, []
    for side, taken in zip(sides, (test, integers.negated(test)), strict=True):
        machine.path = (*path, *integers.conjuncts(taken))
        values.append(evaluate(machine, side))
    machine.path = path
    chosen = machine.choose(test, values[0], values[1])
    if chosen is None:
        raise machine.refuse(node, f"{excerpt(machine, node)!r} is not understood")
    return chosen


def _cast(machine: Machine, node: Node) -> Value:
    kind = _child(machine, node, "type")
    return cast_to(machine, node, machine.text(kind), evaluate(machine, _child(machine, node, "value")))


def _size_of(machine: Machine, node: Node) -> Value:
    inner = node.child_by_field_name("type") or node.child_by_field_name("value")
    text = machine.text(inner).strip("() ") if inner is not None else ""
    if text.endswith("*"):
        return integers.constant(8, "unsigned long long")
    number = machine.find(text)
    if number is not None:
        variable = machine.variables[number]
        count = 1
        for extent in variable.shape:
            count *= extent
        if not variable.is_pointer and not is_known(variable.layout.kind):
            raise machine.refuse(node, f"the size of {text!r} is not understood")
        size = 8 if variable.is_pointer else variable.layout.size * count
        return integers.constant(size, "unsigned long long")
    layout = machine.types.layout(text)
    if layout is None:
        raise machine.refuse(node, f"the size of {text!r} is not understood")
    return integers.constant(layout.size, "unsigned long long")


def _assignment(machine: Machine, node: Node) -> Value:
    operator = machine.syntax.operator(node)[:-1]
    left, right = _child(machine, node, "left"), _child(machine, node, "right")
    value = evaluate(machine, right)
    place = place_of(machine, left)
    if operator:
        value = combine(machine, node, operator, read_place(machine, place), value)
    return write_place(machine, place, value)


def _update(machine: Machine, node: Node) -> Value:
    argument = _child(machine, node, "argument")
    place = place_of(machine, argument)
    before = read_place(machine, place)
    operator = machine.syntax.operator(node)[:1]
    after = combine(machine, node, operator, before, integers.constant(1))
    written = write_place(machine, place, after)
    is_prefix = node.start_byte < argument.start_byte
    return written if is_prefix else before


def _comma(machine: Machine, node: Node) -> Value:
    evaluate(machine, _child(machine, node, "left"))
    return evaluate(machine, _child(machine, node, "right"))


def _call(machine: Machine, node: Node) -> Value:
    value = call(machine, node)
    if value is None:
        raise machine.refuse(node, f"{excerpt(machine, node)!r} has no value")
    return value


def _misread(machine: Machine, node: Node) -> Value:
    """Evaluate what the grammar took for a declaration, as in `dim3 threads(TILE, ROWS)`."""
    parsed = parse_expression(machine.text(node))
    if parsed is None or parsed[1].type == node.type:
        raise machine.refuse(node, f"{excerpt(machine, node)!r} is not understood")
    with machine.reading(parsed[0]):
        return evaluate(machine, parsed[1])


def _braced(machine: Machine, node: Node) -> Value:
    kind, listed = _child(machine, node, "type"), _child(machine, node, "value")
    layout = machine.types.layout(machine.text(kind))
    if layout is None:
        raise machine.refuse(node, f"the type {machine.text(kind)!r} is not understood")
    return listed_value(machine, layout, listed)


_HANDLERS: dict[str, Callable[[Machine, Node], Value]] = {
    "number_literal": _number,
    "char_literal": _character,
    "true": _keyword,
    "false": _keyword,
    "identifier": _name,
    "qualified_identifier": _name,
    "type_identifier": _name,
    "parameter_declaration": _misread,
    "type_descriptor": _misread,
    "field_expression": _field,
    "subscript_expression": _subscript,
    "pointer_expression": _pointer,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "conditional_expression": _conditional,
    "cast_expression": _cast,
    "sizeof_expression": _size_of,
    "assignment_expression": _assignment,
    "update_expression": _update,
    "comma_expression": _comma,
    "call_expression": _call,
    "compound_literal_expression": _braced,
}
