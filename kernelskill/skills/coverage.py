"""Whether the grid of a launch covers exactly the sizes that a kernel tests its global index against."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.skills.global_index import Guard
from kernelskill.skills.kernel_launches import KernelLaunch
from kernelskill.skills.transformation import SkillRefused
from kernelskill.source.affine import index_polynomial
from kernelskill.source.definitions import KernelDef
from kernelskill.source.polynomial import Polynomial, operation
from kernelskill.source.syntax import Node, Span, walk
from kernelskill.source.unit import SourceUnit

_SIZES = frozenset(
    {"identifier", "binary_expression", "parenthesized_expression", "field_expression", "number_literal"}
)


@dataclass(frozen=True)
class Cover:
    """How one axis of a launch is covered."""

    size: str
    """Text of the size at the launch: the grid is it divided by the block, rounded up."""
    block: int


def read_cover(unit: SourceUnit, kernel: KernelDef, guard: Guard, entry: KernelLaunch) -> Cover:
    """Return how a launch covers one guarded axis.

    Raises:
        SkillRefused: The grid is not the guard's size divided by a constant block, rounded up.
    """
    axis = guard.index.axis
    position = "xyz".index(axis)
    block = entry.launch.block.values[position]
    line = entry.launch.line
    if block is None or block <= 0:
        raise SkillRefused(f"the block size on line {line} is not a constant")
    if guard.index.block_size not in (None, block):
        raise SkillRefused(
            f"the kernel takes blocks of {guard.index.block_size}, line {line} launches {block}"
        )
    grid = entry.launch.grid.components
    node = grid["xyz".index(guard.index.grid_axis)].node if grid is not None else None
    if node is None:
        raise SkillRefused(f"the grid on line {line} can't be read")
    tested = _size_at_launch(unit, kernel, guard, entry)
    value = _host_value(entry, node)
    for part in walk(node):
        # The text of the size is what the grid is computed from: `w` of `(w + 15) / 16`.
        if part.type not in _SIZES:
            continue
        size = _host_value(entry, part)
        more = (size - tested).value
        if more is not None and more >= 0 and value in _ceilings(size, block):
            return Cover(entry.unit.text_of(part), block)
    if value in _ceilings(tested, block):
        return Cover(_size_text(unit, kernel, guard, entry), block)
    raise SkillRefused(f"the grid on line {line} is not the tested size divided by the block, rounded up")


def _host_value(entry: KernelLaunch, node: Node) -> Polynomial:
    if entry.function is None:
        raise SkillRefused("the launch stands outside any function")
    value = index_polynomial(entry.unit, entry.function, node)
    variable = entry.launch.block.variable
    known: dict[str, Polynomial | int] = {}
    if variable is not None:
        for axis, size in zip("xyz", entry.launch.block.values, strict=True):
            if size is not None:
                known[f"{variable.name}.{axis}"] = size
    return value.substitute(known)


def _size_at_launch(unit: SourceUnit, kernel: KernelDef, guard: Guard, entry: KernelLaunch) -> Polynomial:
    value = index_polynomial(unit, kernel, guard.bound)
    known: dict[str, Polynomial | int] = {}
    for parameter, argument in zip(kernel.parameters, entry.launch.arguments, strict=False):
        if not parameter.is_pointer:
            known[parameter.name] = _host_value(entry, argument.node)
    return value.substitute(known)


def _ceilings(size: Polynomial, block: int) -> list[Polynomial]:
    """Return the ways to write a size divided by a block, rounded up."""
    from_above = size + Polynomial.constant(block - 1)
    from_below = size - Polynomial.constant(1)
    one, divisor = Polynomial.constant(1), Polynomial.constant(block)
    forms = [operation("/", from_above, divisor), operation("/", from_below, divisor) + one]
    return [*forms, size] if block == 1 else forms


def _size_text(unit: SourceUnit, kernel: KernelDef, guard: Guard, entry: KernelLaunch) -> str:
    """Return the guard's size in terms of the launching function."""
    values = {p.name: a.text for p, a in zip(kernel.parameters, entry.launch.arguments, strict=False)}
    values |= dict(
        zip((p.name for p in kernel.template_parameters), entry.launch.template_arguments, strict=False)
    )
    text, position = "", guard.bound.start_byte
    for node in walk(guard.bound):
        if node.type != "identifier":
            continue
        name = unit.text_of(node)
        if name not in values and (entry.unit is not unit or unit.constants.value(node) is None):
            raise SkillRefused(
                f"the size {unit.text_of(guard.bound)!r} can't be written where it is launched"
            )
        value = values.get(name, name)
        simple = value.replace("_", "").isalnum() or node == guard.bound
        text += unit.text_of(Span(position, node.start_byte)) + (value if simple else f"({value})")
        position = node.end_byte
    return text + unit.text_of(Span(position, guard.bound.end_byte))


def ceiling_text(size: str, divisor: int) -> str:
    """Return C text for a size divided by a constant, rounded up."""
    if divisor == 1:
        return size
    inner = size if all(character.isalnum() or character in "_*. " for character in size) else f"({size})"
    return f"({inner} + {divisor - 1}) / {divisor}"
