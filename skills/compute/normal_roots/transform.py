"""Call the short form of `rsqrtf` where its argument is proved to be no subnormal number."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.algorithm.lowering.normal_roots import root_function
from kernelskill.skills.device_code import editable_functions, fresh_name, place_before, units_of
from kernelskill.skills.expression_types import ExpressionTypes, called_name
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.lower_bounds import is_never_subnormal
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import FunctionDef, KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, ancestors, named, walk
from kernelskill.source.unit import SourceUnit

_ROOTS = ("rsqrt", "rsqrtf")
_FLOATS = ("float", "double")
_CLASSES = ("class_specifier", "struct_specifier", "union_specifier")


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the inverse roots of a kernel, and of the device functions that it reaches, together."""
    count = sum(len(roots) for _, roots in _found(unit, kernel, context))
    reason = f"{count} inverse root{'s' if count > 1 else ''} of what is never subnormal"
    return [Site(key=f"{kernel.name}/normal_roots", kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Put the form before the first function that uses it, and call it."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    found, edits = _found(unit, kernel, context), EditSet(unit)
    name = fresh_name(unit, context, "rsqrt_of_normal")
    first = min((function for function, _ in found), key=lambda function: function.span.start)
    edits.insert_before(place_before(unit, first), root_function(name) + "\n")
    for _, roots in found:
        for call in roots:
            callee = call.child_by_field_name("function")
            assert callee is not None
            edits.replace(callee, name)
    return Rewrite(edits=edits.edits)


def _found(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext
) -> list[tuple[FunctionDef, list[Node]]]:
    """Return the functions with the calls in them that can be shortened.

    Raises:
        SkillRefused: There are none.
    """
    if any(u.function(name) or u.macro(name) for u in units_of(unit, context) for name in _ROOTS):
        raise SkillRefused("an inverse root is defined in the source")
    found, others = [], 0
    for function in editable_functions(unit, kernel, context):
        if function.body is None or any(node.type in _CLASSES for node in ancestors(function.body)):
            continue
        bindings = template_bindings(unit, kernel, context) if function is kernel else {}
        types = ExpressionTypes(unit, function, bindings)
        calls = [node for node in walk(function.body) if _is_root(types, node)]
        proved = [call for call in calls if is_never_subnormal(types, _argument(call), context)]
        others += len(calls) - len(proved)
        if proved:
            found.append((function, proved))
    if not found:
        raise SkillRefused(
            "no argument of rsqrtf is proved to be at least 2^-126"
            if others
            else "no inverse root of a float is taken"
        )
    return found


def _is_root(types: ExpressionTypes, node: Node) -> bool:
    if node.type != "call_expression" or called_name(types.unit, node) not in _ROOTS:
        return False
    listed = node.child_by_field_name("arguments")
    if listed is None or len(named(listed)) != 1 or types.unit.is_locked(node):
        return False
    return types.of(node) == "float" and types.of(_argument(node)) in _FLOATS


def _argument(call: Node) -> Node:
    listed = call.child_by_field_name("arguments")
    assert listed is not None
    return named(listed)[0]
