"""Which reductions of an algorithm blocks can share, and along which loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Reduce, Sym, reductions, walk
from kernelskill.algorithm.flatten import flattened
from kernelskill.algorithm.integers import add, coefficient, constant, multiply, product, subtract, value_of
from kernelskill.algorithm.lowering.hoisting import hoistable, ranges_of, renamed
from kernelskill.algorithm.model import Algorithm, Axis, IllegalMove, Store

SHORT = 64
"""A loop of no more steps is not worth a second kernel."""
_OPERATIONS = frozenset({"+", "*", "fmax", "fmin", "max", "min", "&", "|", "^"})
_NEAR = 4
"""Elements from one step to the next up to which neighbouring lanes still share sectors."""

_Key = tuple[int, tuple[object, ...], tuple[str, ...]]
"""How deep reductions are inside one another, their ranges, the axes of their results."""


@dataclass(frozen=True)
class Group:
    """Reductions over the same loops for the same results: they share their loops."""

    originals: tuple[Reduce, ...]
    """As they occur in the algorithm."""
    axes: tuple[Axis, ...]
    """The results; the one along which neighbours lie comes last where threads take neighbouring results."""
    loops: tuple[Loop, ...]
    bodies: tuple[Expression, ...]
    """One a reduction, over `loops`."""
    by_columns: bool
    """Whether neighbouring threads take neighbouring results rather than neighbouring steps."""


def groups_of(algorithm: Algorithm) -> tuple[Group, ...]:
    """Return the reductions to be shared, each after those that it needs.

    Raises:
        IllegalMove: There are none, or one cannot be shared.
    """
    wanted: dict[Reduce | Fold, None] = {}
    for store in algorithm.stores:
        bound = frozenset(loop.name for loop in store.loops)
        for expression in store.expressions:
            wanted.update(dict.fromkeys(hoistable(expression, bound)))
    long = [each for each in wanted if _is_long(each)]
    if not long:
        raise IllegalMove("no loop of unknown or great length accumulates once a result")
    found: dict[_Key, list[Reduce]] = {}
    depth: dict[Reduce | Fold, int] = {}
    for each in long:
        inside = [depth[other] for other in reductions(each) if other != each and other in depth]
        depth[each] = 1 + max(inside, default=0)
        key = (depth[each], ranges_of(each), tuple(axis.name for axis in _axes_of(algorithm, each)))
        found.setdefault(key, []).append(_checked(algorithm, each))
    return tuple(_group(algorithm, found[key]) for key in sorted(found, key=lambda key: key[0]))


def _is_long(reduction: Reduce | Fold) -> bool:
    lengths = [value_of(subtract(loop.upper, loop.lower)) for loop in reduction.loops]
    if any(length is None for length in lengths):
        return True
    total = 1
    for length in lengths:
        total *= max(0, length or 0)
    return total > SHORT


def _axes_of(algorithm: Algorithm, reduction: Expression) -> tuple[Axis, ...]:
    return tuple(axis for axis in algorithm.axes if reduction.depends_on(axis.name))


def _checked(algorithm: Algorithm, reduction: Reduce | Fold) -> Reduce:
    if isinstance(reduction, Fold):
        raise IllegalMove("a loop carries more than one associative accumulator")
    if reduction.op not in _OPERATIONS or reduction.kind in ("bool", "half", "bfloat16"):
        raise IllegalMove(f"parts of {reduction.op!r} in {reduction.kind} are not combined over blocks")
    moving = set(algorithm.ranges)
    for loop in reduction.loops:
        for bound in (loop.lower, loop.upper):
            if bound.depends_on(*moving) or any(isinstance(node, Load) for node in walk(bound)):
                raise IllegalMove("the length of a loop differs from result to result")
    own = {loop.name for loop in reduction.loops}
    if not any(load.depends_on(*own) for load in _loads(reduction.body)):
        raise IllegalMove("a loop reads no elements of memory")
    axes = _axes_of(algorithm, reduction)
    wanted = {axis.name for axis in axes} | own
    if not any(
        _is_own(load, wanted, (*(axis.loop for axis in axes), *reduction.loops))
        for load in _loads(reduction.body)
    ):
        raise IllegalMove("every element is read for many results: tiles serve that")
    return reduction


def _is_own(load: Load, wanted: set[str], ranges: Sequence[Loop]) -> bool:
    """Whether results and steps read different elements, as far as strides tell: no windows that overlap."""
    if not wanted <= load.symbols:
        return False
    known: list[tuple[int, int | None]] = []
    for loop in ranges:
        factor = coefficient(load.index, loop.name)
        stride = value_of(factor) if factor is not None else None
        if stride is not None:
            known.append((abs(stride), value_of(subtract(loop.upper, loop.lower))))
    known.sort(key=lambda entry: entry[0])
    return all(
        length is not None and stride * length <= larger for (stride, length), (larger, _) in pairwise(known)
    )


def _group(algorithm: Algorithm, members: Sequence[Reduce]) -> Group:
    first = members[0]
    bodies = [first.body]
    for each in members[1:]:
        table: dict[str, Expression] = {
            mine.name: loop.symbol for mine, loop in zip(each.loops, first.loops, strict=True)
        }
        same = renamed(each, table)
        assert isinstance(same, Reduce)
        bodies.append(same.body)
    loops, joined = _joined_loops(first.loops, bodies)
    axes = _axes_of(algorithm, first)
    for axis in axes:
        if any(bound.depends_on(*algorithm.ranges) or _reads(bound) for bound in (axis.lower, axis.upper)):
            raise IllegalMove(f"the range of {axis.name} is not known to the launcher")
    fast = _fast_axis(axes, loops[-1], joined)
    if fast is None:
        length = value_of(subtract(loops[-1].upper, loops[-1].lower))
        if length is not None and length <= SHORT:
            raise IllegalMove("the innermost loop is too short to be shared by threads")
        return Group(tuple(members), axes, loops, joined, by_columns=False)
    ordered = (*(axis for axis in axes if axis != fast), fast)
    return Group(tuple(members), ordered, loops, joined, by_columns=True)


def _reads(expression: Expression) -> bool:
    return any(isinstance(node, Load) for node in walk(expression))


def _joined_loops(
    loops: tuple[Loop, ...], bodies: Sequence[Expression]
) -> tuple[tuple[Loop, ...], tuple[Expression, ...]]:
    """Return loops of which those that walk on through memory are one, and the bodies over them."""
    zero = constant(0)
    stores = tuple(Store("", zero, body) for body in bodies)
    axes = tuple(Axis(loop.name, loop.lower, loop.upper, kind=loop.kind) for loop in loops)
    flat = flattened(Algorithm("", (), axes, stores))
    kinds = {loop.name: loop.kind for loop in loops}
    joined = tuple(Loop(axis.name, axis.lower, axis.upper, kinds[axis.name]) for axis in flat.axes)
    return joined, tuple(store.value for store in flat.stores)


def _fast_axis(axes: Sequence[Axis], loop: Loop, bodies: Sequence[Expression]) -> Axis | None:
    """Return the axis along which what is read lies side by side; None where the loop runs along memory."""
    names = {axis.name for axis in axes}
    loads = [load for body in bodies for load in _loads(body) if load.depends_on(loop.name)]
    own = [load for load in loads if load.depends_on(*names)] or loads
    if any(_is_near(load.index, loop.name) for load in own):
        return None
    for axis in reversed(axes):
        if any(_is_near(load.index, axis.name) for load in own):
            return axis
    return None


def _loads(expression: Expression) -> Iterator[Load]:
    return (node for node in walk(expression) if isinstance(node, Load))


def _is_near(index: Expression, name: str) -> bool:
    factor = coefficient(index, name)
    step = value_of(factor) if factor is not None else None
    return step is not None and 1 <= abs(step) <= _NEAR


def linear(axes: Sequence[Axis]) -> Expression:
    """Return the number of a result among all, the last axis running fastest."""
    number: Expression = constant(0)
    for axis in axes:
        place = subtract(Sym(axis.name, axis.kind), axis.lower)
        number = add(multiply(number, subtract(axis.upper, axis.lower)), place)
    return number


def count(axes: Sequence[Axis]) -> Expression:
    """Return the number of results."""
    return product(subtract(axis.upper, axis.lower) for axis in axes)
