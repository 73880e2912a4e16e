"""Which reductions can run before what, and which share a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Fold, Reduce, Sym
from kernelskill.algorithm.rewriting import rebuild, substitute

Accumulation = Reduce | Fold


def hoistable(expression: Expression, bound: frozenset[str] = frozenset()) -> Iterator[Accumulation]:
    """Yield the reductions that can run before an expression is evaluated, inner ones first."""
    inner = bound
    if isinstance(expression, Reduce | Fold):
        inner = bound | {loop.name for loop in expression.loops}
        if isinstance(expression, Fold):
            inner |= {state.name for state in expression.states}
    for child in expression.children:
        yield from hoistable(child, inner)
    if isinstance(expression, Reduce | Fold) and not expression.depends_on(*bound):
        yield expression


def ranges_of(reduction: Accumulation) -> tuple[object, ...]:
    """Return the ranges of its loops, with loop variables by position."""
    numbers: dict[str, Expression] = {}
    found: list[object] = []
    for position, loop in enumerate(reduction.loops):
        found.append((substitute(loop.lower, numbers), substitute(loop.upper, numbers)))
        numbers[loop.name] = Sym(f"#{position}")
    return tuple(found)


def can_share(first: Accumulation, other: Accumulation) -> bool:
    """Whether two can share a loop: two different recurrences may call their states alike."""
    if isinstance(first, Fold) and isinstance(other, Fold):
        return replace(first, index=0) == replace(other, index=0)
    return not isinstance(other, Fold) or isinstance(first, Fold)


def renamed(reduction: Accumulation, table: dict[str, Expression]) -> Accumulation:
    """Return a reduction with its own loop variables replaced, bounds and body."""
    wanted = {name: value for name, value in table.items() if value != Sym(name)}

    def change(node: Expression) -> Expression | None:
        return wanted.get(node.name) if isinstance(node, Sym) else None

    if not wanted:
        return reduction
    result = rebuild(reduction, change)
    assert isinstance(result, Reduce | Fold)
    return result
