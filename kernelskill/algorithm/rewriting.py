"""Replace nodes and symbols of expressions; integer arithmetic comes out in its one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Expression, Poly, Select, Sym

Change = Callable[[Expression], Expression | None]
"""Returns the replacement of a node, or None to keep it."""


def rebuild(expression: Expression, change: Change) -> Expression:
    """Replace nodes from the leaves up. A node's operands are replaced before it is shown to `change`."""
    done: dict[Expression, Expression] = {}

    def visit(node: Expression) -> Expression:
        if node in done:
            return done[node]
        children = tuple(visit(child) for child in node.children)
        fresh = node if children == node.children else _with_children(node, children)
        changed = change(fresh)
        done[node] = fresh if changed is None else changed
        return done[node]

    return visit(expression)


def replace_outermost(expression: Expression, change: Change) -> Expression:
    """Replace nodes from the root down; what is put in is not looked at again."""
    done: dict[Expression, Expression] = {}

    def visit(node: Expression) -> Expression:
        if node not in done:
            changed = change(node)
            if changed is None:
                children = tuple(visit(child) for child in node.children)
                changed = node if children == node.children else _with_children(node, children)
            done[node] = changed
        return done[node]

    return visit(expression)


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Replace free symbols. Loop variables are unique within an algorithm, so nothing is captured."""
    wanted = {name: value for name, value in values.items() if name in expression.symbols}
    if not wanted:
        return expression

    # From the root down: `i := i - w * j` in `w * j + i` is `i`, in which nothing is replaced again.
    def change(node: Expression) -> Expression | None:
        if node.symbols.isdisjoint(wanted):
            return node
        return wanted[node.name] if isinstance(node, Sym) else None

    return replace_outermost(expression, change)


def _with_children(node: Expression, children: tuple[Expression, ...]) -> Expression:
    match node:
        case Poly():
            return _polynomial(node, children)
        case Binary():
            return integers.rebuilt(replace(node, left=children[0], right=children[1]))
        case Select():
            return integers.selected(*children)
        case _:
            return node.with_children(children)


def _polynomial(node: Poly, children: tuple[Expression, ...]) -> Expression:
    table = dict(zip(node.children, children, strict=True))
    total: Expression = integers.constant(0)
    for monomial, factor in node.terms:
        product: Expression = integers.constant(factor)
        for atom in monomial:
            product = integers.multiply(product, table[atom])
        total = integers.add(total, product)
    return integers.typed(total, node.kind)
