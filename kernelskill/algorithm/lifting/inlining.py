"""Inline calls of the user's own device functions."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.machine import RETURNED, Machine
from kernelskill.algorithm.lifting.places import place_of
from kernelskill.algorithm.lifting.types import TypeTable
from kernelskill.algorithm.lifting.values import Layout, MemoryPlace, Pointer, Value, Variable, scalar
from kernelskill.algorithm.model import CannotLift
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.syntax import named

_DEPTH = 8


def target_of(machine: Machine, function: Node) -> FunctionDef | None:
    """Return the user's function that a call names; None for functions of CUDA."""
    if function.type == "template_function":
        inner = function.child_by_field_name("name")
        function = inner if inner is not None else function
    text = machine.text(function).split("<")[0].removeprefix("::")
    scope, _, name = text.rpartition("::")
    owner = machine.types.resolve(scope) if scope else ""
    qualified = f"{owner}::{name}" if owner else name
    found = [f for f in machine.unit.functions if qualified in (f.name, f.qualified_name)]
    if not found:
        found = [f for f in machine.unit.functions if f.qualified_name.endswith(f"::{qualified}")]
    if len(found) > 1:
        raise CannotLift(f"several functions are named {name!r}")
    return found[0] if found else None


def inline(
    machine: Machine, node: Node, target: FunctionDef, arguments: list[Node], function: Node
) -> Value | None:
    """Execute a function's body with the arguments of a call.

    Returns:
        What it returns; None for a function without a result.

    Raises:
        CannotLift: It is recursive, or its body can't be followed.
    """
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
    machine.loops_at_call = len(machine.loops)
    types = _types(machine, target, function, values)
    machine.scopes, machine.types = [{}], types
    machine.calls = (*machine.calls, target.name)
    try:
        _declare(machine, node, target, values)
        result = _result(machine, target)
        with machine.reading(machine.unit.syntax):
            machine.runner(machine, target.body)
        value = machine.slots.pop(result) if result is not None else None
    finally:
        machine.scopes, machine.types, machine.calls, machine.exited, machine.loops_at_call = saved
    if result is not None and value is None:
        raise machine.refuse(node, f"{target.name!r} does not return a value on every way")
    return value


def _argument(machine: Machine, parameter: ParameterDef, argument: Node) -> Value:
    """Return an argument; for a reference what it refers to."""
    if parameter.is_reference and not parameter.is_const:
        place = place_of(machine, argument)
        if isinstance(place, MemoryPlace):
            return place
        raise machine.refuse(argument, f"{machine.text(argument)!r} is passed by reference")
    return machine.value(argument)


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


def _declare(machine: Machine, node: Node, target: FunctionDef, values: list[Value]) -> None:
    for position, parameter in enumerate(target.parameters):
        layout = machine.types.layout(parameter.pointee_type)
        if layout is None:
            raise machine.refuse(node, f"the type {parameter.type_text!r} is not understood")
        if position < len(values):
            value = values[position]
        elif parameter.default is not None:
            with machine.reading(machine.unit.syntax):
                value = machine.value(parameter.default)
        else:
            raise machine.refuse(node, f"the call of {target.name!r} has too few arguments")
        if isinstance(value, Expression) and not parameter.is_pointer:
            value = convert(value, layout.kind)
        elif parameter.is_pointer and not isinstance(value, Pointer | MemoryPlace):
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
