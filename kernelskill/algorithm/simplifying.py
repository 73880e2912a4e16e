"""Simplify a step of a running maximum where it is known whether the maximum grows."""

from __future__ import annotations

from kernelskill.algorithm.expression import Binary, Call, Expression, Num, Select, Sym
from kernelskill.algorithm.lowering.zeros import is_zero
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_float

_MAXIMA = frozenset({"fmaxf", "fmax"})
_KNOWN = {">": False, "<=": True}
"""What comparing a step with the maximum gives where the maximum does not grow."""
_MIRRORED = {"<": ">", ">=": "<="}


def simplified(expression: Expression, step: Expression, maximum: Sym, *, grows: bool = False) -> Expression:
    """Return an expression without comparisons of a step with the maximum, and without zeros that are added.

    What it means where a step is NaN may change; whoever asks must look.
    """
    largest = step if grows else maximum

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Call) and node.function in _MAXIMA and set(node.arguments) == {step, maximum}:
            return largest
        if isinstance(node, Select):
            known = _decided(node.condition, step, maximum)
            return None if known is None else node.first if known != grows else node.second
        if isinstance(node, Binary) and is_float(node.kind):
            return _without_zero(node)
        fused = isinstance(node, Call) and node.function in ("fmaf", "fma", "__fmaf_rn")
        if fused and (is_zero(node.children[0]) or is_zero(node.children[1])):
            return node.children[2]
        return None

    return rebuild(expression, change)


def _decided(condition: Expression, step: Expression, maximum: Sym) -> bool | None:
    if not isinstance(condition, Binary):
        return None
    op = condition.op
    if (condition.left, condition.right) == (maximum, step):
        op = _MIRRORED.get(op, "")
    elif (condition.left, condition.right) != (step, maximum):
        return None
    return _KNOWN.get(op)


def _without_zero(node: Binary) -> Expression | None:
    if node.op == "+":
        if is_zero(node.left):
            return node.right
        return node.left if is_zero(node.right) else None
    if node.op == "-" and is_zero(node.right):
        return node.left
    if node.op == "*":
        for own, other in ((node.left, node.right), (node.right, node.left)):
            if is_zero(own):
                return own
            if isinstance(own, Num) and own.text.rstrip("fF") in ("1", "1.", "1.0"):
                return other
    return None
