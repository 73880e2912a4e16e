"""Replace a tree in shared memory by shuffles and one step through shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.block_results import WORDS, block_result_function
from kernelskill.skills.device_code import fresh_name, place_before
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.skills.tree_reductions import Tree, find_trees
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Span
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel with the trees that can be replaced."""
    trees = find_trees(unit, kernel, context)
    names = ", ".join(array.variable.name for tree in trees for array in tree.arrays)
    steps = (trees[0].size - 1).bit_length()
    reason = f"{len(trees)} tree(s) over {names} take a barrier for each of {steps} steps"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Replace every tree."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    edits = EditSet(unit)
    names: dict[str, str] = {}
    for tree in find_trees(unit, kernel, context):
        _replace(unit, edits, kernel, tree, names, context)
    return Rewrite(edits=edits.edits)


def _replace(
    unit: SourceUnit,
    edits: EditSet,
    kernel: KernelDef,
    tree: Tree,
    names: dict[str, str],
    context: SkillContext,
) -> None:
    lines = []
    for array in tree.arrays:
        wanted = f"block_{WORDS[array.way.operator]}"
        text = block_result_function(wanted, array.kind, array.way)
        if text not in names:
            names[text] = fresh_name(unit, context, wanted, list(names.values()))
            function = block_result_function(names[text], array.kind, array.way)
            edits.insert_before(place_before(unit, kernel), function + "\n")
        total = fresh_name(unit, context, f"{array.variable.name}_total")
        lines.append(f"const {array.kind} {total} = {names[text]}({array.variable.name}[{tree.thread}]);")
        lines.append(f"if ({tree.thread} == 0)")
        lines.append(f"    {array.variable.name}[0] = {total};")
    lines.append("__syncthreads();")
    loop = tree.loop
    place = loop.span if loop.pragma_span is None else Span(loop.pragma_span.start, loop.span.end)
    indent = unit.indent_of(place)
    body = "".join(f"\n{indent}    {line}" for line in lines)
    edits.replace(place, f"{{{body}\n{indent}}}")
