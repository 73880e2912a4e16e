"""Let a thread of an elementwise kernel take a few elements, one block's width apart, in an unrolled loop."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.element_loop import bound_text, read_elements, write_element_loop
from kernelskill.skills.elementwise import divide_grids
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one element a thread."""
    _, _, guard = read_elements(unit, kernel, context)
    reason = f"each thread takes one element, {guard.variable.name} below {unit.text_of(guard.bound)}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the loop over the parts of a block and divide the grids."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    entries, covers, guard = read_elements(unit, kernel, context)
    sets = edit_sets(entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    work = int(parameters["work"])
    part = fresh_name(unit, context, "part")
    item = fresh_name(unit, context, "item", [part])
    header = [
        "#pragma unroll",
        f"for (int {part} = 0; {part} < {work}; ++{part}) {{",
        f"    const long long {item} = ((long long)blockIdx.x * {work} + {part}) * blockDim.x + threadIdx.x;",
        f"    if ({item} >= {bound_text(unit, guard)}) break;",
    ]
    write_element_loop(unit, own, kernel, guard, header, item)
    divide_grids(sets, entries, covers, work)
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))
