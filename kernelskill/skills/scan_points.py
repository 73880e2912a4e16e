"""Algorithms over the elements of one long array, in terms of the element's number and that of its block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Load, Poly, Sym
from kernelskill.algorithm.lifting import Lifted
from kernelskill.algorithm.lifting.coverage import reaches
from kernelskill.algorithm.model import Axis, Store
from kernelskill.algorithm.rewriting import rebuild, substitute
from kernelskill.skills.transformation import SkillRefused

ELEMENT, BLOCK = Sym("#element"), Sym("#block")
"""The number of an element, and that of the block of elements that it belongs to."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Point:
    """What is done for an element, or once a block."""

    store: Store
    """Its expressions speak of elements and blocks."""
    count: Expression
    """How many elements there are: as many as threads, or those below what a condition says."""
    whole: Expression
    """How many threads there are."""
    guard: tuple[Expression, ...]
    """What else must hold."""


def points_of(lifted: Lifted, size: int) -> list[Point]:
    """Return what each store of a launch does.

    Args:
        lifted: The launch.
        size: Elements of a block.

    Raises:
        SkillRefused: Its threads do not take one element each.
    """
    algorithm = lifted.algorithm
    if any(store.loops or store.mode != "=" for store in algorithm.stores):
        raise SkillRefused(f"{algorithm.kernel} stores in loops or by atomics")
    axes = algorithm.axes
    if len(axes) == 1:
        return [_along_one(store, axes[0], size) for store in algorithm.stores]
    if len(axes) == 2:
        return [_along_two(store, axes, size) for store in algorithm.stores]
    raise SkillRefused(f"the threads of {algorithm.kernel} do not take elements of one long array")


def _along_one(store: Store, axis: Axis, size: int) -> Point:
    if integers.value_of(axis.lower) != 0:
        raise SkillRefused(f"{axis.name} does not begin at zero")
    return _point(store, {axis.name: ELEMENT}, size, axis.upper, ())


def _along_two(store: Store, axes: tuple[Axis, ...], size: int) -> Point:
    by_source = {axis.binding.source: axis for axis in axes if axis.binding is not None}
    row, column = by_source.get("block"), by_source.get("thread")
    if row is None or column is None or integers.value_of(column.lower) != 0:
        raise SkillRefused("its axes are not those of blocks and of their threads")
    length = integers.value_of(column.upper)
    if length is None:
        raise SkillRefused("its blocks are of no known size")
    number = Sym("#own_block")
    start = integers.multiply(integers.constant(length), number)
    table = {row.name: number, column.name: integers.subtract(ELEMENT, start)}
    if length == size:
        start = integers.multiply(integers.constant(length), BLOCK)
        table = {row.name: BLOCK, column.name: integers.subtract(ELEMENT, start)}
    first = integers.value_of(row.lower)
    if first not in (0, 1):
        raise SkillRefused(f"{row.name} does not begin at zero")
    # What begins at the second block does so under a condition.
    extra = (Binary(">", table[row.name], integers.constant(0), "bool"),) if first == 1 else ()
    whole = integers.multiply(integers.constant(length), row.upper)
    return _point(store, table, size, whole, extra)


def _point(
    store: Store, table: Mapping[str, Expression], size: int, whole: Expression, extra: tuple[Expression, ...]
) -> Point:
    def changed(expression: Expression) -> Expression:
        return _with_blocks(substitute(expression, table), size)

    limit: Expression | None = None
    rest = list(extra)
    for guard in store.guard:
        for part in integers.conjuncts(changed(guard)):
            found = limit_of(part)
            if found is None or not found[1] or limit is not None:
                rest.append(part)
            else:
                limit = found[0]
    index, value = changed(store.index), changed(store.value)
    kept = Store(store.buffer, index, value, kind=store.kind)
    return Point(kept, limit if limit is not None else whole, whole, tuple(rest))


def limit_of(test: Expression) -> tuple[Expression, bool] | None:
    """Return what an element's number is compared with, and whether a test holds below it, or from it on."""
    if not isinstance(test, Binary) or test.op not in _MIRRORED:
        return None
    op, other = test.op, test.right
    if test.right == ELEMENT:
        op, other = _MIRRORED[op], test.left
    elif test.left != ELEMENT:
        return None
    if other.depends_on(ELEMENT.name, BLOCK.name):
        return None
    limit = integers.add(other, integers.constant(1)) if op in ("<=", ">") else other
    return limit, op in ("<", "<=")


def _with_blocks(expression: Expression, size: int) -> Expression:
    """Return an expression with the block's number where it is computed from the element's."""

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Binary) or node.left != ELEMENT:
            return None
        known = integers.value_of(node.right)
        by = 1 << known if node.op == ">>" and known is not None and 0 <= known < 31 else known
        return BLOCK if node.op in ("/", ">>") and by == size else None

    return rebuild(expression, change)


def summands(expression: Expression) -> list[Expression] | None:
    """Return the terms of a sum, each taken once; None where it is more than that."""
    if isinstance(expression, Binary) and expression.op == "+":
        sides = summands(expression.left), summands(expression.right)
        return [*sides[0], *sides[1]] if sides[0] is not None and sides[1] is not None else None
    if not isinstance(expression, Poly):
        return [expression]
    if any(factor != 1 or len(monomial) != 1 for monomial, factor in expression.terms):
        return None
    return [monomial[0] for monomial, _ in expression.terms]


class HostTerms:
    """The expressions of one launch in what the launcher knows, so that launches in a row can be compared."""

    def __init__(self, lifted: Lifted, twins: Mapping[str, str] | None = None) -> None:
        """Read what the launch gives.

        Args:
            lifted: The launch.
            twins: Parameters -> others that are given the same pointer.
        """
        self._values = dict(lifted.values)
        self._texts = {name: "".join(text.split()) for name, text in lifted.arguments}
        self._roots = dict(lifted.roots)
        self._twins = twins or {}

    def buffer(self, name: str) -> str:
        """Return the launcher's pointer that a parameter is.

        Raises:
            SkillRefused: It is none, or one into the middle of an array.
        """
        root, is_start = self.root(name)
        if not is_start:
            raise SkillRefused(f"{name!r} points into the middle of an array")
        return root

    def root(self, name: str) -> tuple[str, bool]:
        """Return the launcher's pointer that a parameter is made from, and whether it is the same.

        Raises:
            SkillRefused: There is none.
        """
        name = self._twins.get(name, name)
        root, text = self._roots.get(name), self._texts[name]
        if root is not None:
            return root[0], integers.value_of(root[1]) == 0
        if not text.isidentifier():
            raise SkillRefused(f"where {name!r} points to can't be told")
        return f"host:{text}", True

    def count(self, point: Point) -> Expression:
        """Return how many elements there are.

        Raises:
            SkillRefused: There may be more than threads, and then fewer are done.
        """
        count, whole = self.of(point.count), self.of(point.whole)
        if count != whole and not reaches(whole, count):
            raise SkillRefused("whether the blocks reach all elements can't be told")
        return count

    def of(self, expression: Expression) -> Expression:
        """Return an expression with arguments in the place of parameters."""

        def change(node: Expression) -> Expression | None:
            if isinstance(node, Sym) and node.name in self._texts:
                return self._values.get(node.name, Sym(f"host:{self._texts[node.name]}", node.kind))
            if isinstance(node, Load):
                return Load(self.buffer(node.buffer), node.index, node.kind)
            return None

        return rebuild(expression, change)
