"""Places that can be read and assigned to: variables, their parts, and elements of buffers."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting import memory
from kernelskill.algorithm.lifting.arithmetic import convert
from kernelskill.algorithm.lifting.cooperative_values import joined_in_shared
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.macros import expand_call
from kernelskill.algorithm.lifting.values import (
    Aggregate,
    Array,
    CrossLane,
    Dim3,
    LocalPointer,
    MemoryPlace,
    Place,
    Pointer,
    Poison,
    SlotPlace,
    Struct,
    Value,
    scalar,
    scalars_of,
)
from kernelskill.algorithm.types import is_wide
from kernelskill.source.syntax import named, strip_parentheses

_LARGEST = 5000
"""Nodes of a value: sums over all elements that are written out, one by one, are larger."""


def moved(pointer: Pointer, distance: Expression, sign: int = 1) -> Pointer:
    """Return a pointer so many of its elements further."""
    step = integers.multiply(convert(distance, "long long"), integers.constant(pointer.stride))
    offset = integers.add(pointer.offset, step, sign)
    # A single subscript keeps the width in which the user computed it; sums of several are 64 bits wide.
    is_single = integers.value_of(pointer.offset) == 0 and sign == 1 and not is_wide(distance.type)
    return replace(pointer, offset=integers.typed(offset, "int" if is_single else "long long"))


def place_of(machine: Machine, node: Node) -> Place:
    """Return what an expression that can be assigned to denotes."""
    node = strip_parentheses(node)
    if node.type == "identifier":
        return _variable(machine, node)
    if node.type == "subscript_expression":
        return _element(machine, node)
    if node.type == "pointer_expression" and machine.syntax.operator(node) == "*":
        return _target(machine, node)
    if node.type == "field_expression":
        return _member(machine, node)
    if node.type == "call_expression":
        expanded = _macro_place(machine, node)
        if expanded is not None:
            return expanded
    if node.type in ("update_expression", "assignment_expression"):
        machine.value(node)
        inner = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if inner is not None:
            return place_of(machine, inner)
    raise machine.refuse(node, f"{machine.text(node)!r} is not understood as something to read or assign")


def _target(machine: Machine, node: Node) -> Place:
    """Return what a pointer points at."""
    argument = node.child_by_field_name("argument")
    pointer = machine.value(argument) if argument is not None else None
    if isinstance(pointer, Pointer):
        return MemoryPlace(pointer.buffer, pointer.offset, pointer.layout)
    if isinstance(pointer, LocalPointer):
        return SlotPlace(pointer.number, pointer.part)
    raise machine.refuse(node, f"{machine.text(node)!r} does not point at a buffer")


def _variable(machine: Machine, node: Node) -> Place:
    name = machine.text(node)
    number = machine.find(name)
    if number is None:
        raise machine.refuse(node, f"the name {name!r} is not understood")
    value = machine.slots[number]
    if isinstance(value, MemoryPlace | SlotPlace):
        return value
    return SlotPlace(number, None, value.shape if isinstance(value, Array) else ())


def _element(machine: Machine, node: Node) -> Place:
    base, listed = node.child_by_field_name("argument"), node.child_by_field_name("indices")
    if base is None or listed is None or len(named(listed)) != 1:
        raise machine.refuse(node, f"{machine.text(node)!r} is not understood")
    owner = _array_place(machine, base)
    index = machine.number(named(listed)[0])
    if owner is not None:
        return _cell(machine, node, owner, index)
    value = machine.value(base)
    if isinstance(value, LocalPointer):
        return _local_element(machine, node, value, index)
    if not isinstance(value, Pointer):
        raise machine.refuse(node, f"{machine.text(base)!r} is not an array of a buffer")
    if value.rows:
        raise machine.refuse(node, f"{machine.text(node)!r} is a whole row of an array")
    pointer = moved(value, index)
    return MemoryPlace(pointer.buffer, pointer.offset, pointer.layout)


def row_of(machine: Machine, base: Node, listed: Node) -> Pointer | None:
    """Return the pointer to a row of an array of arrays; None for anything else."""
    inner = strip_parentheses(base)
    if inner.type not in ("identifier", "subscript_expression") or len(named(listed)) != 1:
        return None
    if inner.type == "identifier":
        number = machine.find(machine.text(inner))
        value = machine.slots.get(number) if number is not None else None
    else:
        outer, indices = inner.child_by_field_name("argument"), inner.child_by_field_name("indices")
        value = row_of(machine, outer, indices) if outer is not None and indices is not None else None
    if not isinstance(value, Pointer) or not value.rows:
        return None
    pointer = moved(value, machine.number(named(listed)[0]))
    return replace(pointer, rows=pointer.rows[1:])


def _local_element(machine: Machine, node: Node, pointer: LocalPointer, index: Expression) -> SlotPlace:
    """Return an element counted from the address of a local variable."""
    known, cells = integers.value_of(index), scalars_of(machine.slots[pointer.number])
    if known == 0:
        return SlotPlace(pointer.number, pointer.part)
    if known is None or cells is None or pointer.part is None:
        raise machine.refuse(
            node, f"the local array in {machine.text(node)!r} has an index that is not known"
        )
    part = pointer.part + known * pointer.layout.width
    if not 0 <= part < len(cells):
        raise machine.refuse(node, f"{machine.text(node)!r} is outside its array")
    return SlotPlace(pointer.number, part)


def _array_place(machine: Machine, base: Node) -> SlotPlace | None:
    """Return the local array, or row of one, that an expression names; None for anything else."""
    base = strip_parentheses(base)
    if base.type == "identifier":
        number = machine.find(machine.text(base))
        value = machine.slots.get(number) if number is not None else None
        if number is not None and isinstance(value, Array):
            return SlotPlace(number, None, value.shape)
        if isinstance(value, Poison):
            raise machine.refuse(base, value.reason)
        return None
    if base.type == "subscript_expression":
        inner = base.child_by_field_name("argument")
        if inner is not None and _array_place(machine, inner) is not None:
            place = place_of(machine, base)
            return place if isinstance(place, SlotPlace) and place.dimensions else None
    return None


def _cell(machine: Machine, node: Node, owner: SlotPlace, index: Expression) -> SlotPlace:
    known = integers.value_of(index)
    if known is None:
        reason = f"the local array in {machine.text(node)!r} has an index that is not known"
        raise machine.refuse(node, reason)
    inner = owner.dimensions[1:]
    size = machine.variables[owner.number].layout.width
    for extent in inner:
        size *= extent
    if not 0 <= known < owner.dimensions[0]:
        raise machine.refuse(node, f"{machine.text(node)!r} is outside its array")
    return SlotPlace(owner.number, (owner.part or 0) + known * size, inner)


def _member(machine: Machine, node: Node) -> Place:
    base, member = node.child_by_field_name("argument"), node.child_by_field_name("field")
    if base is None or member is None:
        raise machine.refuse(node, f"{machine.text(node)!r} is not understood")
    name = machine.text(member)
    if machine.text(node)[len(machine.text(base)) :].lstrip().startswith("->"):
        pointer = machine.value(base)
        if isinstance(pointer, LocalPointer):
            owner: Place = SlotPlace(pointer.number, pointer.part)
        elif isinstance(pointer, Pointer):
            owner = MemoryPlace(pointer.buffer, pointer.offset, pointer.layout)
        else:
            raise machine.refuse(node, f"{machine.text(base)!r} is not a pointer to a buffer")
    else:
        owner = place_of(machine, base)
    if isinstance(owner, MemoryPlace):
        position = _position(machine, node, owner.layout.fields, name)
        index = integers.add(owner.index, integers.constant(position))
        return MemoryPlace(owner.buffer, index, scalar(owner.layout.kind))
    variable, value = machine.variables[owner.number], machine.slots[owner.number]
    if isinstance(value, Dim3):
        return SlotPlace(owner.number, "xyz".index(name))
    position = _position(machine, node, variable.layout.fields, name)
    return SlotPlace(owner.number, (owner.part or 0) + position)


def _position(machine: Machine, node: Node, fields: tuple[str, ...], name: str) -> int:
    if name not in fields:
        raise machine.refuse(node, f"the field in {machine.text(node)!r} is not understood")
    return fields.index(name)


def _macro_place(machine: Machine, node: Node) -> Place | None:
    function = node.child_by_field_name("function")
    parsed = expand_call(machine, node) if function is not None else None
    if parsed is None:
        return None
    with machine.reading(parsed[0]):
        return place_of(machine, parsed[1])


def component(machine: Machine, value: Value, member: str) -> Value:
    """Return a field of a value."""
    if isinstance(value, Dim3) and member in "xyz":
        return value.parts["xyz".index(member)]
    if isinstance(value, Struct):
        found = value.field(member)
        if found is not None:
            return found
    if isinstance(value, Aggregate) and member in value.layout.fields:
        part = value.parts[value.layout.fields.index(member)]
        if part is None:
            raise machine.refuse(None, f"a field {member!r} is read before it has a value")
        return part
    raise machine.refuse(None, f"the field {member!r} is not understood")


def read_place(machine: Machine, place: Place) -> Value:
    """Return what a place holds."""
    if isinstance(place, MemoryPlace):
        return _read_memory(machine, place)
    variable, value = machine.variables[place.number], machine.slots[place.number]
    if isinstance(value, Poison):
        raise machine.refuse(None, value.reason)
    if place.part is None:
        if value is None:
            raise machine.refuse(None, f"{variable.name!r} is read before it has a value")
        return value
    return _read_part(machine, place)


def _who(machine: Machine) -> str:
    return "cooperative: " if machine.shared_reads else ""


def _read_part(machine: Machine, place: SlotPlace) -> Value:
    variable, value, part = machine.variables[place.number], machine.slots[place.number], place.part or 0
    if isinstance(value, Dim3):
        return value.parts[part]
    if isinstance(value, Array) and not variable.layout.is_scalar and part % variable.layout.width == 0:
        return Aggregate(variable.layout, value.cells[part : part + variable.layout.width])
    found = machine.scalar_at((place.number, part))
    if found is None:
        raise machine.refuse(None, f"a part of {variable.name!r} is read before it has a value")
    return found


def _read_memory(machine: Machine, place: MemoryPlace) -> Value:
    kind = place.layout.kind
    if place.layout.is_scalar:
        return memory.load(machine, place.buffer, place.index, kind)
    parts = [
        memory.load(machine, place.buffer, integers.add(place.index, integers.constant(k)), kind)
        for k in range(place.layout.width)
    ]
    return Aggregate(place.layout, tuple(parts))


def write_place(machine: Machine, place: Place, value: Value) -> Value:
    """Assign to a place; the value as the place holds it is returned."""
    if isinstance(value, CrossLane):
        raise machine.refuse(None, "cooperative: a value of another lane is used as it is")
    if isinstance(value, Expression) and value.size > _LARGEST:
        raise machine.refuse(None, f"{_who(machine)}the expressions of the kernel grow too large to follow")
    if isinstance(place, MemoryPlace):
        return _write_memory(machine, place, value)
    variable = machine.variables[place.number]
    current = machine.slots[place.number]
    if isinstance(current, Dim3) and place.part is not None and isinstance(value, Expression):
        parts = list(current.parts)
        parts[place.part] = value
        machine.slots[place.number] = Dim3((parts[0], parts[1], parts[2]))
        return value
    if place.part is None:
        held = value
        if isinstance(value, Expression) and not variable.is_pointer and variable.layout.is_scalar:
            held = convert(value, variable.layout.kind)
            machine.name_value(variable, held)
        machine.slots[place.number] = held
        return held
    return _write_part(machine, place, value)


def _write_part(machine: Machine, place: SlotPlace, value: Value) -> Value:
    variable, part = machine.variables[place.number], place.part or 0
    if isinstance(value, Aggregate) and isinstance(machine.slots[place.number], Array):
        for position, entry in enumerate(value.parts):
            machine.set_scalar((place.number, part + position), entry)
        return value
    if not isinstance(value, Expression):
        raise machine.refuse(None, f"the assignment to a part of {variable.name!r} is not understood")
    held = convert(value, variable.layout.kind)
    machine.set_scalar((place.number, part), held)
    return held


def _write_memory(machine: Machine, place: MemoryPlace, value: Value) -> Value:
    kind = place.layout.kind
    if place.layout.is_scalar and isinstance(value, Expression):
        held = joined_in_shared(machine, place.buffer, place.index, convert(value, kind))
        memory.store(machine, place.buffer, place.index, held, kind)
        return held
    if isinstance(value, Aggregate) and len(value.parts) == place.layout.width:
        for position, part in enumerate(value.parts):
            if part is None:
                raise machine.refuse(None, "a value without all its fields set is stored")
            index = integers.add(place.index, integers.constant(position))
            memory.store(machine, place.buffer, index, convert(part, kind), kind)
        return value
    raise machine.refuse(None, f"the store to {place.buffer} is not understood")


def address_of(machine: Machine, place: Place) -> Value:
    """Return the pointer to a place."""
    if isinstance(place, MemoryPlace):
        return Pointer(place.buffer, place.index, place.layout)
    return LocalPointer(place.number, place.part, machine.variables[place.number].layout)
