"""In how many bits integers of the emitted text are computed.

A kernel that computes indices in 64 bits has its coordinates in 64 bits, and so what is computed from them. Counters of
loops are declared as the user has them: where a counter or parameter of 32 bits meets another, one is widened first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kernelskill.algorithm.expression import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Cast,
    Expression,
    Load,
    Loop,
    Poly,
    Select,
    Sym,
    Unary,
    walk,
)
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.types import is_wide

IsWide = Callable[[Sym], bool]
"""Whether a name is declared with 64 bits."""


def prints_wide(expression: Expression, is_declared_wide: IsWide) -> bool:
    """Whether the text of an integer certainly has 64 bits in C++, named values of 32 bits counted as narrow."""

    def wide(node: Expression) -> bool:
        return prints_wide(node, is_declared_wide)

    match expression:
        case Sym():
            return is_declared_wide(expression)
        case Cast() | Load():
            return is_wide(expression.kind)
        case Poly():
            return any(wide(atom) for monomial, _ in expression.terms for atom in monomial)
        case Unary():
            return is_wide(expression.kind) and wide(expression.operand)
        case Select():
            return is_wide(expression.type) and (wide(expression.first) or wide(expression.second))
        case Binary():
            if not is_wide(expression.kind) or expression.op in COMPARISONS | LOGICAL:
                return False
            shifts = expression.op in ("<<", ">>")
            return wide(expression.left) or (not shifts and wide(expression.right))
    return False


def counts_in_int(loop: Loop, parameters: Mapping[str, str]) -> bool:
    """Whether a counter is an `int` in the source and need not be more: it goes from one `int` to another by ones.

    Args:
        loop: The loop.
        parameters: The types of the kernel's parameters by name.
    """

    def is_int(expression: Expression) -> bool:
        if expression.type not in ("int", "bool"):
            return False
        if isinstance(expression, Sym):
            return not is_wide(parameters.get(expression.name, "int"))
        return isinstance(expression, Load) or all(map(is_int, expression.children))

    return loop.kind == "int" and is_int(loop.lower) and is_int(loop.upper)


def widest(loop: Loop, others: Iterable[Loop]) -> Loop:
    """Return a loop that counts for others of the same range, too."""
    return replace(loop, kind=next((other.kind for other in others if is_wide(other.kind)), loop.kind))


def must_be_narrowed(expression: Expression, is_coordinate: IsWide, held: Mapping[Expression, str]) -> bool:
    """Whether an operand of 32 bits is printed with 64, where indices have those: it must be narrowed to wrap.

    Args:
        expression: The operand.
        is_coordinate: Whether a symbol is a coordinate or a counter.
        held: What is held in variables, of its own type but for sums.
    """

    def wide(node: Expression) -> bool:
        return must_be_narrowed(node, is_coordinate, held)

    if expression in held and not isinstance(expression, Poly | Sym):
        return False
    match expression:
        case Sym():
            return is_coordinate(expression)
        case Poly():
            products = any(
                len(monomial) > 1 or abs(factor) != 1 for monomial, factor in expression.terms if monomial
            )
            return products or any(wide(atom) for monomial, _ in expression.terms for atom in monomial)
        case Unary():
            return wide(expression.operand)
        case Select():
            return wide(expression.first) or wide(expression.second)
        case Binary():
            return expression.kind != "unsigned" and (wide(expression.left) or wide(expression.right))
    return False


def index_type_of(algorithm: Algorithm) -> str:
    """Return the type that holds every index: 64 bits wherever the user computes indices in 64 bits."""
    for store in algorithm.stores:
        for expression in store.expressions:
            indices = [node.index for node in walk(expression) if isinstance(node, Load)]
            for index in (store.index, *indices):
                if any(is_wide(node.type) for node in walk(index)):
                    return "long long"
    bounds = [bound for axis in algorithm.axes for bound in (axis.lower, axis.upper)]
    return "long long" if any(is_wide(node.type) for bound in bounds for node in walk(bound)) else "int"
