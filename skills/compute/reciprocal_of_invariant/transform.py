"""Divide once and multiply afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.invariant_divisors import Division, DivisorGroup, find_groups
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.text_changes import replaced_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, span_of, walk
from kernelskill.source.unit import SourceUnit

_RANGES = {
    "float": ("1.17549435e-38f", "8.50705917e+37f"),
    "double": ("2.2250738585072014e-308", "4.4942328371557898e+307"),
}
_HELPER = """\
// a / d by the inverse of d, where that is a normal number.
__device__ __forceinline__ {kind} {name}({kind} a, {kind} d, {kind} inverse, bool is_normal) {
    return is_normal ? a * inverse : a / d;
}

"""
_BARE = frozenset(
    {"identifier", "number_literal", "call_expression", "subscript_expression", "field_expression"}
)
_LOOSE_PARENTS = frozenset(
    {
        "init_declarator",
        "argument_list",
        "return_statement",
        "parenthesized_expression",
        "expression_statement",
    }
)


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every divisor."""
    offered = []
    for group in find_groups(unit, kernel, context):
        times = f"{len(group.divisions)} division{'s' if len(group.divisions) > 1 else ''}"
        reason = f"{times} by the constant {group.divisor}"
        if group.loop is not None:
            reason = f"line {group.loop.line}: {times} by {group.divisor}, which the loop leaves alone"
        offered.append(Site(key=_key(kernel, group), kernel=kernel.name, reason=reason))
    if not offered:
        raise SkillRefused(
            "no loop divides floats by a variable that it leaves alone, and no constant divides"
        )
    return offered


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the divisions of one group."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    for group in find_groups(unit, kernel, context):
        if _key(kernel, group) == site.key:
            _write(unit, kernel, group, context, edits)
            return Rewrite(edits=edits.edits)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, group: DivisorGroup) -> str:
    return f"{kernel.name}/{group.key}/{group.kind}"


def _factor(text: str, node: Node) -> str:
    product = node.type == "binary_expression" and any(child.type in ("*", "/") for child in node.children)
    unary = node.type in ("unary_expression", "parenthesized_expression", "cast_expression")
    return text if node.type in _BARE or product or unary else f"({text})"


def _grouped(node: Node, text: str) -> str:
    """Return a product in parentheses where something beside it could take it apart."""
    parent = node.parent
    plain = parent is None or parent.type in _LOOSE_PARENTS
    assigned = parent is not None and parent.type == "assignment_expression"
    operators = {child.type for child in parent.children} if parent is not None else set()
    in_sum = parent is not None and parent.type == "binary_expression" and not operators & {"*", "/", "%"}
    leads = (
        parent is not None
        and parent.type == "binary_expression"
        and parent.child_by_field_name("left") == node
    )
    return text if plain or assigned or in_sum or leads else f"({text})"


@dataclass(frozen=True)
class _Names:
    """What the written code calls its values."""

    inverse: str
    normal: str = ""
    """Whether the inverse is a normal number; empty where it certainly is."""
    helper: str = ""
    """Function that chooses; empty where the choice is written out."""


def _write(
    unit: SourceUnit, kernel: KernelDef, group: DivisorGroup, context: SkillContext, edits: EditSet
) -> None:
    one = "1.0f" if group.kind == "float" else "1.0"
    names = _Names(f"({one} / {group.divisor})")
    if group.loop is not None:
        inverse = fresh_name(unit, context, f"{group.divisor}_inverse")
        names = _Names(inverse)
        lines = [f"const {group.kind} {inverse} = {one} / {group.divisor};"]
        if not group.is_integer:
            normal = fresh_name(unit, context, f"{inverse}_is_normal", [inverse])
            low, high = _RANGES[group.kind]
            size = f"{'fabsf' if group.kind == 'float' else 'fabs'}({group.divisor})"
            lines.append(f"const bool {normal} = {size} >= {low} && {size} <= {high};")
            helper = _write_helper(unit, kernel, group, context, edits) if len(group.divisions) > 1 else ""
            names = _Names(inverse, normal, helper)
        surround_loop(unit, edits, group.loop, lines, [])
    own = {division.node.id: division for division in group.divisions}
    spans = [span_of(division.node) for division in group.divisions]
    for division in group.divisions:
        span = span_of(division.node)
        if not any(other.contains(span) and other != span for other in spans):
            edits.replace(division.node, _text(unit, division, own, names))


def _write_helper(
    unit: SourceUnit, kernel: KernelDef, group: DivisorGroup, context: SkillContext, edits: EditSet
) -> str:
    """Return the name of the function that chooses, written before the kernel where it is not there yet."""
    number, wanted = 1, "quotient"
    while True:
        text = _HELPER.replace("{kind}", group.kind).replace("{name}", wanted)
        if 0 <= unit.data.find(text.encode()) < kernel.span.start:
            return wanted
        if fresh_name(unit, context, wanted) == wanted:
            edits.insert_before(kernel.span, text)
            return wanted
        number += 1
        wanted = f"quotient_{number}"


def _text(unit: SourceUnit, division: Division, own: Mapping[int, Division], names: _Names) -> str:
    """Return what stands for a division, everything inside its dividend changed as well."""
    inner = [(node, _text(unit, own[node.id], own, names)) for node in walk(division.left) if node.id in own]
    left = replaced_text(unit, division.left, inner)
    if division.is_compound and not names.normal:
        return f"{left} *= {names.inverse}"
    product = f"{_factor(left, division.left)} * {names.inverse}"
    if not names.normal:
        return _grouped(division.node, product)
    right = unit.text_of(division.right)
    lead = f"{left} = " if division.is_compound else ""
    if names.helper:
        return f"{lead}{names.helper}({left}, {right}, {names.inverse}, {names.normal})"
    choice = f"{names.normal} ? {product} : {_factor(left, division.left)} / {right}"
    parent = division.node.parent
    loose = parent is not None and (parent.type in _LOOSE_PARENTS or parent.type == "assignment_expression")
    return f"{lead}{choice}" if loose or division.is_compound else f"({choice})"
