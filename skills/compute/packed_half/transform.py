"""Let a thread of an elementwise half kernel work on two neighbouring elements at once."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.device_code import fresh_name
from kernelskill.skills.element_loop import bound_text, read_elements, write_element_loop
from kernelskill.skills.elementwise import divide_grids
from kernelskill.skills.launch_edits import edit_sets
from kernelskill.skills.packed_halves import read_packed
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one half a thread."""
    body = read_packed(unit, kernel, "pair", context)
    reason = f"each thread works on one 16-bit element, {body.guard.variable.name} below {unit.text_of(body.guard.bound)}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Write the work on pairs before the work on single elements, and halve the grids."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    entries, covers, guard = read_elements(unit, kernel, context)
    pair = fresh_name(unit, context, "pair")
    item = fresh_name(unit, context, "item", [pair])
    body = read_packed(unit, kernel, pair, context)
    addresses = " | ".join(f"(size_t){name}" for name in body.pointers)
    bound = bound_text(unit, guard)
    header = [
        "// Two neighbouring elements at once; odd addresses and the last element go one by one.",
        f"const long long {pair} = (long long)blockIdx.x * blockDim.x + threadIdx.x;",
        f"if ((({addresses}) & 3) == 0 && 2 * {pair} + 1 < {bound}) {{",
        *(f"    {line}" for line in body.lines),
        "    return;",
        "}",
        f"for (long long {item} = 2 * {pair}; {item} < 2 * {pair} + 2; ++{item}) {{",
        f"    if ({item} >= {bound}) break;",
    ]
    sets = edit_sets(entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    write_element_loop(unit, own, kernel, guard, header, item)
    divide_grids(sets, entries, covers, 2)
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))
