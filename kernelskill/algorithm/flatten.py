"""Collapse parallel axes whose points lie one behind the other."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Sym
from kernelskill.algorithm.integers import constant, multiply, subtract, value_of
from kernelskill.algorithm.model import Algorithm, Axis
from kernelskill.algorithm.rewriting import substitute


def flattened(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm with neighbouring axes joined wherever every index allows it.

    `y[row * width + col]` over rows and columns is `y[i]` over `height * width` points when nothing
    else depends on the row or the column.
    """
    result = algorithm
    while True:
        joined = _join_once(result)
        if joined is None:
            return result
        result = joined


def _join_once(algorithm: Algorithm) -> Algorithm | None:
    for outer, inner in zip(algorithm.axes, algorithm.axes[1:], strict=False):
        if value_of(outer.lower) != 0 or value_of(inner.lower) != 0:
            continue
        if outer.upper.depends_on(inner.name) or inner.upper.depends_on(outer.name):
            continue
        joined = _joined(algorithm, outer, inner)
        if joined is not None:
            return joined
    return None


def _joined(algorithm: Algorithm, outer: Axis, inner: Axis) -> Algorithm | None:
    """Put `inner = flat - inner.upper * outer` everywhere; right where `outer` then drops out."""
    flat = Sym(inner.name)
    value: Expression = subtract(flat, multiply(inner.upper, Sym(outer.name)))

    def change(expression: Expression) -> Expression:
        return substitute(expression, {inner.name: value})

    axes = []
    for axis in algorithm.axes:
        if axis is outer:
            continue
        is_inner = axis is inner
        length = multiply(outer.upper, inner.upper)
        axes.append(Axis(inner.name, constant(0), length) if is_inner else axis)
    if any(axis.lower.depends_on(outer.name) or axis.upper.depends_on(outer.name) for axis in axes):
        return None
    changed = replace(algorithm, axes=()).mapped(change)
    if any(expression.depends_on(outer.name) for expression in changed.expressions):
        return None
    return replace(changed, axes=tuple(axes))
