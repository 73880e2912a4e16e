"""Add `__restrict__`, and `const` to read-only pointers, where overlap is ruled out."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.device_code import count_uses, reached_functions, reached_words, units_of
from kernelskill.skills.disjoint import separate_parameters
from kernelskill.skills.kernel_launches import launches_of
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import AccessMode, find_accesses
from kernelskill.source.declarations import ParameterDef
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel with the pointers that provably or by promise overlap no other."""
    parameters, _ = _restrictable(unit, kernel, context)
    names = ", ".join(parameter.name for parameter in parameters)
    return [Site(key=kernel.name, kernel=kernel.name, reason=f"{names}: no other pointer overlaps")]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Add the qualifiers to the kernel's parameters."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found, assumptions = _restrictable(unit, kernel, context)
    edits = EditSet(unit)
    for parameter in found:
        if not parameter.is_const and _is_read_only(unit, kernel, parameter, context):
            edits.insert_before(parameter.span, "const ")
        edits.insert_before(parameter.name_span, _spaced(unit, parameter))
    return Rewrite(edits=edits.edits, assumptions=assumptions)


def _spaced(unit: SourceUnit, parameter: ParameterDef) -> str:
    before = unit.data[parameter.name_span.start - 1 : parameter.name_span.start].decode()
    return "__restrict__ " if before.isspace() else " __restrict__ "


def _restrictable(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext
) -> tuple[list[ParameterDef], tuple[str, ...]]:
    pointers = [parameter for parameter in kernel.parameters if parameter.is_pointer]
    open_ones = [p for p in pointers if not p.is_restrict and p.pointer_depth == 1 and "[" not in p.type_text]
    if not open_ones:
        raise SkillRefused("it has no pointer parameter without __restrict__")
    launches_of(unit, kernel, context)
    _refuse_device_variables(unit, kernel, context)
    found: list[ParameterDef] = []
    assumptions: list[str] = []
    for parameter in open_ones:
        answers = [
            separate_parameters(unit, kernel, parameter, other, context)
            for other in pointers
            if other is not parameter and not (parameter.is_const and other.is_const)
        ]
        if all(answer.disjoint for answer in answers):
            found.append(parameter)
            assumptions += [answer.assumption for answer in answers if answer.assumption]
    if not found:
        raise SkillRefused('the pointers may overlap: it needs PROMISE = {"no_alias"} in the tests')
    return found, tuple(dict.fromkeys(assumptions))


def _refuse_device_variables(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> None:
    """Decline where a device variable is used: a pointer might point at it."""
    variables = {
        variable.name
        for other in units_of(unit, context)
        for variable in other.globals
        if variable.storage.value == "device" and not variable.is_const
    }
    met = variables & reached_words(unit, kernel, context)
    if met:
        raise SkillRefused(f"a pointer may point at the device variable {min(met)!r}")


def _is_read_only(
    unit: SourceUnit, kernel: KernelDef, parameter: ParameterDef, context: SkillContext
) -> bool:
    """Whether the kernel does nothing with the pointer but read elements through it by name."""
    if any(
        f.name == kernel.name and f.body is None
        for other in units_of(unit, context)
        for f in other.all_functions
    ):
        return False
    if reached_functions(unit, kernel, context) and _is_handed_on(unit, kernel, parameter):
        return False
    reads = [a for a in find_accesses(unit, kernel) if a.base == parameter.name]
    if any(access.mode is not AccessMode.READ for access in reads) or kernel.body is None:
        return False
    return count_uses(unit, kernel.body, parameter.name) == len(reads)


def _is_handed_on(unit: SourceUnit, kernel: KernelDef, parameter: ParameterDef) -> bool:
    reads = sum(access.base == parameter.name for access in find_accesses(unit, kernel))
    return kernel.body is None or count_uses(unit, kernel.body, parameter.name) != reads
