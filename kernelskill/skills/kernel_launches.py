"""All launches of a kernel, over all files, or a refusal where one could hide."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernelskill.skills.device_code import identifiers, units_of
from kernelskill.skills.transformation import SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.dimensions import local_constants
from kernelskill.source.launches import LaunchSite
from kernelskill.source.scopes import flow_of
from kernelskill.source.syntax import Node, span_of
from kernelskill.source.unit import SourceUnit


@dataclass(frozen=True)
class KernelLaunch:
    """One launch with the file and the function that it stands in."""

    unit: SourceUnit
    launch: LaunchSite
    function: FunctionDef | None

    def constant(self, node: Node) -> int | None:
        """Return the value of an integer expression of the launching function, where it is constant.

        A field of the `dim3` variable that gives the launch its block counts as well.
        """
        if node.type == "field_expression" and self.launch.block.variable is not None:
            name, _, axis = self.unit.text_of(node).partition(".")
            if name.strip() == self.launch.block.variable.name and axis.strip() in ("x", "y", "z"):
                return self.launch.block.values["xyz".index(axis.strip())]
        return self.unit.constants.value(node, local_constants(self.function, self.unit.syntax))


def launches_of(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[KernelLaunch]:
    """Return every launch of a kernel.

    Raises:
        SkillRefused: There is none, or the kernel's name is used in a way that may launch it unseen.
    """
    found: list[KernelLaunch] = []
    for other in units_of(unit, context):
        _refuse_hidden_uses(other, kernel)
        for launch in other.launches_of(kernel):
            if launch.uses_api:
                raise SkillRefused(f"line {launch.line} launches it by a call of the runtime, not by <<<>>>")
            found.append(KernelLaunch(other, launch, other.enclosing_function(launch.node)))
    if not found:
        raise SkillRefused("no launch of it is in sight")
    for entry in found:
        if entry.unit.is_locked(entry.launch.span):
            raise SkillRefused(f"its launch on line {entry.launch.line} is locked")
        if entry.function is not None and entry.function.is_opaque:
            raise SkillRefused(f"the function that launches it is unclear: {entry.function.opaque_reason}")
        if entry.function is not None and entry.function.is_device_code:
            raise SkillRefused("device code launches it")
    return found


def block_lengths(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> set[int]:
    """Return how many threads the blocks of a kernel's launches have along x, which is all that they have.

    Raises:
        SkillRefused: A launch's block is no constant, or has another axis, or as `launches_of` says.
    """
    found: set[int] = set()
    for entry in launches_of(unit, kernel, context):
        x, y, z = entry.launch.block.values
        if x is None or (y, z) != (1, 1):
            raise SkillRefused(f"the block on line {entry.launch.line} is no constant along x alone")
        found.add(x)
    return found


def _refuse_hidden_uses(unit: SourceUnit, kernel: KernelDef) -> None:
    """Decline where the kernel's name stands anywhere but in definitions and launches."""
    known = [function.name_span for function in unit.all_functions if function.name == kernel.name]
    known += [launch.name_span for launch in unit.launches_of(kernel)]
    for name, node in identifiers(unit, unit.root):
        if name == kernel.name and not any(span.contains(span_of(node)) for span in known):
            function = unit.enclosing_function(node)
            if function is None or flow_of(unit, function).resolve(node) is None:
                line = unit.line_of(node)
                raise SkillRefused(f"line {line} uses the name {name!r} outside its definition and launches")
    word = re.compile(rf"\b{re.escape(kernel.name)}\b")
    for macro in unit.macros:
        if word.search(macro.possible):
            raise SkillRefused(f"macro {macro.name!r} names the kernel")


def template_bindings(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> dict[str, str]:
    """Return what the kernel's template parameters stand for, where all launches say the same."""
    if not kernel.template_parameters:
        return {}
    found = [launch for other in units_of(unit, context) for launch in other.launches_of(kernel)]
    bound = {}
    for index, parameter in enumerate(kernel.template_parameters):
        values = {
            launch.template_arguments[index] if index < len(launch.template_arguments) else parameter.default
            for launch in found
        }
        if len(values) == 1 and "" not in values:
            bound[parameter.name] = values.pop()
    return bound
