"""How blocks share the loops of a group: stretches of its loops, partial results, their combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Expression, Load, Loop, Reduce, Select, Sym
from kernelskill.algorithm.integers import add, compared, constant, multiply, product, subtract
from kernelskill.algorithm.lowering.lanes import neutral_of
from kernelskill.algorithm.lowering.text import Names
from kernelskill.algorithm.model import Axis, Store
from kernelskill.algorithm.stages.groups import Group, count, linear
from kernelskill.algorithm.stages.model import Cut, Sharing
from kernelskill.algorithm.types import is_wide


@dataclass(frozen=True)
class Width:
    """How the threads of a block stand in the kernels of parts."""

    threads: int
    columns: int
    """Neighbouring results of a block where threads take neighbouring results."""
    blocks: int
    """Blocks that are aimed at."""

    def lanes(self, group: Group) -> int:
        """Return how many threads of a block share a result."""
        return self.threads // self.columns if group.by_columns else self.threads


@dataclass(frozen=True)
class SharedGroup:
    """A group with its loops cut."""

    group: Group
    sharing: Sharing
    part_axes: tuple[Axis, ...]
    loops: tuple[Loop, ...]
    """The loops within one part."""
    partials: tuple[str, ...]
    """Buffer of the partial results of each reduction."""
    part: str
    """Loop variable of the combination."""

    @property
    def parts(self) -> Expression:
        """The number of parts of each result."""
        return product(axis.upper for axis in self.part_axes)

    @property
    def size(self) -> Expression:
        """The number of partial results of one reduction."""
        return multiply(count(self.group.axes), self.parts)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the kernel of parts, what lies side by side in memory innermost."""
        if self.group.by_columns:
            return (*self.part_axes, *self.group.axes)
        return (*self.group.axes, *self.part_axes)

    def place(self, part: Expression) -> Expression:
        """Return where a partial result lies."""
        number = linear(self.group.axes)
        if self.group.by_columns:
            return add(multiply(part, count(self.group.axes)), number)
        return add(multiply(number, self.parts), part)

    def part_stores(self, reductions: Sequence[Reduce]) -> tuple[Store, ...]:
        """Return what the kernel of parts stores; a reduction each, what it needs replaced already."""
        place = self.place(linear(self.part_axes))
        return tuple(
            Store(buffer, place, replace(each, loops=self.loops, initial=neutral_of(each)), kind=each.kind)
            for buffer, each in zip(self.partials, reductions, strict=True)
        )

    def combined(self, position: int, reduction: Reduce) -> Reduce:
        """Return a reduction as that of its partial results."""
        loop = Loop(self.part, constant(0), self.parts)
        body = Load(self.partials[position], self.place(loop.symbol), reduction.kind)
        return replace(reduction, loops=(loop,), body=body)


def cut_loops(group: Group, width: Width, names: Names) -> tuple[Sharing, tuple[Axis, ...], tuple[Loop, ...]]:
    """Return how a group's loops are shared, the axes of the parts, and the loops within a part."""
    last = len(group.loops) - 1
    cuts, axes, loops = [], [], []
    for position, loop in enumerate(group.loops):
        if position not in (0, last):
            loops.append(loop)
            continue
        lanes = width.lanes(group)
        multiple = 1 if position != last else lanes * (8 if group.by_columns else 4)
        cut = Cut(loop, names.fresh(f"{loop.name}_parts"), names.fresh(f"{loop.name}_steps"), multiple)
        axis = Axis(names.fresh(f"{loop.name}_part"), constant(0), Sym(cut.parts))
        cuts.append(cut)
        axes.append(axis)
        loops.append(_stretch(cut, axis))
    if group.by_columns:
        rows, row, columns = count(group.axes[:-1]), count(group.axes[-1:]), width.columns
    else:
        rows, row, columns = count(group.axes), constant(1), 1
    sharing = Sharing(rows, row, columns, width.blocks, tuple(cuts))
    return sharing, tuple(axes), tuple(loops)


def _stretch(cut: Cut, axis: Axis) -> Loop:
    """Return the loop within one part; no sum passes the end of the whole loop."""
    loop = cut.loop
    kind = "long long" if is_wide(loop.lower.type) or is_wide(loop.upper.type) else "int"
    steps = Sym(cut.steps, kind)
    first = add(loop.lower, multiply(Sym(axis.name), steps))
    is_last = compared("<", subtract(loop.upper, first), steps)
    return replace(loop, lower=first, upper=Select(is_last, loop.upper, add(first, steps)))
