"""Where accesses go while some symbols vary: footprints as boxes over groups of equal strides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import (
    LOGICAL,
    Binary,
    Expression,
    Load,
    Monomial,
    Select,
    Sym,
)
from kernelskill.algorithm.integers import add, constant, multiply, negated, poly, terms_of, value_of


@dataclass(frozen=True)
class Dimension:
    """One dimension of an access: `stride * (sum of coefficient * symbol + offset)` elements."""

    stride: Expression
    coefficients: tuple[tuple[str, int], ...]
    """Varying symbols with their positive coefficients, by name."""
    offset: int

    @property
    def symbols(self) -> frozenset[str]:
        """The varying symbols that move along it."""
        return frozenset(name for name, _ in self.coefficients)

    @property
    def is_unit(self) -> bool:
        """Whether neighbouring coordinates are neighbouring elements."""
        return value_of(self.stride) == 1

    def coordinate(self, origins: Mapping[str, Expression]) -> Expression:
        """Return the coordinate with symbols replaced; those not given stay symbols."""
        total: Expression = constant(self.offset)
        for name, factor in self.coefficients:
            total = add(total, multiply(constant(factor), origins.get(name, Sym(name))))
        return total

    def extent(self, counts: Mapping[str, int], *, spread: int = 0) -> int:
        """Return how many coordinates are spanned when each symbol takes its count of values."""
        return sum(factor * (counts[name] - 1) for name, factor in self.coefficients) + spread + 1


@dataclass(frozen=True)
class Footprint:
    """An access split into what varies and what does not."""

    dimensions: tuple[Dimension, ...]
    base: Expression
    """The part of the index that does not vary."""

    @property
    def symbols(self) -> frozenset[str]:
        """Every varying symbol that the access depends on."""
        return frozenset().union(*(dimension.symbols for dimension in self.dimensions))

    @property
    def shape_key(self) -> tuple[object, ...]:
        """Equal for accesses that differ by constant offsets only."""
        return (self.base, tuple((d.stride, d.coefficients) for d in self.dimensions))

    def unit(self) -> int | None:
        """Return the position of the dimension of stride one, None where there is none."""
        return next((i for i, dimension in enumerate(self.dimensions) if dimension.is_unit), None)


def footprint(index: Expression, counts: Mapping[str, int]) -> Footprint | None:
    """Split an index into dimensions over the symbols of `counts`; None where it is not a box.

    It is a box when it is affine with constant or symbolic strides, every varying symbol moves along
    one dimension only, coefficients are positive, and dimensions of constant stride do not overlap.

    Args:
        index: Index in elements.
        counts: Varying symbol -> how many consecutive values it takes.
    """
    strided: dict[Monomial, dict[str, int]] = {}
    fixed: dict[Monomial, int] = {}
    for monomial, factor in terms_of(index).items():
        varying = [a for a in monomial if a.depends_on(*counts)]
        if not varying:
            fixed[monomial] = factor
            continue
        (symbol, *others) = varying
        if others or not isinstance(symbol, Sym) or factor < 0:
            return None
        rest = tuple(atom for atom in monomial if atom != symbol)
        strided.setdefault(rest, {})[symbol.name] = factor
    dimensions: list[Dimension] = []
    for rest, coefficients in strided.items():
        for stride, group in _separate(coefficients, counts):
            dimensions.append(Dimension(_stride(rest, stride), tuple(sorted(group.items())), 0))
    names = [name for dimension in dimensions for name in dimension.symbols]
    if len(names) != len(set(names)):
        return None
    ordered = sorted(dimensions, key=lambda d: (d.is_unit, value_of(d.stride) is not None, -_size(d.stride)))
    return _with_offsets(tuple(ordered), fixed)


def _stride(rest: Monomial, factor: int) -> Expression:
    return poly({rest: factor})


def _size(stride: Expression) -> int:
    value = value_of(stride)
    return value if value is not None else 0


def _separate(
    coefficients: Mapping[str, int], counts: Mapping[str, int]
) -> Iterator[tuple[int, dict[str, int]]]:
    """Split coefficients over one symbolic stride into dimensions that do not overlap (mixed radix).

    `64 * r + c` with c below 64 is two dimensions; `2 * x + k` with k up to 3 is one.
    """
    ordered = sorted(coefficients.items(), key=lambda entry: entry[1])
    group: dict[str, int] = {}
    stride, span = 1, 0
    for name, factor in ordered:
        if group and factor > span and factor % stride == 0:
            yield stride, group
            group = {}
        if not group:
            stride, span = factor, 0
        if factor % stride:
            stride = 1
        group[name] = factor
        span += factor * (counts[name] - 1)
    if group:
        yield from _scaled(stride, group)


def _scaled(stride: int, group: dict[str, int]) -> Iterator[tuple[int, dict[str, int]]]:
    yield stride, group


def _with_offsets(dimensions: tuple[Dimension, ...], fixed: Mapping[Monomial, int]) -> Footprint:
    """Move constant multiples of each stride into that dimension's offset."""
    left = dict(fixed)
    placed: list[Dimension] = []
    has_unit = any(dimension.is_unit for dimension in dimensions)
    for dimension in dimensions:
        ((rest, stride),) = terms_of(dimension.stride).items()
        scaled = tuple((name, factor // stride) for name, factor in dimension.coefficients)
        offset = 0
        if rest in left:
            offset, remainder = (_nearest if has_unit else divmod)(left[rest], stride)
            left[rest] = remainder
        placed.append(Dimension(dimension.stride, scaled, offset))
    strides = [value_of(d.stride) for d in placed]
    if placed and 1 not in strides and all(stride is not None for stride in strides):
        # Fields of records: a dimension of its own along which nothing moves.
        placed.append(Dimension(constant(1), (), left.pop((), 0)))
    return Footprint(tuple(placed), poly({m: f for m, f in left.items() if f}))


def _nearest(value: int, stride: int) -> tuple[int, int]:
    """Split a constant into the nearest multiple of a stride and the rest."""
    nearest = (value + stride // 2) // stride if stride > 1 else value
    return nearest, value - nearest * stride


@dataclass(frozen=True)
class LoadSite:
    """A load with the conditions under which it is made."""

    load: Load
    conditions: tuple[Expression, ...]
    """Conditions of the selections round it; a condition for the second side is negated by `Unary('!')`."""


def load_sites(expression: Expression) -> tuple[LoadSite, ...]:
    """Return every load with its conditions; where one made in more cases is there, others are left out."""
    found = tuple(dict.fromkeys(_sites(expression, ())))
    return tuple(site for site in found if not any(_covers(other, site) for other in found))


def _covers(wider: LoadSite, narrower: LoadSite) -> bool:
    return wider.load == narrower.load and set(wider.conditions) < set(narrower.conditions)


def _sites(expression: Expression, conditions: tuple[Expression, ...]) -> Iterator[LoadSite]:
    if isinstance(expression, Load):
        yield LoadSite(expression, conditions)
    if isinstance(expression, Select):
        yield from _sites(expression.condition, conditions)
        yield from _sites(expression.first, (*conditions, expression.condition))
        yield from _sites(expression.second, (*conditions, negated(expression.condition)))
        return
    if isinstance(expression, Binary) and expression.op in LOGICAL:
        reached = expression.left if expression.op == "&&" else negated(expression.left)
        yield from _sites(expression.left, conditions)
        yield from _sites(expression.right, (*conditions, reached))
        return
    for child in expression.children:
        yield from _sites(child, conditions)


def certain_loads(expression: Expression) -> frozenset[Load]:
    """Return the loads made whenever the expression is evaluated, loops inside assumed to run."""
    if isinstance(expression, Select):
        either = certain_loads(expression.first) & certain_loads(expression.second)
        return certain_loads(expression.condition) | either
    if isinstance(expression, Binary) and expression.op in LOGICAL:
        return certain_loads(expression.left)
    own = frozenset({expression}) if isinstance(expression, Load) else frozenset()
    return own.union(*(certain_loads(child) for child in expression.children))


def united(footprints: Iterable[Footprint]) -> tuple[Footprint, tuple[int, ...]] | None:
    """Return the footprint of several accesses of one shape, and how far offsets spread a dimension.

    The result's offsets are the smallest ones. None where shapes differ.
    """
    listed = list(footprints)
    if not listed or any(each.shape_key != listed[0].shape_key for each in listed):
        return None
    low: list[Dimension] = []
    spreads: list[int] = []
    for position, dimension in enumerate(listed[0].dimensions):
        offsets = [each.dimensions[position].offset for each in listed]
        low.append(replace(dimension, offset=min(offsets)))
        spreads.append(max(offsets) - min(offsets))
    return replace(listed[0], dimensions=tuple(low)), tuple(spreads)
