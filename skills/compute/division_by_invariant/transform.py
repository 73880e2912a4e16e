"""Replace integer divisions by a value that a loop leaves alone by cheaper, exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.expression_types import ExpressionTypes
from kernelskill.skills.kernel_launches import template_bindings
from kernelskill.skills.loop_edits import surround_loop
from kernelskill.skills.loop_effects import is_invariant
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, enclosing_loops, find_loops
from kernelskill.source.syntax import Node, Span, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_HELPERS = {
    ("reciprocal", "unsigned", "/"): """\
__device__ __forceinline__ unsigned {name}(unsigned dividend, unsigned divisor, unsigned inverse) {
    unsigned quotient = __umulhi(dividend, inverse);  // inverse is 0xFFFFFFFF / divisor: at most 2 too small
    unsigned rest = dividend - quotient * divisor;
    if (rest >= divisor) { rest -= divisor; ++quotient; }
    return rest >= divisor ? quotient + 1 : quotient;
}
""",
    ("reciprocal", "unsigned", "%"): """\
__device__ __forceinline__ unsigned {name}(unsigned dividend, unsigned divisor, unsigned inverse) {
    unsigned rest = dividend - __umulhi(dividend, inverse) * divisor;  // inverse is 0xFFFFFFFF / divisor
    if (rest >= divisor) rest -= divisor;
    return rest >= divisor ? rest - divisor : rest;
}
""",
    ("reciprocal", "int", "/"): """\
__device__ __forceinline__ int {name}(int dividend, int divisor, unsigned inverse) {
    const unsigned size = dividend < 0 ? 0u - (unsigned)dividend : (unsigned)dividend;
    const unsigned by = divisor < 0 ? 0u - (unsigned)divisor : (unsigned)divisor;
    unsigned quotient = __umulhi(size, inverse);  // inverse is 0xFFFFFFFF / |divisor|: at most 2 too small
    unsigned rest = size - quotient * by;
    if (rest >= by) { rest -= by; ++quotient; }
    if (rest >= by) ++quotient;
    return (dividend < 0) != (divisor < 0) ? (int)(0u - quotient) : (int)quotient;
}
""",
    ("reciprocal", "int", "%"): """\
__device__ __forceinline__ int {name}(int dividend, int divisor, unsigned inverse) {
    const unsigned size = dividend < 0 ? 0u - (unsigned)dividend : (unsigned)dividend;
    const unsigned by = divisor < 0 ? 0u - (unsigned)divisor : (unsigned)divisor;
    unsigned rest = size - __umulhi(size, inverse) * by;  // inverse is 0xFFFFFFFF / |divisor|
    if (rest >= by) rest -= by;
    if (rest >= by) rest -= by;
    return dividend < 0 ? (int)(0u - rest) : (int)rest;
}
""",
    ("power_of_two", "unsigned", "/"): """\
__device__ __forceinline__ unsigned {name}(unsigned dividend, unsigned divisor, int shift) {
    return shift >= 0 ? dividend >> shift : dividend / divisor;
}
""",
    ("power_of_two", "unsigned", "%"): """\
__device__ __forceinline__ unsigned {name}(unsigned dividend, unsigned divisor, int shift) {
    return shift >= 0 ? dividend & (divisor - 1) : dividend % divisor;
}
""",
    ("power_of_two", "int", "/"): """\
__device__ __forceinline__ int {name}(int dividend, int divisor, int shift) {
    return shift >= 0 && dividend >= 0 ? dividend >> shift : dividend / divisor;
}
""",
    ("power_of_two", "int", "%"): """\
