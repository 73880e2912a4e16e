"""Write new grid and block shapes at a launch."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.skills.device_code import words_in
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.dimensions import Dimensions
from kernelskill.source.edits import EditSet
from kernelskill.source.syntax import Span, named, span_of

Shape = Sequence[str]


def edit_sets(entries: Sequence[KernelLaunch], first: EditSet | None = None) -> dict[str, EditSet]:
    """Return one set of edits for every file that launches, by path."""
    sets: dict[str, EditSet] = {}
    for entry in entries:
        if entry.unit.path not in sets:
            sets[entry.unit.path] = EditSet(entry.unit)
    return sets


def shape_text(components: Shape) -> str:
    """Return a shape as C text, trailing ones left out; a plain number where only x is left."""
    parts = list(components)
    while len(parts) > 1 and parts[-1] == "1":
        parts.pop()
    return parts[0] if len(parts) == 1 else f"dim3({', '.join(parts)})"


def components_of(shape: Dimensions, line: int) -> list[str]:
    """Return the texts of x, y and z.

    Raises:
        SkillRefused: The shape can't be read.
    """
    if shape.components is None:
        raise SkillRefused(f"the shape {shape.text!r} on line {line} can't be read")
    return [component.text for component in shape.components]


def write_shapes(edits: EditSet, entry: KernelLaunch, grid: Shape | None, block: Shape | None) -> None:
    """Replace the shapes of one launch; None leaves one as it is.

    A `dim3` variable that only this launch uses is changed where it is declared; any other shape is
    written into the launch.
    """
    both = [(entry.launch.grid, grid), (entry.launch.block, block)]
    for shape, wanted in both:
        if wanted is None:
            continue
        place = _declared_list(entry, shape, grid is not None)
        if place is None:
            edits.replace(shape.span, shape_text(wanted))
            continue
        parts = list(wanted)
        while len(parts) > 1 and parts[-1] == "1":
            parts.pop()
        edits.replace(place, ", ".join(parts))


def _declared_list(entry: KernelLaunch, shape: Dimensions, grid_changes: bool) -> Span | None:
    """Return the arguments of `dim3 b(16, 16)` where they may be changed there."""
    variable = shape.variable
    if variable is None or variable.initialiser is None or entry.function is None:
        return None
    listed = variable.initialiser
    if listed.type == "call_expression":
        inner = listed.child_by_field_name("arguments")
        if inner is None or entry.unit.text_of(listed).split("(")[0].strip() != "dim3":
            return None
        listed = inner
    if listed.type not in ("argument_list", "parameter_list", "initializer_list") or not named(listed):
        return None
    allowed = 2
    grid = entry.launch.grid
    if grid_changes and shape is entry.launch.block and grid.components is not None:
        for component in grid.components:
            if component.span is not None:
                allowed += words_in(entry.unit, component.span).count(variable.name)
    body = entry.function.body
    if body is None or words_in(entry.unit, body).count(variable.name) != allowed:
        return None
    children = named(listed)
    return Span(span_of(children[0]).start, span_of(children[-1]).end)
