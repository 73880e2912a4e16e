"""Sums of products in an order in which every product is joined with an addition.

`a * a + b * b + c` is a multiplication, a joined operation and an addition; `c + a * a + b * b` is two joined operations.
"""

from __future__ import annotations

from kernelskill.algorithm.expression import Binary, Expression
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_float


def with_singles_first(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm whose sums of products begin with the one of their terms that is no product, if any.

    Sums of floats are taken in another order.
    """
    return algorithm.mapped(lambda expression: rebuild(expression, _reordered))


def _reordered(node: Expression) -> Expression | None:
    if not isinstance(node, Binary) or node.op != "+" or not is_float(node.kind):
        return None
    terms = _terms(node, node.kind)
    # Only the first product has no sum to join before the second.
    if len(terms) < 3 or not (_is_product(terms[0], node.kind) and _is_product(terms[1], node.kind)):
        return None
    single = next((n for n, term in enumerate(terms) if not _is_product(term, node.kind)), None)
    if single is None:
        return None
    total, *others = terms[single], *terms[:single], *terms[single + 1 :]
    for term in others:
        total = Binary("+", total, term, node.kind)
    return total


def _terms(node: Expression, kind: str) -> list[Expression]:
    """Return the terms of a sum from the left, in one type; what stands in parentheses is one term."""
    terms: list[Expression] = []
    while isinstance(node, Binary) and node.op == "+" and node.kind == kind:
        terms.append(node.right)
        node = node.left
    return [node, *reversed(terms)]


def _is_product(node: Expression, kind: str) -> bool:
    return isinstance(node, Binary) and node.op == "*" and node.kind == kind
