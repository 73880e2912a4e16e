"""Values of steps over elements that are zero."""

from __future__ import annotations

from collections.abc import Sequence

from kernelskill.algorithm.expression import (
    Binary,
    Call,
    Cast,
    Expression,
    Fold,
    Load,
    Num,
    Poly,
    Reduce,
    walk,
)
from kernelskill.algorithm.integers import value_of
from kernelskill.algorithm.lowering.context import Context, StagedTile
from kernelskill.algorithm.lowering.hoisting import Accumulation
from kernelskill.algorithm.types import is_float


def is_zero(expression: Expression) -> bool:
    """Whether a value is a literal zero."""
    if isinstance(expression, Cast):
        return is_zero(expression.operand)
    if value_of(expression) == 0:
        return True
    return isinstance(expression, Num) and expression.text.rstrip("fF") in ("0", "0.", "0.0")


def vanishes(context: Context, reduction: Accumulation, tiles: Sequence[StagedTile]) -> bool:
    """Whether steps over elements filled with zeros add nothing, whatever the other values are."""
    if not isinstance(reduction, Reduce) or reduction.op != "+":
        return False
    zeros = {load for tile in tiles for load in tile.loads}
    body = reduction.body
    if any(isinstance(node, Reduce | Fold) for node in walk(body)):
        return False
    loads = {node for node in walk(body) if isinstance(node, Load)}
    if not loads or not loads <= zeros:
        return False
    return _value_with_zeros(body) == 0.0


def _value_with_zeros(node: Expression) -> float | None:
    """Return the value of an expression whose loads are all zero; None where that is not certain."""
    if isinstance(node, Load):
        return 0.0
    if isinstance(node, Poly):
        known = value_of(node)
        return float(known) if known is not None else None
    if isinstance(node, Num):
        try:
            return float(node.text.rstrip("fFlL"))
        except ValueError:
            return None
    children = [_value_with_zeros(child) for child in node.children]
    if any(child is None for child in children) or not children:
        return None
    known_values = [child for child in children if child is not None]
    if isinstance(node, Binary) and node.op in ("+", "-", "*") and is_float(node.type):
        left, right = known_values
        return {"+": left + right, "-": left - right, "*": left * right}[node.op]
    if isinstance(node, Call) and node.function in ("fabsf", "fabs", "fmaf", "fma", "__fmaf_rn"):
        return (
            known_values[0] * known_values[1] + known_values[2]
            if len(known_values) == 3
            else abs(known_values[0])
        )
    is_conversion = type(node).__name__ in ("Cast", "Unary") and len(known_values) == 1
    return known_values[0] if is_conversion and getattr(node, "op", "-") == "-" else None
