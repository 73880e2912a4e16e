"""Bounds of integer expressions from the ranges of their symbols, and what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Poly, Sym
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.rewriting import replace_outermost, substitute
from kernelskill.algorithm.types import is_integer

_DEPTH = 6


def least(value: Expression, ranges: Ranges) -> Expression:
    """Return a bound from below: symbols with a range at their first value."""
    return _at_end(value, ranges, 0)


def most(value: Expression, ranges: Ranges) -> Expression:
    """Return a bound from above: symbols with a range at their last value."""
    return _at_end(value, ranges, 1)


def _at_end(value: Expression, ranges: Ranges, end: int) -> Expression:
    for _ in range(_DEPTH):
        moved = next((name for name in sorted(value.symbols) if _moves(value, name, ranges)), None)
        if moved is None:
            break
        factor = integers.value_of(integers.coefficient(value, moved) or value) or 1
        lower, upper = ranges[moved]
        last = integers.add(upper, integers.constant(1), -1)
        value = substitute(value, {moved: last if (end == 1) == (factor > 0) else lower})
    return value


def _moves(value: Expression, name: str, ranges: Ranges) -> bool:
    factor = integers.coefficient(value, name)
    return name in ranges and factor is not None and integers.value_of(factor) is not None


def at_least(first: Expression, second: Expression) -> bool:
    """Whether one value is a constant distance of zero or more above another."""
    difference = integers.value_of(integers.subtract(first, second))
    return difference is not None and difference >= 0


def decided(test: Expression, ranges: Ranges) -> bool | None:
    """Return what ranges say of a comparison of indices; None where they say nothing."""
    slack = slack_of(test)
    if slack is None:
        return None
    low, high = integers.value_of(least(slack, ranges)), integers.value_of(most(slack, ranges))
    if low is not None and low >= 0:
        return True
    return False if high is not None and high < 0 else None


def slack_of(test: Expression) -> Expression | None:
    """Return what is not negative exactly where a comparison by order holds; None for other conditions."""
    if not isinstance(test, Binary) or test.op not in ("<", "<=", ">", ">="):
        return None
    if not all(isinstance(side, Sym | Poly) and is_integer(side.type) for side in (test.left, test.right)):
        return None
    first, second = (test.left, test.right) if test.op[0] == "<" else (test.right, test.left)
    slack = integers.subtract(second, first)
    return integers.add(slack, integers.constant(1), -1) if len(test.op) == 1 else slack


def narrowed(ranges: Mapping[str, tuple[Expression, Expression]], path: Iterable[Expression]) -> Ranges:
    """Return ranges cut down by conditions that hold, such as `threadIdx.x < 32`."""
    found = dict(ranges)
    for test in path:
        slack = slack_of(test)
        for name in sorted(slack.symbols) if slack is not None and len(slack.symbols) == 1 else ():
            factor = integers.coefficient(slack, name) if slack is not None else None
            rest = integers.value_of(integers.without(slack, name)) if slack is not None else None
            step = integers.value_of(factor) if factor is not None else None
            if name not in found or rest is None or not step:
                continue
            lower, upper = found[name]
            if step < 0:
                high, end = integers.value_of(upper), rest // -step + 1
                upper = integers.constant(end if high is None else min(high, end))
            else:
                low, start = integers.value_of(lower), -(rest // step)
                lower = integers.constant(start if low is None else max(low, start))
            found[name] = (lower, upper)
    return found


def rescaled(expression: Expression, name: str, factor: int, symbol: Expression) -> Expression | None:
    """Replace `factor * name` by another symbol; None where the name occurs in another way."""

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Poly) or not node.depends_on(name):
            return None
        total: Expression = integers.without(node, name)
        known = integers.coefficient(node, name)
        if known is None or any(count % factor for count in integers.terms_of(known).values()):
            return None
        share = integers.exact_division(known, integers.constant(factor))[0]
        return integers.add(total, integers.multiply(share, symbol))

    changed = replace_outermost(expression, change)
    return None if changed.depends_on(name) else changed
