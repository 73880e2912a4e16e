"""Replace float functions and divisions by the hardware's approximations, one kind at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelskill.skills.approximations import KINDS, Approximated, find_approximated
from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.text_changes import replaced_text
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Node, span_of, strip_parentheses, walk
from kernelskill.source.unit import SourceUnit

_TANH = """\
// tanh by one hardware exponential; the absolute error is near 1e-7.
__device__ __forceinline__ float {name}(float v) {
    return 1.0f - __fdividef(2.0f, __expf(2.0f * (v > 40.0f ? 40.0f : v)) + 1.0f);
}

"""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer every kind of function that the kernel uses."""
    found = find_approximated(unit, kernel, context)
    offered = []
    for kind, words in KINDS.items():
        count = sum(entry.kind == kind for entry in found)
        if count:
            reason = f"{count} exact float {words}"
            offered.append(Site(key=f"{kernel.name}/{kind}", kernel=kernel.name, reason=reason))
    if not offered:
        raise SkillRefused("it calls no float function and no float division that has an approximation")
    return offered


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the calls of one kind."""
    kernel = unit.kernel(site.kernel)
    kind = site.key.rsplit("/", 1)[1]
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    changes = [entry for entry in find_approximated(unit, kernel, context) if entry.kind == kind]
    if not changes:
        raise SkillRefused(f"site {site.key!r} is gone")
    edits = EditSet(unit)
    tanh = ""
    if kind == "tanh":
        tanh = fresh_name(unit, context, "fast_tanh")
        first = min(changes, key=lambda entry: entry.function.span.start).function
        edits.insert_before(first.span, _TANH.replace("{name}", tanh))
    spans = [span_of(entry.node) for entry in changes]
    for entry in changes:
        own = span_of(entry.node)
        if not any(span.contains(own) and span != own for span in spans):
            edits.replace(entry.node, _text(unit, entry, changes, tanh))
    return Rewrite(edits=edits.edits)


def _text(unit: SourceUnit, change: Approximated, changes: list[Approximated], tanh: str) -> str:
    """Return what stands for a call or division, everything inside it changed as well."""
    node = change.node
    inside = {entry.node.id: entry for entry in changes if entry.node != node}

    def inner(part: Node | None) -> str:
        assert part is not None
        replacements = [
            (below, _text(unit, inside[below.id], changes, tanh))
            for below in walk(part)
            if below.id in inside
        ]
        return replaced_text(unit, part, replacements)

    if node.type == "call_expression":
        return f"{change.name or tanh}{inner(node.child_by_field_name('arguments'))}"
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    assert left is not None
    assert right is not None
    if node.type == "assignment_expression":
        target = inner(left)
        return f"{target} = __fdividef({target}, {_argument(inner, right)})"
    return f"__fdividef({_argument(inner, left)}, {_argument(inner, right)})"


def _argument(inner: Callable[[Node | None], str], node: Node) -> str:
    bare = strip_parentheses(node)
    keep = bare.type == "comma_expression" or any(child.type == "comment" for child in node.children)
    return inner(node if keep else bare)
