"""Loads kept in registers, and what still goes to memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Load
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.fill import zero_of
from kernelskill.algorithm.lowering.records import records_of
from kernelskill.algorithm.types import cuda_name


def hold_load(
    context: Context, load: Load, name: str, dims: tuple[AxisText, ...], more: Sequence[str] = ()
) -> None:
    """Write a load into a register, or into one for each point of the axes on which it depends."""
    kind = cuda_name(load.kind)
    staged = context.tile_text(load) is not None
    if not dims:
        guard = " && ".join([*([context.active] if context.active and not staged else []), *more])
        text = context.show(load)
        value = f"{guard} ? {text} : {zero_of(load.kind)}" if guard else text
        context.out.line(f"const {kind} {name} = {value};")
        return
    context.out.line(f"{kind} {name}" + "".join(f"[{dim.points}]" for dim in dims) + ";")
    if staged and len(dims) == 1 and _hold_packs(context, load, name, dims[0]):
        return
    with context.over_points(dims, [load]):
        text = context.show(load)
        if not staged:
            tests = [*([context.active] if context.active else []), *context.in_range(dims), *more]
            for dim in dims:
                if dim.axis.name not in context.printed_symbols([load]):
                    context.declare_point(dim)
            text = f"{' && '.join(tests)} ? {text} : {zero_of(load.kind)}" if tests else text
        context.out.line(f"{name}" + "".join(f"[{dim.point}]" for dim in dims) + f" = {text};")


def hold_records(context: Context, shared: Iterable[Load]) -> list[Load]:
    """Write vectors of which several fields are read, the same for all points, into registers; return these loads."""
    found: list[Load] = []
    for record, fields in records_of(
        context, [each for each in shared if context.leaf(each) is None]
    ).items():
        name = context.names.fresh(f"{record.buffer}_value")
        text = record.text(context)
        value = f"{context.active} ? {text} : {record.layout.name}()" if context.active else text
        context.out.line(f"const {record.layout.name} {name} = {value};")
        context.values.update({load: f"{name}.{field}" for load, field in fields.items()})
        found += fields
    return found


def _hold_packs(context: Context, load: Load, name: str, dim: AxisText) -> bool:
    """Read neighbouring points of a tile together, where they are neighbours in shared memory."""
    width = dim.plan.vector
    tile = next(t for t in context.tiles if load in t.loads)
    fastest = tile.footprint.dimensions[tile.order[-1]]
    if width == 1 or fastest.coefficients != ((dim.axis.name, 1),):
        return False
    if (tile.sizes[tile.order[-1]] + tile.pad) % width or tile.spreads[tile.order[-1]]:
        return False
    group, j, held = context.local("g"), context.local("j"), context.local("in")
    place = f"{group} * {dim.threads} + {dim.thread}" if dim.plan.threads > 1 else group
    pack = f"{context.pack}<{cuda_name(load.kind)}, {width}>"
    point = replace(dim, point=group)
    context.axes[dim.axis.name] = replace(point, plan=replace(dim.plan, vector=1))
    text = context.tile_text(load)
    context.axes[dim.axis.name] = dim
    assert text is not None
    index = text.rindex("[")
    wide = f"{text[:index]}[({place}) * {width}]"
    with context.out.unrolled(f"for (int {group} = 0; {group} < {dim.plan.points // width}; ++{group})"):
        context.out.line(f"const {pack} {held} = *reinterpret_cast<const {pack}*>(&{wide});")
        with context.out.unrolled(f"for (int {j} = 0; {j} < {width}; ++{j})"):
            context.out.line(f"{name}[{group} * {width} + {j}] = {held}.at[{j}];")
    return True


def unheld_loads(context: Context, bodies: Iterable[Expression]) -> list[Load]:
    """Return the loads that go to global memory when bodies are evaluated."""
    found: list[Load] = []

    def visit(node: Expression) -> None:
        if context.leaf(node) is not None:
            return
        if isinstance(node, Load):
            found.append(node)
        for child in node.children:
            visit(child)

    for body in bodies:
        visit(body)
    return found


@contextmanager
def guarded(
    context: Context, dims: Sequence[AxisText], needed: bool = True, printed: Iterable[Expression] = ()
) -> Iterator[None]:
    """Put what follows under the tests that its points lie in range."""
    tests = [context.active] if context.active and needed else []
    symbols = context.printed_symbols(printed)
    for dim in dims:
        if dim.axis.name not in symbols:
            context.declare_point(dim)
        tests += context.in_range([dim])
    if not tests:
        yield
        return
    with context.out.block(f"if ({' && '.join(tests)})"):
        yield


def ordered(found: frozenset[Load]) -> list[Load]:
    """Return loads in an order that does not change from run to run."""
    return sorted(found, key=lambda load: load.key)
