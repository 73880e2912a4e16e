"""Inline calls of the user's own device functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tree_sitter import Node

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.machine import RETURNED, Machine
from kernelskill.algorithm.lifting.places import place_of
from kernelskill.algorithm.lifting.types import TypeTable
from kernelskill.algorithm.lifting.values import (
    Array,
    Layout,
    LocalPointer,
    MemoryPlace,
    Pointer,
    SlotPlace,
    Struct,
    Value,
    Variable,
    scalar,
)
from kernelskill.algorithm.model import CannotLift
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.expansion import parse_expression
from kernelskill.source.syntax import named
from kernelskill.source.unit import SourceUnit

_DEPTH = 8


@dataclass(frozen=True)
class Target:
    """A function of the user's with the file that defines it."""

    unit: SourceUnit
    function: FunctionDef


def target_of(machine: Machine, function: Node) -> Target | None:
    """Return the user's function that a call names; None for functions of CUDA."""
    if function.type == "template_function":
        inner = function.child_by_field_name("name")
        function = inner if inner is not None else function
    text = machine.text(function).split("<")[0].removeprefix("::")
    scope, _, name = text.rpartition("::")
    owner = machine.types.resolve(scope) if scope else ""
    qualified = f"{owner}::{name}" if owner else name
    known = machine.functions()
    found = [(u, f) for u, f in known if qualified in (f.name, f.qualified_name)]
    if not found:
        found = [(u, f) for u, f in known if f.qualified_name.endswith(f"::{qualified}")]
    if len(found) > 1:
        raise CannotLift(f"several functions are named {name!r}")
    return Target(*found[0]) if found else None


def inline(
    machine: Machine, node: Node, callee: Target, arguments: list[Node], function: Node
) -> Value | None:
    """Execute a function's body with the arguments of a call.

    Returns:
        What it returns; None for a function without a result.

    Raises:
        CannotLift: It is recursive, or its body can't be followed.
    """
    target = callee.function
    if target.name in machine.calls or len(machine.calls) >= _DEPTH:
        raise machine.refuse(node, f"{target.name!r} is recursive or calls too deeply")
    if target.is_opaque or target.body is None or isinstance(target, KernelDef) or machine.runner is None:
        raise machine.refuse(node, f"the body of {target.name!r} is not understood: {target.opaque_reason}")
    if len(arguments) > len(target.parameters):
        raise machine.refuse(node, f"the call of {target.name!r} has too many arguments")
    values = [
        _argument(machine, parameter, argument)
        for parameter, argument in zip(target.parameters, arguments, strict=False)
    ]
    saved = (machine.scopes, machine.types, machine.calls, machine.exited, machine.loops_at_call)
    outer, machine.outer_scopes = machine.outer_scopes, machine.scopes
    machine.loops_at_call = len(machine.loops)
    types = _types(machine, target, function, values)
    machine.scopes, machine.types = [{}], types
    machine.calls = (*machine.calls, target.name)
    try:
        _declare_constants(machine, node, target, function)
        with machine.reading(callee.unit.syntax):
            _declare(machine, node, target, values)
        result = _result(machine, target)
        with machine.reading(callee.unit.syntax):
            machine.runner(machine, target.body)
        value = machine.slots.pop(result) if result is not None else None
    finally:
        machine.scopes, machine.types, machine.calls, machine.exited, machine.loops_at_call = saved
        machine.outer_scopes = outer
    if result is not None and value is None:
        raise machine.refuse(node, f"{target.name!r} does not return a value on every way")
    return value


def _argument(machine: Machine, parameter: ParameterDef, argument: Node) -> Value:
    """Return an argument; for a reference what it refers to."""
    if parameter.is_reference and not parameter.is_const:
        return place_of(machine, argument)
    value = machine.value(argument)
    if parameter.is_pointer and isinstance(value, Array):
        place = place_of(machine, argument)
        if isinstance(place, SlotPlace):
            return LocalPointer(place.number, place.part or 0, value.layout)
    return value