__device__ __forceinline__ int {name}(int dividend, int divisor, int shift) {
    return shift >= 0 && dividend >= 0 ? dividend & (divisor - 1) : dividend % divisor;
}
""",
}
"""The function that takes the place of an operator; `{name}` becomes its name."""
_NAMES = {
    ("reciprocal", "/"): "quotient_by",
    ("reciprocal", "%"): "remainder_by",
    ("power_of_two", "/"): "quotient_or_shift",
    ("power_of_two", "%"): "remainder_or_mask",
}
_HELD = {
    ("reciprocal", "unsigned"): "const unsigned {name} = {d} != 0 ? 0xFFFFFFFFu / {d} : 0u;",
    ("reciprocal", "int"): (
        "const unsigned {name} = {d} != 0 ? 0xFFFFFFFFu / ({d} < 0 ? 0u - (unsigned){d} : (unsigned){d}) : 0u;"
    ),
    (
        "power_of_two",
        "unsigned",
    ): "const int {name} = {d} != 0 && ({d} & ({d} - 1)) == 0 ? 31 - __clz((int){d}) : -1;",
    ("power_of_two", "int"): "const int {name} = {d} > 0 && ({d} & ({d} - 1)) == 0 ? 31 - __clz({d}) : -1;",
}


@dataclass(frozen=True)
class _Group:
    """All divisions of one loop by one divisor."""

    loop: Loop
    divisor: str
    kind: str
    """`int` or `unsigned`."""
    nodes: tuple[Node, ...]


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every divisor that a loop divides by and leaves alone."""
    found = []
    for group in _groups(unit, kernel, context):
        reason = f"line {group.loop.line}: the loop divides by {group.divisor}, which it leaves alone"
        found.append(Site(key=_key(kernel, group), kernel=kernel.name, reason=reason))
    if not found:
        raise SkillRefused("no loop divides 32-bit integers by a variable that it leaves alone")
    return found


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Prepare the divisor before the loop and use it inside."""
    kernel = unit.kernel(site.kernel)
    for group in _groups(unit, kernel, context) if kernel is not None else ():
        if kernel is not None and _key(kernel, group) == site.key:
            return _write(unit, kernel, group, parameters["method"], context)
    raise SkillRefused(f"site {site.key!r} is gone")


def _key(kernel: KernelDef, group: _Group) -> str:
    return f"{kernel.name}/{group.loop.key}/by:{group.divisor}"


def _groups(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[_Group]:
    types = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context))
    loops = find_loops(unit, kernel)
    found: dict[tuple[str, str], list[Node]] = {}
    by_key = {loop.key: loop for loop in loops}
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "binary_expression" or unit.operator(node) not in ("/", "%"):
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        kind = types.of(right)
        if left is None or right is None or kind not in ("int", "unsigned") or types.of(left) != kind:
            continue
        name = strip_parentheses(right)
        if name.type != "identifier" or unit.constants.value(name) is not None:
            continue
        loop = _outermost(unit, kernel, loops, node, name)
        if loop is not None and not unit.is_locked(node):
            found.setdefault((loop.key, unit.text_of(name)), []).append(node)
    groups = []
    for (key, divisor), nodes in found.items():
        right = nodes[0].child_by_field_name("right")
        groups.append(_Group(by_key[key], divisor, str(types.of(right)), tuple(nodes)))
    return groups


def _outermost(
    unit: SourceUnit, kernel: KernelDef, loops: tuple[Loop, ...], node: Node, divisor: Node
) -> Loop | None:
    """Return the outermost loop that holds a division and leaves its divisor alone."""
    for loop in enclosing_loops(loops, node):
        if is_invariant(unit, kernel, divisor, loop.span):
            return loop
    return None


def _write(unit: SourceUnit, kernel: KernelDef, group: _Group, method: str, context: SkillContext) -> Rewrite:
    edits = EditSet(unit)
    helpers: dict[str, str] = {}
    for operator in dict.fromkeys(unit.operator(node) for node in group.nodes):
        text = _HELPERS[method, group.kind, operator]
        name, is_new = _helper(unit, kernel, context, _NAMES[method, operator], text)
        helpers[operator] = name
        if is_new:
            edits.insert_before(kernel.span, text.replace("{name}", name))
    suffix = "inverse" if method == "reciprocal" else "shift"
    held = fresh_name(unit, context, f"{group.divisor}_{suffix}", list(helpers.values()))
    for node in group.nodes:
        if not any(_is_inside(node, other) for other in group.nodes):
            edits.replace(node, _text(unit, node, group, helpers, held))
    line = _HELD[method, group.kind].format(name=held, d=group.divisor)
    surround_loop(unit, edits, group.loop, [line], [])
    return Rewrite(edits=edits.edits)


def _is_inside(node: Node, other: Node) -> bool:
    return node != other and span_of(other).contains(span_of(node))


def _helper(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, name: str, template: str
) -> tuple[str, bool]:
    """Return the name of a helper function, and whether it has yet to be written."""
    number, wanted = 1, name
    while True:
        position = unit.data.find(template.replace("{name}", wanted).encode())
        if 0 <= position < kernel.span.start:
            return wanted, False
        if fresh_name(unit, context, wanted) == wanted:
            return wanted, True
        number += 1
        wanted = f"{name}_{number}"


def _text(unit: SourceUnit, node: Node, group: _Group, helpers: Mapping[str, str], held: str) -> str:
    """Return a division as a call, every division inside its dividend replaced as well."""
    left = node.child_by_field_name("left")
    assert left is not None
    left = strip_parentheses(left)
    text, position = "", left.start_byte
    stack = [left]
    own = {entry.id for entry in group.nodes}
    while stack:
        entry = stack.pop()
        if entry.id in own:
            text += unit.text_of(Span(position, entry.start_byte)) + _text(unit, entry, group, helpers, held)
            position = entry.end_byte
        else:
            stack.extend(reversed(entry.children))
    dividend = text + unit.text_of(Span(position, left.end_byte))
    return f"{helpers[unit.operator(node)]}({dividend}, {group.divisor}, {held})"
