"""Conditions without jumps: what is at hand is joined by `&` and `|`."""

from __future__ import annotations

from kernelskill.algorithm.expression import LOGICAL, Binary, Cast, Expression, Num, Poly, Select, Sym, Unary
from kernelskill.algorithm.lowering.context import Context
from kernelskill.algorithm.rewriting import replace_outermost

_CHEAP_OPS = LOGICAL | {"==", "!=", "<", "<=", ">", ">=", "&", "|", "^"}


def without_jumps(context: Context, value: Expression) -> Expression:
    """Return a value whose conditions are evaluated whole, where their right sides are in registers.

    For `a && b` compilers jump over `b`, and the lanes of a warp then part. What reads memory, may divide by
    zero or takes long is left under its condition.
    """

    def change(node: Expression) -> Expression | None:
        if context.leaf(node) is not None:
            return node
        if not (isinstance(node, Binary) and node.op in LOGICAL and _is_at_hand(context, node.right)):
            return None
        if any(side.type != "bool" for side in node.children):
            return None
        sides = without_jumps(context, node.left), without_jumps(context, node.right)
        return Binary("&" if node.op == "&&" else "|", *sides, "bool")

    return replace_outermost(value, change)


def _is_at_hand(context: Context, node: Expression) -> bool:
    """Whether a condition is made of names and constants by comparisons alone."""
    if context.leaf(node) is not None:
        return True
    if isinstance(node, Binary) and node.op not in _CHEAP_OPS:
        return False
    known = isinstance(node, Binary | Unary | Cast | Num | Poly | Select | Sym)
    return known and all(_is_at_hand(context, child) for child in node.children)
