"""Launch a kernel that knows only its global index with another block shape."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.coverage import Cover, ceiling_text, read_cover
from kernelskill.skills.device_code import BARRIERS, SHARED_WORDS, WARP_WORDS, identifiers, refuse_words
from kernelskill.skills.expression_types import ExpressionTypes, is_integer, is_wide
from kernelskill.skills.global_index import (
    GlobalIndex,
    GuardedKernel,
    find_global_indices,
    read_guarded,
)
from kernelskill.skills.kernel_launches import KernelLaunch, launches_of, template_bindings
from kernelskill.skills.launch_edits import components_of, edit_sets, write_shapes
from kernelskill.skills.strided_kernel import read_strided
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.edits import EditSet
from kernelskill.source.unit import SourceUnit

_LINEAR = ("256x1", "128x1", "512x1", "64x1", "1024x1", "32x1")
_PLANE = ("32x8", "32x4", "64x4", "32x16", "16x16", "64x8", "128x2", "128x1", "256x1", "32x32", "8x32")
_WHY = "its meaning depends on which threads form a block"


def sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext) -> list[Site]:
    """Offer the kernel with the shapes that it isn't launched with yet."""
    entries, covers = _read(unit, kernel, context)
    values = _PLANE if "y" in covers[0] else _LINEAR
    present = {_shape_of(entry) for entry in entries}
    bound = _bound_threads(kernel)
    offered = tuple(v for v in values if {v} != present and prod(_sizes(v)) <= bound)
    parameter = SkillParameter(name="shape", values=offered, meaning="threads along x and y")
    reason = f"only the global index matters; launched with {', '.join(sorted(present))}"
    return [Site(key=kernel.name, kernel=kernel.name, reason=reason, parameters=(parameter,))]


def rewrite(unit: SourceUnit, site: Site, parameters: Mapping[str, str], context: SkillContext) -> Rewrite:
    """Replace block and grid at every launch."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    entries, covers = _read(unit, kernel, context)
    grid_axes = _grid_axes(unit, kernel)
    wanted = dict(zip("xy", _sizes(parameters["shape"]), strict=True))
    sets = edit_sets(entries)
    for entry, cover in zip(entries, covers, strict=True):
        grid = components_of(entry.launch.grid, entry.launch.line)
        block = components_of(entry.launch.block, entry.launch.line)
        if not cover:
            # A grid-stride loop: the grid may stay as it is.
            write_shapes(sets[entry.unit.path], entry, None, [str(wanted["x"]), "1", "1"])
            continue
        for axis in cover:
            grid["xyz".index(grid_axes[axis])] = ceiling_text(cover[axis].size, wanted[axis])
            block["xyz".index(axis)] = str(wanted[axis])
        write_shapes(sets[entry.unit.path], entry, grid, block)
    own = sets.setdefault(unit.path, EditSet(unit))
    for axis in covers[0]:
        for index in find_global_indices(unit, kernel, context, axis, crossed=True):
            if index.block_size is not None:
                own.replace(index.node, _with_block_dim(unit, kernel, index, context))
    along_y = {axis for axis, grid_axis in grid_axes.items() if grid_axis == "y" and axis in wanted}
    narrower = any(axis in cover and wanted[axis] < cover[axis].block for cover in covers for axis in along_y)
    most = 65535 * max((wanted[axis] for axis in along_y), default=1)
    note = f"the grid can't have more than 65535 blocks along y: {most} indices"
    return Rewrite(
        edits=tuple(edit for edits in sets.values() for edit in edits.edits),
        notes=(note,) if narrower else (),
    )


def _grid_axes(unit: SourceUnit, kernel: KernelDef) -> dict[str, str]:
    """Return the axis of the grid that each tested index runs along, by axis of the block."""
    try:
        guarded = read_guarded(unit, kernel, crossed=True)
    except SkillRefused:
        return {}  # a grid-stride loop
    return {guard.index.axis: guard.index.grid_axis for guard in guarded.guards}


def _with_block_dim(unit: SourceUnit, kernel: KernelDef, index: GlobalIndex, context: SkillContext) -> str:
    """Return a global index with `blockDim` for the constant that the kernel names, in the same type.

    Raises:
        SkillRefused: The type can't be told.
    """
    kind = ExpressionTypes(unit, kernel, template_bindings(unit, kernel, context)).of(index.node)
    axis, grid_axis = index.axis, index.grid_axis
    if kind == "unsigned":
        return f"blockIdx.{grid_axis} * blockDim.{axis} + threadIdx.{axis}"
    if kind is None or not is_integer(kind):
        raise SkillRefused(f"the type of {unit.text_of(index.node)!r} can't be told")
    if is_wide(kind):
        return f"({kind})blockIdx.{grid_axis} * blockDim.{axis} + threadIdx.{axis}"
    return f"(int)(blockIdx.{grid_axis} * blockDim.{axis} + threadIdx.{axis})"


def _read(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext
) -> tuple[list[KernelLaunch], list[dict[str, Cover]]]:
    refuse_words(unit, kernel, context, BARRIERS | WARP_WORDS | SHARED_WORDS, _WHY)
    if any(name == "gridDim" for name, _ in identifiers(unit, kernel.node)):
        read_strided(unit, kernel, context)
        entries = launches_of(unit, kernel, context)
        for entry in entries:
            x, y, z = entry.launch.block.values
            if x is None or (y, z) != (1, 1) or entry.launch.grid.values[1:] != (1, 1):
                raise SkillRefused(f"line {entry.launch.line}: the launch is not one-dimensional")
        return entries, [{} for _ in entries]
    guarded = read_guarded(unit, kernel, crossed=True)
    entries = launches_of(unit, kernel, context)
    axes = _axes(unit, kernel, context, guarded)
    for entry in entries:
        for axis, size in zip("xyz", entry.launch.block.values, strict=True):
            if axis not in axes and size != 1:
                raise SkillRefused(f"line {entry.launch.line}: blocks have several threads along {axis}")
    for index in find_global_indices(unit, kernel, context, axes, crossed=True):
        for entry in entries:
            if index.block_size not in (None, entry.launch.block.values["xyz".index(index.axis)]):
                raise SkillRefused(f"line {entry.launch.line}: the kernel takes another block size")
    guards = [guard for guard in guarded.guards if guard.index.axis in axes]
    return entries, [{g.index.axis: read_cover(unit, kernel, g, entry) for g in guards} for entry in entries]


def _axes(unit: SourceUnit, kernel: KernelDef, context: SkillContext, guarded: GuardedKernel) -> str:
    """Return the axes along which only a tested global index is used, with blockDim: `x` or `xy`."""
    usable = ""
    for axis in "xy":
        try:
            indices = find_global_indices(unit, kernel, context, axis, crossed=True)
        except SkillRefused:
            if axis == "x":
                raise
            break
        for index in indices:
            if index.block_size is not None:
                _with_block_dim(unit, kernel, index, context)
        if not indices or guarded.guard(axis) is None:
            break
        usable += axis
    if not usable:
        raise SkillRefused("its global index along x is not tested against a size")
    return usable


def _shape_of(entry: KernelLaunch) -> str:
    x, y, _ = entry.launch.block.values
    return f"{x}x{y}"


def _sizes(shape: str) -> tuple[int, int]:
    x, y = shape.split("x")
    return int(x), int(y)


def _bound_threads(kernel: KernelDef) -> int:
    if not kernel.launch_bounds:
        return 1024
    return int(kernel.launch_bounds[0]) if kernel.launch_bounds[0].isdigit() else 0