def _types(machine: Machine, target: FunctionDef, function: Node, values: list[Value]) -> TypeTable:
    """Return the types inside a function: template parameters as given or as the arguments say."""
    if not target.template_parameters:
        return replace(machine.types, given={**machine.types.given})
    given: dict[str, str] = {}
    listed = function.child_by_field_name("arguments") if function.type == "template_function" else None
    explicit = [machine.text(entry) for entry in named(listed)] if listed is not None else []
    for parameter, text in zip(target.template_parameters, explicit, strict=False):
        if parameter.kind == "typename":
            given[parameter.name] = machine.types.resolve(text)
    for declared, value in zip(target.parameters, values, strict=False):
        names = {p.name for p in target.template_parameters if p.kind == "typename"} - set(given)
        if declared.pointee_type in names:
            kind = _type_name(value)
            if kind:
                given[declared.pointee_type] = kind
    return replace(machine.types, given=given)


def _type_name(value: Value) -> str:
    if isinstance(value, Expression):
        return value.type
    layout = getattr(value, "layout", None)
    return layout.name if isinstance(layout, Layout) else ""


def _declare_constants(machine: Machine, node: Node, target: FunctionDef, function: Node) -> None:
    """Declare template parameters that are numbers."""
    listed = function.child_by_field_name("arguments") if function.type == "template_function" else None
    given = named(listed) if listed is not None else []
    for position, parameter in enumerate(target.template_parameters):
        if parameter.kind == "typename":
            continue
        layout = machine.types.layout(parameter.kind)
        text = machine.text(given[position]) if position < len(given) else parameter.default
        parsed = parse_expression(text) if text else None
        if layout is None or parsed is None:
            raise machine.refuse(node, f"the template parameter {parameter.name!r} is not known")
        scopes, machine.scopes = machine.scopes, machine.outer_scopes
        with machine.reading(parsed[0]):
            value = machine.number(parsed[1])
        machine.scopes = scopes
        machine.declare(Variable(parameter.name, layout), convert(value, layout.kind))


def _declare(machine: Machine, node: Node, target: FunctionDef, values: list[Value]) -> None:
    for position, parameter in enumerate(target.parameters):
        if position < len(values):
            value = values[position]
        elif parameter.default is not None:
            value = machine.value(parameter.default)
        else:
            raise machine.refuse(node, f"the call of {target.name!r} has too few arguments")
        _declare_one(machine, node, parameter, value)


def _declare_one(machine: Machine, node: Node, parameter: ParameterDef, value: Value) -> None:
    if isinstance(value, Struct):
        machine.declare(Variable(parameter.name, Layout(value.name, "struct")), value)
        return
    layout = machine.types.layout(parameter.pointee_type)
    if layout is None:
        raise machine.refuse(node, f"the type {parameter.type_text!r} is not understood")
    if isinstance(value, SlotPlace) and value.part is None:
        machine.scopes[-1][parameter.name] = value.number
        return
    if isinstance(value, Expression) and not parameter.is_pointer:
        value = convert(value, layout.kind)
    elif parameter.is_pointer and not isinstance(value, Pointer | MemoryPlace | LocalPointer):
        raise machine.refuse(node, f"the argument for {parameter.name!r} is not understood")
    machine.declare(Variable(parameter.name, layout, parameter.is_pointer), value)


def _result(machine: Machine, target: FunctionDef) -> int | None:
    text = target.return_type
    if text.split()[-1:] == ["void"]:
        return None
    layout = machine.types.layout(text.rstrip("*& "))
    is_pointer = text.endswith("*")
    if layout is None and "auto" in text:
        layout = scalar("auto")
    if layout is None:
        raise CannotLift(f"the type {text!r} of {target.name!r} is not understood")
    return machine.declare(Variable(RETURNED, layout, is_pointer), None)
