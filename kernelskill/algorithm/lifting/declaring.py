"""Declare local variables: scalars, pointers, references, vectors, structs and local arrays."""

from __future__ import annotations

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.casts import listed_value, sized
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.places import place_of
from kernelskill.algorithm.lifting.sharing import declare_shared
from kernelskill.algorithm.lifting.values import (
    Aggregate,
    Array,
    Dim3,
    Layout,
    MemoryPlace,
    Pointer,
    Value,
    Variable,
    scalar,
)
from kernelskill.algorithm.types import is_known
from kernelskill.source.declarations import Storage, VariableDef, read_variables
from kernelskill.source.syntax import named

_LARGEST_ARRAY = 1024
_LISTS = ("initializer_list", "argument_list", "parameter_list")


def declare(machine: Machine, node: Node) -> None:
    """Execute a declaration.

    Raises:
        CannotLift: Its type or initialiser can't be followed; shared memory always.
    """
    for variable in read_variables(machine.syntax, node, in_device_code=bool(machine.builtins)):
        if variable.storage is Storage.DYNAMIC_SHARED:
            _declare_dynamic(machine, node, variable)
            continue
        if variable.storage is Storage.SHARED:
            _declare_shared(machine, node, variable)
            continue
        if variable.storage is Storage.STATIC:
            raise machine.refuse(node, f"{variable.name!r} is static")
        _declare(machine, node, variable)


def _declare_shared(machine: Machine, node: Node, variable: VariableDef) -> None:
    layout = machine.types.layout(variable.base_type)
    shape = [
        integers.value_of(machine.number(extent)) if extent is not None else None
        for extent in variable.dimensions
    ]
    known = tuple(extent for extent in shape if extent is not None)
    is_plain = layout is not None and layout.is_scalar and len(known) == len(shape)
    if layout is None or not is_plain or variable.pointer_depth or "volatile" in machine.text(node):
        raise machine.refuse(node, f"cooperative: the shared variable {variable.name!r} is not understood")
    declare_shared(machine, variable.declarator, variable.name, layout, known)


def _declare_dynamic(machine: Machine, node: Node, variable: VariableDef) -> None:
    """Declare the array whose size the launch gives; all such arrays of a kernel begin at one address."""
    layout = machine.types.layout(variable.base_type)
    is_plain = layout is not None and layout.is_scalar and len(variable.dimensions) == 1
    if layout is None or not is_plain or variable.pointer_depth or "volatile" in machine.text(node):
        raise machine.refuse(node, f"cooperative: the shared variable {variable.name!r} is not understood")
    place = variable.declarator.start_byte
    if machine.dynamic_shared not in (None, place):
        raise machine.refuse(node, f"cooperative: {variable.name!r} shares its memory with another array")
    machine.dynamic_shared = place
    declare_shared(machine, variable.declarator, variable.name, layout, (1,))


def _declare(machine: Machine, node: Node, variable: VariableDef) -> None:
    if variable.base_type in ("dim3", "uint3") and not variable.pointer_depth:
        _declare_dim3(machine, variable)
        return
    if variable.is_reference:
        _declare_reference(machine, node, variable)
        return
    layout = scalar("auto") if variable.base_type == "auto" else machine.types.layout(variable.base_type)
    if layout is None or variable.pointer_depth > 1:
        raise machine.refuse(
            node, f"the type of {variable.name!r}, {variable.type_text!r}, is not understood"
        )
    if variable.dimensions:
        _declare_array(machine, node, variable, layout)
        return
    value = _initial(machine, variable, layout)
    if variable.pointer_depth or isinstance(value, Pointer):
        pointee = value.layout if isinstance(value, Pointer) else layout
        machine.declare(Variable(variable.name, pointee, True), value)
        return
    if layout.kind == "auto":
        layout = value.layout if isinstance(value, Aggregate) else scalar(_kind(machine, node, value))
    if value is None and not layout.is_scalar:
        value = Aggregate(layout, (None,) * layout.width)
    if isinstance(value, Expression):
        value = convert(value, layout.kind)
    declared = Variable(variable.name, layout)
    machine.declare(declared, value)
    machine.name_value(declared, value)


def _kind(machine: Machine, node: Node, value: Value | None) -> str:
    if not isinstance(value, Expression) or not is_known(value.type):
        raise machine.refuse(node, f"the type of {machine.text(node)!r} is not understood")
    return value.type


