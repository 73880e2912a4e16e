"""Exchange threadIdx.x and threadIdx.y in a kernel, and the block's extents at every launch."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.skills.device_code import WARP_WORDS, refuse_words, words_outside
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of
from kernelskill.skills.launch_edits import components_of, edit_sets, write_shapes
from kernelskill.skills.split_index import exchange_parts, read_split_index
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.accesses import Access, StrideKind, find_accesses, likely_thread_stride
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.loops import Loop, enclosing_loops, find_loops
from kernelskill.source.syntax import Node, walk
from kernelskill.source.unit import SourceUnit

_SWAPPED = {"x": "y", "y": "x"}
_MOVED = frozenset({"threadIdx", "blockDim"})
_FIXED_BLOCKS = frozenset({"__cluster_dims__", "__block_size__", "__reqntid__"})
_LOOP_WEIGHT = 16
_STORE_WEIGHT = 1.5
"""A load that is spread out may find its lines in a cache the next time; a store writes sectors in part."""
_GAIN = 0.8
"""The swapped cost must be below this share of the present one."""


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel where its accesses are closer together along its other index."""
    fields = _index_fields(unit, kernel)
    if not any(unit.text_of(field).endswith("y") for field in fields):
        return _split_sites(unit, kernel, context)
    why = "its meaning depends on which threads share a warp"
    refuse_words(unit, kernel, context, WARP_WORDS | _FIXED_BLOCKS, why)
    hidden = words_outside(unit, kernel, context) & _MOVED
    if hidden:
        raise SkillRefused(f"a function or macro that it uses reads {min(hidden)!r}")
    _check_launches(launches_of(unit, kernel, context))
    accesses = [access for access in find_accesses(unit, kernel) if access.is_global]
    if not accesses:
        raise SkillRefused("no access to global memory is in sight")
    loops = find_loops(unit, kernel)
    now, then = _cost(accesses, loops, "x"), _cost(accesses, loops, "y")
    if then >= _GAIN * now:
        raise SkillRefused("its accesses are not closer together along threadIdx.y")
    text = _worst(accesses)
    reason = f"neighbouring threads are {text} elements apart along threadIdx.x, closer along threadIdx.y"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason)]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Exchange the axes in the kernel and at its launches."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    if site.key != kernel.name:
        split = read_split_index(unit, kernel, context)
        return Rewrite(edits=exchange_parts(unit, kernel, split).edits)
    entries = launches_of(unit, kernel, context)
    sets = edit_sets(entries)
    own = sets.setdefault(unit.path, EditSet(unit))
    for field in _index_fields(unit, kernel):
        axis = field.child_by_field_name("field")
        if axis is not None:
            own.replace(axis, _SWAPPED[unit.text_of(axis)])
    for entry in entries:
        _swap_block(sets[entry.unit.path], entry)
    return Rewrite(edits=tuple(edit for edits in sets.values() for edit in edits.edits))


def _split_sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer a kernel of one index that is split into two, where the other order is better."""
    try:
        split = read_split_index(unit, kernel, context)
    except SkillRefused as refused:
        raise SkillRefused(f"it does not use threadIdx.y, and {refused.reason}") from refused
    changed = SourceUnit.parse(exchange_parts(unit, kernel, split).text(), unit.path)
    after = changed.kernel(kernel.name)
    if after is None or _total(changed, after) >= _GAIN * _total(unit, kernel):
        raise SkillRefused(f"its accesses are not closer together along {split.row.name!r}")
    reason = (
        f"neighbouring threads take neighbouring {split.column.name!r}, but {split.row.name!r} is contiguous"
    )
    return [Site(key=f"{kernel.name}/{split.guard.variable.name}", kernel=kernel.name, reason=reason)]


def _total(unit: SourceUnit, kernel: KernelDef) -> float:
    accesses = [access for access in find_accesses(unit, kernel) if access.is_global]
    return _cost(accesses, find_loops(unit, kernel), "x")


def _index_fields(unit: SourceUnit, kernel: KernelDef) -> list[Node]:
    """Return the uses of threadIdx and blockDim along x and y.

    Raises:
        SkillRefused: One of them is used whole.
    """
    found = []
    for node in walk(kernel.body) if kernel.body is not None else ():
        if node.type != "identifier" or unit.text_of(node) not in _MOVED:
            continue
        field = node.parent
        axis = field.child_by_field_name("field") if field is not None else None
        if field is None or field.type != "field_expression" or axis is None:
            raise SkillRefused(f"line {unit.line_of(node)} uses {unit.text_of(node)} as a whole")
        if unit.text_of(axis) in _SWAPPED:
            found.append(field)
    return found


def _check_launches(entries: list[KernelLaunch]) -> None:
    for entry in entries:
        x, y, _ = entry.launch.block.values
        if 1 in (x, y):
            raise SkillRefused(f"line {entry.launch.line}: the block has one thread along an axis")
        if x is None and y is None and entry.launch.block.variable is None:
            raise SkillRefused(f"the block on line {entry.launch.line} can't be read")


def _swap_block(edits: EditSet, entry: KernelLaunch) -> None:
    block = entry.launch.block
    if block.values[0] is not None and block.values[0] == block.values[1]:
        return
    if block.variable is not None:
        # Its fields may be used elsewhere, in the grid for example: they keep their meaning.
        name = block.variable.name
        edits.replace(block.span, f"dim3({name}.y, {name}.x, {name}.z)")
        return
    x, y, z = components_of(block, entry.launch.line)
    write_shapes(edits, entry, None, [y, x, z])


def _cost(accesses: list[Access], loops: tuple[Loop, ...], axis: str) -> float:
    """Return the sectors that a warp along an axis touches; loops and stores weigh more."""
    total = 0.0
    for access in accesses:
        stride = likely_thread_stride(access, axis)
        if stride.kind is StrideKind.UNIFORM:
            sectors = 1
        elif stride.kind is StrideKind.UNIT:
            sectors = 4
        elif stride.elements is not None:
            sectors = min(32, 4 * abs(stride.elements))
        else:
            sectors = 32
        weight = _STORE_WEIGHT if access.mode.writes else 1.0
        total += weight * sectors * _LOOP_WEIGHT ** min(2, len(enclosing_loops(loops, access.node)))
    return total


def _worst(accesses: list[Access]) -> str:
    for access in accesses:
        stride = likely_thread_stride(access, "x")
        if not stride.is_coalesced and likely_thread_stride(access, "y").is_coalesced:
            return stride.text
    return "several"
