"""Pair a kernel's parameters with the arguments of a launch; structs are taken apart into their fields."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm.lifting.host import HostState
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.naming import Names
from kernelskill.algorithm.lifting.types import Field
from kernelskill.algorithm.lifting.values import Aggregate, Layout, Value
from kernelskill.algorithm.model import CannotLift, Parameter
from kernelskill.algorithm.types import cuda_name
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.launches import Expression as Argument
from kernelskill.source.launches import LaunchSite


@dataclass(frozen=True)
class Given:
    """A parameter of the algorithm with what the launch gives it."""

    parameter: Parameter
    layout: Layout
    declared: str
    """The kernel's parameter that it is, or that it is a field of."""
    member: str
    """The field; empty where the parameter is no struct."""
    text: str
    value: Value


def read_arguments(machine: Machine, kernel: KernelDef, launch: LaunchSite, host: HostState) -> list[Given]:
    """Return the parameters of the algorithm in order.

    Raises:
        CannotLift: A parameter's type can't be followed.
    """
    names = Names({parameter.name for parameter in kernel.parameters})
    found: list[Given] = []
    for declared, argument in zip(kernel.parameters, launch.arguments, strict=True):
        layout = machine.types.layout(declared.pointee_type)
        fields = machine.types.fields(machine.types.resolve(declared.pointee_type))
        is_single = declared.is_pointer or (layout is not None and layout.is_scalar)
        if declared.pointer_depth > 1 or declared.is_reference or (is_single and layout is None):
            raise CannotLift(f"the type {declared.type_text!r} of {declared.name!r} is not understood")
        if "volatile" in declared.type_text.split():
            raise CannotLift(f"{declared.name!r} is volatile")
        if is_single and layout is not None:
            found.append(_single(machine, declared, argument, layout, host))
        elif fields:
            found += _fields(machine, declared, argument, fields, host, names)
        else:
            raise CannotLift(f"the type {declared.type_text!r} of {declared.name!r} is not understood")
    return found


def _single(
    machine: Machine, declared: ParameterDef, argument: Argument, layout: Layout, host: HostState
) -> Given:
    parameter = Parameter(
        text=_declaration(machine, declared),
        name=declared.name,
        kind=layout.kind,
        is_pointer=declared.is_pointer,
        is_const=declared.is_const,
        is_restrict=declared.is_restrict,
        view="" if layout.is_scalar else layout.name,
    )
    value = host.value(argument.node, layout.kind)
    return Given(parameter, layout, declared.name, "", argument.text, value)


def _declaration(machine: Machine, declared: ParameterDef) -> str:
    """Return a parameter's declaration with template types resolved."""
    text = machine.unit.text_of(declared.span)
    resolved = machine.types.given.get(declared.pointee_type)
    if resolved is None:
        return text
    words = text.replace("*", " * ").split()
    named = [cuda_name(resolved) if word == declared.pointee_type else word for word in words]
    return " ".join(named).replace(" * ", "* ")


def _fields(
    machine: Machine,
    declared: ParameterDef,
    argument: Argument,
    fields: tuple[Field, ...],
    host: HostState,
    names: Names,
) -> list[Given]:
    """Return a parameter for every field of a struct."""
    found: list[Given] = []
    is_name = argument.text.replace(".", "").replace("_", "").isalnum()
    base = argument.text if is_name else f"({argument.text})"
    whole = host.value(argument.node, "struct")
    parts = whole.parts if isinstance(whole, Aggregate) and len(whole.parts) == len(fields) else None
    for position, entry in enumerate(fields):
        layout = machine.types.layout(entry.type_text)
        if layout is None or not (layout.is_scalar or entry.is_pointer):
            raise CannotLift(f"the field {entry.name!r} of {declared.name!r} is not understood")
        name, text = names.give(entry.name), f"{base}.{entry.name}"
        const, star = "const " if entry.is_const else "", "*" if entry.is_pointer else ""
        parameter = Parameter(
            text=f"{const}{layout.name if not layout.is_scalar else cuda_name(layout.kind)}{star} {name}",
            name=name,
            kind=layout.kind,
            is_pointer=entry.is_pointer,
            is_const=entry.is_const,
            view="" if layout.is_scalar else layout.name,
        )
        part = parts[position] if parts is not None else None
        value = part if part is not None else host.opaque(text, layout.kind)
        found.append(Given(parameter, layout, declared.name, entry.name, text, value))
    return found
