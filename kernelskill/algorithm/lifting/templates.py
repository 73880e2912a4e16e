"""Instantiate a kernel's template parameters as a launch gives or implies them."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.lifting.host import HostState
from kernelskill.algorithm.lifting.machine import Machine
from kernelskill.algorithm.lifting.values import Pointer, Variable
from kernelskill.algorithm.model import CannotLift
from kernelskill.source.definitions import KernelDef
from kernelskill.source.expansion import parse_expression
from kernelskill.source.launches import LaunchSite


def instantiate(machine: Machine, kernel: KernelDef, launch: LaunchSite, host: HostState) -> None:
    """Give a machine the types and constants of a template instantiation.

    Raises:
        CannotLift: A template argument can't be followed.
    """
    given: dict[str, str] = {}
    texts = list(launch.template_arguments)
    for position, parameter in enumerate(kernel.template_parameters):
        text = texts[position] if position < len(texts) else parameter.default
        if parameter.kind == "typename":
            found = (
                host.machine.types.resolve(text) if text else _deduced(kernel, launch, host, parameter.name)
            )
            if not found:
                raise CannotLift(f"the template argument for {parameter.name!r} is not known")
            given[parameter.name] = found
        else:
            value = _constant(host, text)
            if value is None:
                raise CannotLift(f"the template argument {text or parameter.name!r} is not a known number")
            layout = machine.types.layout(parameter.kind)
            if layout is None:
                raise CannotLift(f"the template parameter {parameter.name!r} is not understood")
            machine.declare(Variable(parameter.name, layout), integers.constant(value, layout.kind))
    machine.types = replace(machine.types, given=given)


def _constant(host: HostState, text: str) -> int | None:
    parsed = parse_expression(text) if text else None
    if parsed is None:
        return None
    try:
        with host.machine.reading(parsed[0]):
            value = host.machine.value(parsed[1])
    except CannotLift:
        return None
    return integers.value_of(value) if isinstance(value, Expression) else None


def _deduced(kernel: KernelDef, launch: LaunchSite, host: HostState, name: str) -> str:
    """Return the type that the arguments imply for a template parameter; empty where they don't."""
    for parameter, argument in zip(kernel.parameters, launch.arguments, strict=False):
        if parameter.pointee_type != name:
            continue
        try:
            value = host.machine.value(argument.node)
        except CannotLift:
            continue
        if isinstance(value, Pointer) and parameter.is_pointer:
            return value.layout.name
        if isinstance(value, Expression) and not parameter.is_pointer:
            return value.type
    return ""