def _initial(machine: Machine, variable: VariableDef, layout: Layout) -> Value | None:
    node = variable.initialiser
    if node is None:
        return None
    if node.type in _LISTS:
        listed = named(node)
        if variable.pointer_depth or (layout.kind == "auto" and len(listed) == 1):
            return machine.value(listed[0]) if len(listed) == 1 else None
        if not layout.is_scalar and len(listed) == 1:
            value = machine.value(listed[0])
            if isinstance(value, Aggregate):
                return value
        return listed_value(machine, layout, node)
    return machine.value(node)


def _declare_dim3(machine: Machine, variable: VariableDef) -> None:
    node = variable.initialiser
    parts: list[Expression] = []
    if node is not None and node.type in _LISTS:
        parts = [convert(machine.number(entry), "unsigned") for entry in named(node)]
    elif node is not None:
        value = machine.value(node)
        parts = list(value.parts) if isinstance(value, Dim3) else [convert(machine.number(node), "unsigned")]
    machine.declare(Variable(variable.name, scalar("unsigned")), sized(parts))


def _declare_reference(machine: Machine, node: Node, variable: VariableDef) -> None:
    if variable.initialiser is None:
        raise machine.refuse(node, f"the reference {variable.name!r} is not understood")
    layout = machine.types.layout(variable.base_type)
    is_memory = variable.initialiser.type in ("subscript_expression", "pointer_expression", "call_expression")
    if is_memory and (layout is not None or variable.base_type == "auto"):
        place = place_of(machine, variable.initialiser)
        if isinstance(place, MemoryPlace):
            machine.declare(Variable(variable.name, place.layout), place)
            return
    if not variable.is_const:
        _declare_alias(machine, variable)
        return
    if layout is None:
        raise machine.refuse(node, f"the reference {variable.name!r} is not understood")
    value = machine.value(variable.initialiser)
    if isinstance(value, Expression):
        value = convert(value, layout.kind)
    machine.declare(Variable(variable.name, layout), value)


def _declare_alias(machine: Machine, variable: VariableDef) -> None:
    """Declare another name for a local variable, or for a part of one."""
    assert variable.initialiser is not None
    place = place_of(machine, variable.initialiser)
    if isinstance(place, MemoryPlace):
        machine.declare(Variable(variable.name, place.layout), place)
    elif place.part is None:
        machine.scopes[-1][variable.name] = place.number
    else:
        machine.declare(Variable(variable.name, machine.variables[place.number].layout), place)


def _declare_array(machine: Machine, node: Node, variable: VariableDef, layout: Layout) -> None:
    shape = []
    for extent in variable.dimensions:
        known = integers.value_of(machine.number(extent)) if extent is not None else None
        if extent is None and variable.initialiser is not None and len(variable.dimensions) == 1:
            known = len(named(variable.initialiser))
        if known is None or known < 1:
            raise machine.refuse(node, f"the size of the local array {variable.name!r} is not known")
        shape.append(known)
    count = layout.width
    for extent_value in shape:
        count *= extent_value
    if count > _LARGEST_ARRAY or variable.pointer_depth or layout.kind == "auto":
        raise machine.refuse(node, f"the local array {variable.name!r} is too large or holds pointers")
    cells = _cells(machine, node, variable, layout, count)
    machine.declare(Variable(variable.name, layout, shape=tuple(shape)), Array(layout, tuple(shape), cells))


def _cells(
    machine: Machine, node: Node, variable: VariableDef, layout: Layout, count: int
) -> tuple[Expression | None, ...]:
    if variable.initialiser is None:
        return (None,) * count
    if not layout.is_scalar:
        raise machine.refuse(node, f"the initialiser of {variable.name!r} is not understood")
    values = [convert(value, layout.kind) for value in _listed(machine, variable.initialiser)]
    if len(values) > count:
        raise machine.refuse(node, f"the initialiser of {variable.name!r} is not understood")
    return (*values, *[convert(integers.constant(0), layout.kind)] * (count - len(values)))


def _listed(machine: Machine, node: Node) -> list[Expression]:
    """Return the scalars of nested braces; rows must be full but for the last."""
    found: list[Expression] = []
    for entry in named(node):
        if entry.type == "initializer_list":
            found += _listed(machine, entry)
        else:
            found.append(machine.number(entry))
    return found
