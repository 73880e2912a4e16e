"""Conversions that a source spells out, of numbers and of pointers."""

from __future__ import annotations

from dataclasses import replace

from tree_sitter import Node

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.arithmetic import binary, convert
from kernelskill.algorithm.lifting.cooperative_values import join_lanes, lane_operation
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.places import moved
from kernelskill.algorithm.lifting.types import without_comments
from kernelskill.algorithm.lifting.values import Aggregate, CrossLane, Dim3, Layout, Pointer, Value
from kernelskill.source.syntax import named


def cast_to(machine: Machine, node: Node, text: str, value: Value) -> Value:
    """Return a value converted to the type that a text names."""
    plain = without_comments(text).replace("const ", " ").replace("__restrict__", " ").strip()
    layout = machine.types.layout(plain.rstrip("*& "))
    depth = plain.count("*")
    if isinstance(value, Pointer) and depth == 1:
        if layout is None:
            raise machine.refuse(node, f"the type {text!r} is not understood")
        return reinterpreted(machine, node, value, layout)
    if layout is None or depth:
        raise machine.refuse(node, f"the conversion to {text!r} is not understood")
    if isinstance(value, Expression) and layout.is_scalar:
        return convert(value, layout.kind)
    if isinstance(value, Aggregate) and value.layout == layout:
        return value
    raise machine.refuse(node, f"the conversion to {text!r} is not understood")


def reinterpreted(machine: Machine, node: Node, pointer: Pointer, layout: Layout) -> Pointer:
    """Return a pointer as one to another type of the same scalars."""
    if layout.kind != pointer.layout.kind:
        reason = f"{pointer.buffer} is read as {layout.name} though it holds {pointer.layout.name}"
        raise machine.refuse(node, reason)
    return replace(pointer, layout=layout)


def listed_value(machine: Machine, layout: Layout, listed: Node) -> Value:
    """Return what `{a, b}` or `(a)` makes of a type."""
    values = [machine.number(entry) for entry in named(listed)]
    parts = [convert(value, layout.kind) for value in values]
    if layout.is_scalar and len(parts) <= 1:
        return parts[0] if parts else convert(integers.constant(0), layout.kind)
    if len(parts) > layout.width:
        raise machine.refuse(listed, f"{layout.name} has {layout.width} fields")
    zero = convert(integers.constant(0), layout.kind)
    return Aggregate(layout, (*parts, *[zero] * (layout.width - len(parts))))


def combine(machine: Machine, node: Node, operator: str, first: Value, second: Value) -> Value:
    """Return a binary operation on values: of scalars, or of a pointer and a distance."""
    if isinstance(first, CrossLane):
        first, second = second, first
    if isinstance(second, CrossLane) and isinstance(first, Expression):
        op = lane_operation(operator)
        if op is not None:
            return join_lanes(machine, node, op, first, second)
    if isinstance(second, Pointer) and operator == "+":
        first, second = second, first
    if isinstance(first, Pointer) and isinstance(second, Expression) and operator in ("+", "-"):
        return moved(first, second, -1 if operator == "-" else 1)
    if isinstance(first, Pointer) and isinstance(second, Pointer) and first.buffer == second.buffer:
        return _pointers(machine, node, operator, first, second)
    if not isinstance(first, Expression) or not isinstance(second, Expression):
        raise machine.refuse(node, f"{excerpt(machine, node)!r} is no arithmetic on numbers")
    return binary(operator, first, second, machine.ranges)


def _pointers(machine: Machine, node: Node, operator: str, first: Pointer, second: Pointer) -> Expression:
    distance = integers.subtract(first.offset, second.offset)
    if operator == "-":
        width = integers.constant(first.layout.width)
        return binary("/", integers.typed(distance, "long long"), width, machine.ranges)
    if operator in ("<", "<=", ">", ">=", "==", "!="):
        return binary(operator, first.offset, second.offset, machine.ranges)
    raise machine.refuse(node, f"{excerpt(machine, node)!r} is no arithmetic on numbers")


def dim3_of(machine: Machine, arguments: list[Node]) -> Dim3:
    """Return what `dim3(x, y, z)` makes."""
    parts = [convert(machine.number(argument), "unsigned") for argument in arguments[:3]]
    return sized(parts)


def sized(parts: list[Expression]) -> Dim3:
    """Return three sizes; those not given are one."""
    padded = [*parts, *[integers.constant(1, "unsigned")] * 3]
    return Dim3((padded[0], padded[1], padded[2]))


def excerpt(machine: Machine, node: Node) -> str:
    """Return the start of a node's text, for messages."""
    return " ".join(machine.text(node).split())[:60]
