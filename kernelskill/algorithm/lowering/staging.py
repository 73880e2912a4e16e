"""Tiles in shared memory: which loads they hold, their shape, and the code that fills them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelskill.algorithm.access import Footprint, LoadSite, footprint, load_sites, united
from kernelskill.algorithm.expression import Binary, Expression, Load, Loop, Monomial, Sym, Unary, walk
from kernelskill.algorithm.integers import (
    add,
    coefficient,
    conjuncts,
    constant,
    multiply,
    product,
    subtract,
    terms_of,
    value_of,
)
from kernelskill.algorithm.lowering.context import Context, StagedTile, coordinate_symbol
from kernelskill.algorithm.lowering.fill_conditions import united_conditions
from kernelskill.algorithm.lowering.text import pack_alignment
from kernelskill.algorithm.model import Algorithm, IllegalMove
from kernelskill.algorithm.printing import show
from kernelskill.algorithm.schedule import Schedule, Staging
from kernelskill.algorithm.types import is_integer, size_of


def inner_loops(algorithm: Algorithm) -> dict[str, Loop]:
    """Return every loop inside expressions and round stores by name."""
    found: dict[str, Loop] = {}
    for store in algorithm.stores:
        found.update({loop.name: loop for loop in store.loops})
        for expression in store.expressions:
            for node in walk(expression):
                found.update({loop.name: loop for loop in getattr(node, "loops", ())})
    return found


def varying_counts(algorithm: Algorithm, schedule: Schedule, loop: str) -> dict[str, int]:
    """Return the symbols that vary over one tile with how many values each takes.

    These are the axes that a block has several points of, the loop whose tiles are followed, and
    every loop of constant range.
    """
    counts = {plan.axis: plan.tile for plan in schedule.axes if plan.tile > 1}
    for name, inner in inner_loops(algorithm).items():
        if name == loop:
            counts[name] = schedule.loop(name).depth
            continue
        length = value_of(subtract(inner.upper, inner.lower))
        if length is not None and value_of(inner.lower) is not None and length > 0:
            counts[name] = length
    return counts


def plan_tile(algorithm: Algorithm, schedule: Schedule, staging: Staging) -> StagedTile:
    """Work out the tile of a staging.

    Raises:
        IllegalMove: The accesses are not a box, are made under conditions that are no bounds of it, or
            the buffer is written by the same kernel.
    """
    buffer = staging.buffer
    if any(store.buffer == buffer for store in algorithm.stores):
        raise IllegalMove(f"{buffer} is written by the same kernel")
    _check_uniform(algorithm, schedule, staging)
    sites = _sites(algorithm, staging)
    if not sites:
        raise IllegalMove(f"{buffer} is not read" + (f" inside loop {staging.loop}" if staging.loop else ""))
    counts = varying_counts(algorithm, schedule, staging.loop)
    prints = _footprints(sites, algorithm, counts)
    together = united(prints)
    if together is None:
        # Neighbours along an axis of which a block has one point: a few planes of the tile.
        counts = {axis.name: 1 for axis in algorithm.axes} | counts
        prints = _footprints(sites, algorithm, counts)
        together = united(prints)
    if together is None:
        raise IllegalMove(f"{buffer} is read in several shapes")
    whole, spreads = together
    conditions = _conditions(algorithm, sites, prints, counts)
    sizes = tuple(d.extent(counts, spread=s) for d, s in zip(whole.dimensions, spreads, strict=True))
    order = _array_order(algorithm, schedule, whole)
    pad = 8 if schedule.tensor else _padding(schedule, whole, order, sizes)
    return StagedTile(
        name="",
        buffer=buffer,
        kind=sites[0].load.kind,
        loads=frozenset(site.load for site in sites),
        footprint=whole,
        spreads=spreads,
        order=order,
        sizes=sizes,
        pad=pad,
        loop=staging.loop,
        conditions=conditions,
        counts=tuple(sorted(counts.items())),
    )


def _check_uniform(algorithm: Algorithm, schedule: Schedule, staging: Staging) -> None:
    """Refuse to follow a loop that threads of one block run differently often: they meet at barriers."""
    if not staging.loop:
        return
    loop = inner_loops(algorithm)[staging.loop]
    wide = [plan.axis for plan in schedule.axes if plan.tile > 1]
    others = [name for name in inner_loops(algorithm) if name != staging.loop]
    if loop.lower.depends_on(*wide, *others) or loop.upper.depends_on(*wide, *others):
        raise IllegalMove(f"loop {staging.loop} differs from point to point")


def _sites(algorithm: Algorithm, staging: Staging) -> list[LoadSite]:
    found: dict[LoadSite, None] = {}
    for store in algorithm.stores:
        for expression in (store.value, store.index, *store.guard):
            for site in load_sites(expression):
                moves = not staging.loop or site.load.depends_on(staging.loop)
                if site.load.buffer == staging.buffer and moves:
                    found[LoadSite(site.load, (*store.guard, *site.conditions))] = None
    return [site for site in found if not any(_is_wider(other, site) for other in found)]


def _is_wider(other: LoadSite, site: LoadSite) -> bool:
    return other.load == site.load and set(other.conditions) < set(site.conditions)


def _footprints(sites: Sequence[LoadSite], algorithm: Algorithm, counts: dict[str, int]) -> list[Footprint]:
    found: list[Footprint] = []
    for site in sites:
        own = footprint(site.load.index, counts)
        _check_fixed(site.load, own, algorithm, counts)
        assert own is not None
        found.append(own)
    return found


def _check_fixed(load: Load, own: Footprint | None, algorithm: Algorithm, counts: dict[str, int]) -> None:
    if own is None:
        raise IllegalMove(f"{show(load)} is not a box of elements")
    if load.index.depends_on(*algorithm.states):
        raise IllegalMove(f"{show(load)} is read where a recurrence leads to")
    if not own.symbols:
        raise IllegalMove(f"{show(load)} is one element a block")
    loops = set(inner_loops(algorithm)) - set(counts)
    if own.base.depends_on(*loops):
        raise IllegalMove(f"{show(load)} moves with a loop of unknown length")
    if any(isinstance(node, Load) for node in walk(own.base)):
        raise IllegalMove(f"{show(load)} is gathered")


def _conditions(
    algorithm: Algorithm, sites: Sequence[LoadSite], prints: Sequence[Footprint], counts: dict[str, int]
) -> tuple[Expression, ...]:
    """Return the conditions under which elements are read, in terms of coordinates.

    Raises:
        IllegalMove: They are no bounds of coordinates.
    """
    try:
        return _common_conditions(sites, prints, counts)
    except IllegalMove:
        found = united_conditions(algorithm, sites, prints, counts)
        if found is None:
            raise
        return found


def _common_conditions(
    sites: Sequence[LoadSite], prints: Sequence[Footprint], counts: dict[str, int]
) -> tuple[Expression, ...]:
    """Return the conditions of the loads in terms of coordinates; they must be the same for all."""
    found = [
        frozenset(
            in_coordinates(each, own, counts)
            for condition in site.conditions
            for each in conjuncts(condition)
        )
        for site, own in zip(sites, prints, strict=True)
    ]
    if any(each != found[0] for each in found):
        raise IllegalMove(f"{sites[0].load.buffer} is read under several conditions")
    return tuple(sorted(found[0], key=lambda each: each.key))


def in_coordinates(condition: Expression, own: Footprint, counts: dict[str, int]) -> Expression:
    """Return a condition with varying symbols expressed by the coordinate of one dimension.

    Raises:
        IllegalMove: It is not a comparison of integers that bounds one coordinate.
    """
    if not condition.depends_on(*counts):
        return condition
    problem = IllegalMove(f"the condition {show(condition)} is not a bound of the tile")
    if (
        isinstance(condition, Unary)
        or not isinstance(condition, Binary)
        or not is_integer(condition.left.type)
    ):
        raise problem
    difference = subtract(condition.left, condition.right)
    for position, dimension in enumerate(own.dimensions):
        if difference.symbols & set(counts) != dimension.symbols:
            continue
        factors = {name: coefficient(difference, name) for name in dimension.symbols}
        scale = _common_scale(factors, dict(dimension.coefficients))
        if scale is None:
            continue
        moving: Expression = multiply(constant(scale), dimension.coordinate({}))
        fixed = subtract(difference, moving)
        coordinate = Sym(coordinate_symbol(position))
        if scale == 1:
            return Binary(condition.op, coordinate, multiply(constant(-1), fixed), "bool")
        side = add(fixed, multiply(constant(scale), coordinate))
        return Binary(condition.op, side, constant(0), "bool")
    raise problem


def _common_scale(factors: dict[str, Expression | None], coefficients: dict[str, int]) -> int | None:
    scales = set()
    for name, factor in factors.items():
        known = value_of(factor) if factor is not None else None
        if known is None or known % coefficients[name]:
            return None
        scales.add(known // coefficients[name])
    return scales.pop() if len(scales) == 1 else None


def _array_order(algorithm: Algorithm, schedule: Schedule, whole: Footprint) -> tuple[int, ...]:
    """Return the dimensions slowest first: loops before axes, axes in their own order.

    So neighbouring threads, which run along the last axis, read neighbouring elements of the tile.
    """
    if schedule.tensor:
        # Fragments are read in either order, so the tile keeps that of global memory.
        return tuple(sorted(range(len(whole.dimensions)), key=lambda d: (whole.dimensions[d].is_unit, d)))
    ranks = {axis.name: position for position, axis in enumerate(algorithm.axes, 1)}

    def rank(position: int) -> int:
        return max(
            (ranks.get(name, 0) for name in whole.dimensions[position].symbols), default=len(ranks) + 1
        )

    return tuple(sorted(range(len(whole.dimensions)), key=lambda position: (rank(position), position)))


def _padding(schedule: Schedule, whole: Footprint, order: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """Return the elements added to each row so that columns are written without bank conflicts."""
    fastest = order[-1]
    if len(order) == 1 or whole.unit() in (None, fastest):
        return 0
    vectors = [plan.vector for plan in schedule.axes if plan.axis in whole.dimensions[fastest].symbols]
    wide = max(vectors, default=1)
    return wide if wide > 1 else 1 - sizes[fastest] % 2 if sizes[fastest] % 2 == 0 else 0


@dataclass(frozen=True)
class Fill:
    """How the threads of a block share the work of filling one tile."""

    tile: StagedTile
    walk: tuple[int, ...]
    """Dimensions in the order of the walk, slowest first; the last is the one of stride one."""
    vector: int
    total: int
    """Accesses of the whole tile."""
    rounds: int
    """Accesses of a thread, rounded up."""
    is_even: bool
    """Whether every thread has work in every round."""


def plan_fill(context: Context, tile: StagedTile) -> Fill:
    """Decide the order and width of the accesses that fill a tile."""
    unit = tile.footprint.unit()
    last = unit if unit is not None else tile.order[-1]
    walked = (*(d for d in tile.order if d != last), last)
    vector = _fill_vector(context, tile, last) if unit is not None else 1
    total = 1
    for size in tile.sizes:
        total *= size
    total //= vector
    threads = context.schedule.threads
    return Fill(tile, walked, vector, total, -(-total // threads), total % threads == 0)


def _fill_vector(context: Context, tile: StagedTile, unit: int) -> int:
    """Return the elements of one access: four or two where the tile allows it and the schedule wants it."""
    if not (context.schedule.tensor or any(plan.vector > 1 for plan in context.schedule.axes)):
        return 1
    dimension = tile.footprint.dimensions[unit]
    if tile.conditions or dimension.offset % 16 or tile.spreads[unit] or size_of(tile.kind) > 8:
        return 1
    if any(factor != 1 for _, factor in dimension.coefficients) or len(dimension.coefficients) != 1:
        return 1
    width = 16 // size_of(tile.kind)
    while width > 1 and tile.sizes[unit] % width:
        width //= 2
    return width if width > 1 and wide_conditions(context, tile, unit, width) else 1


def wide_conditions(context: Context, tile: StagedTile, unit: int, width: int) -> bool:
    """Note what must hold for accesses of a width; False where it can never be told."""
    needed = dict.fromkeys(row_strides(tile.footprint, unit), width)
    if tile.footprint.base.depends_on(*inner_loops(context.algorithm)):
        return False
    starts = _lower_bounds(context, tile, unit)
    if any(value_of(start) is None or (value_of(start) or 0) % width for start in starts):
        return False
    needed[upper_end(context.algorithm, tile, unit)] = width
    for expression, divisor in needed.items():
        note_divisible(context, expression, divisor)
    context.aligned[tile.buffer] = max(
        context.aligned.get(tile.buffer, 0), pack_alignment(width * size_of(tile.kind))
    )
    return True


def upper_end(algorithm: Algorithm, tile: StagedTile, position: int) -> Expression:
    """Return one past the greatest coordinate that the kernel reads along a dimension."""
    loops = inner_loops(algorithm)
    last: dict[str, Expression] = {}
    for name in tile.footprint.dimensions[position].symbols:
        upper = loops[name].upper if name in loops else algorithm.axis(name).upper
        last[name] = add(upper, constant(-1))
    end = tile.footprint.dimensions[position].coordinate(last)
    return add(end, constant(tile.spreads[position] + 1))


def _lower_bounds(context: Context, tile: StagedTile, unit: int) -> list[Expression]:
    loops = inner_loops(context.algorithm)
    found = []
    for name in tile.footprint.dimensions[unit].symbols:
        found.append(context.axes[name].axis.lower if name in context.axes else loops[name].lower)
    return found


def row_strides(own: Footprint, unit: int) -> list[Expression]:
    """Return the values whose divisibility keeps every row of an access aligned."""
    strides = [d.stride for position, d in enumerate(own.dimensions) if position != unit]
    strides += [product([constant(factor), *monomial]) for monomial, factor in terms_of(own.base).items()]
    return strides


def known_at_launch(context: Context, monomial: Monomial) -> list[Expression]:
    """Return the factors of a product that are the same for all threads: no axes, no loops, nothing read from memory."""
    moving = {*context.axes, *inner_loops(context.algorithm)}
    return [
        atom
        for atom in monomial
        if not any(isinstance(node, Load) for node in walk(atom)) and not atom.depends_on(*moving)
    ]


def note_divisible(context: Context, expression: Expression, divisor: int) -> None:
    """Note that a value must be divisible; factors that no launch knows take any value and are left out."""
    for monomial, factor in terms_of(expression).items():
        if factor % divisor == 0:
            continue
        kept = known_at_launch(context, monomial)
        value = product([constant(abs(factor)), *kept])
        context.divisible[value] = max(divisor, context.divisible.get(value, 0))
