"""C text of expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    Select,
    Sym,
    Unary,
)
from kernelskill.algorithm.types import cuda_name

Leaf = Callable[[Expression], str | None]
"""Gives the text of a node, or None to print it as usual."""


@dataclass(frozen=True)
class Widened(Expression):
    """What printing asks a leaf about an integer: whether its text has 32 bits where 64 are computed with."""

    operand: Expression

    @property
    def type(self) -> str:
        return "long long"


COUNTER = "counter"
"""What a leaf says of a `Widened` that is the counter of a loop; it says anything else of other narrow integers."""
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
}
_SELECT, _UNARY, _ATOM = 0, 11, 13
_UNSIGNED_SUFFIXES = {"unsigned": "u", "unsigned long long": "ull"}
_MIXED = frozenset({"|", "^", "&", "<<", ">>", "&&"})


def show(expression: Expression, leaf: Leaf | None = None, context: int = 0) -> str:
    """Return the text of an expression; parentheses where the context binds more tightly."""
    replaced = leaf(expression) if leaf is not None else None
    if replaced is not None:
        return replaced
    text, precedence = _parts(expression, leaf)
    return f"({text})" if precedence < context else text


def _parts(expression: Expression, leaf: Leaf | None) -> tuple[str, int]:
    match expression:
        case Sym():
            return expression.name, _ATOM
        case Num():
            return expression.text, _UNARY if expression.text.startswith("-") else _ATOM
        case Poly():
            return _poly(expression, leaf)
        case Binary():
            return _binary(expression, leaf)
        case Reduce() | Fold():
            return _reduction(expression), _ATOM
    return _simple(expression, leaf)


def _simple(expression: Expression, leaf: Leaf | None) -> tuple[str, int]:
    match expression:
        case Load():
            return f"{expression.buffer}[{show(expression.index, leaf)}]", _ATOM
        case Unary():
            narrowed = _narrowed(expression.operand, expression.type, leaf)
            return f"{expression.op}{narrowed or show(expression.operand, leaf, _UNARY + 1)}", _UNARY
        case Call():
            listed = ", ".join(show(argument, leaf) for argument in expression.arguments)
            return f"{expression.function}({listed})", _ATOM
        case Select():
            sides = show(expression.first, leaf, 1), show(expression.second, leaf)
            return f"{show(expression.condition, leaf, 1)} ? {sides[0]} : {sides[1]}", _SELECT
        case Cast():
            name = cuda_name(expression.kind)
            # `(unsigned(i) + 1)` is right, and parsers that know no types take `unsigned (i)` for a declaration.
            if not name.isidentifier() or name in ("unsigned", "short"):
                return f"({name}){show(expression.operand, leaf, _UNARY + 1)}", _UNARY
            return f"{name}({show(expression.operand, leaf)})", _ATOM
    raise AssertionError(type(expression))


def _binary(node: Binary, leaf: Leaf | None) -> tuple[str, int]:
    precedence = _PRECEDENCE[node.op]
    # Compilers warn about `a & b + c`: sides of the rarer operators are bracketed unless they are atoms.
    inner = _UNARY if node.op in _MIXED and node.op != "&&" else precedence
    left = show(node.left, leaf, inner if node.op != "&&" else 3)
    right = show(node.right, leaf, max(inner, precedence + 1) if node.op != "&&" else 3)
    if node.kind in ("int", "long long") and node.op in ("/", "%"):
        left, right = (
            _factor(side, leaf, signed=True)
            if side.type in _UNSIGNED_SUFFIXES and isinstance(side, Sym)
            else text
            for side, text in ((node.left, left), (node.right, right))
        )
    if node.kind in ("long long", "unsigned long long") and leaf is not None:
        left, right = (
            f"static_cast<long long>({text})"
            if isinstance(side, Sym) and leaf(Widened(side)) == COUNTER
            else text
            for side, text in ((node.left, left), (node.right, right))
        )
    if node.kind in _UNSIGNED_SUFFIXES:
        left, right = _unsigned_sides(node, leaf, left, right)
    return f"{left} {node.op} {right}", precedence


def _unsigned_sides(node: Binary, leaf: Leaf | None, left: str, right: str) -> tuple[str, str]:
    """Return the operands of an operation that wraps so that C++ does it in its unsigned type."""
    sides = [left, right]
    is_shift = node.op in ("<<", ">>")
    operands = (node.left,) if is_shift else (node.left, node.right)
    narrowed = [_narrowed(operand, node.kind, leaf) for operand in operands]
    sides[: len(operands)] = [text or side for text, side in zip(narrowed, sides, strict=False)]
    for position, operand in enumerate(operands):
        if isinstance(operand, Poly) and (not operand.terms or not any(m for m, _ in operand.terms)):
            sides[position] += _UNSIGNED_SUFFIXES[node.kind]
            return sides[0], sides[1]
    if all(narrowed):
        return sides[0], sides[1]
    if not any(operand.type == node.kind and not isinstance(operand, Poly) for operand in operands):
        sides[0] = f"({cuda_name(node.kind)}){show(node.left, leaf, _UNARY + 1)}"
    return sides[0], sides[1]


def _narrowed(operand: Expression, kind: str, leaf: Leaf | None) -> str | None:
    """Return an operand as it is converted to an unsigned type, where it is declared wider than it was."""
    return leaf(Cast(kind, operand)) if leaf is not None and kind == "unsigned" else None


def _poly(node: Poly, leaf: Leaf | None) -> tuple[str, int]:
    if not node.terms:
        return "0", _ATOM
    ordered = sorted(node.terms, key=lambda term: (term[1] < 0, -len(term[0])))
    # The value may be negative: unsigned sizes must not make the whole of it unsigned.
    below_zero = node.kind in ("int", "long long") and any(factor < 0 for _, factor in node.terms)
    text = ""
    for number, (monomial, factor) in enumerate(ordered):
        factors = [_factor(atom, leaf, signed=below_zero) for atom in reversed(monomial)]
        if abs(factor) != 1 or not monomial:
            factors.append(str(abs(factor)))
        if leaf is not None and _is_too_narrow(number, ordered, leaf):
            factors[0] = f"static_cast<long long>({show(monomial[-1], leaf)})"
        term = " * ".join(factors)
        sign = ("-" if not text else " - ") if factor < 0 else ("" if not text else " + ")
        text += sign + term
    if len(ordered) > 1:
        return text, _PRECEDENCE["+"]
    monomial, factor = ordered[0]
    if factor < 0:
        return text, _PRECEDENCE["+"]
    is_product = len(monomial) > 1 or (factor != 1 and bool(monomial))
    return text, _PRECEDENCE["*"] if is_product else _ATOM


def _is_too_narrow(number: int, ordered: list[tuple[tuple[Expression, ...], int]], leaf: Leaf) -> bool:
    """Whether a term would be computed in 32 bits where indices have 64, unless its first factor is widened.

    A sum goes from the left: what is added to something wide need not be.
    """
    monomial, factor = ordered[number]
    if not monomial:
        return False
    if len(monomial) > 1 or abs(factor) != 1:
        return all(leaf(Widened(atom)) is not None for atom in monomial[-2:])
    if number > 0 or len(ordered) == 1 or leaf(Widened(monomial[0])) is None:
        return False
    alone = [m[0] for m, _ in ordered if len(m) == 1]
    return any(leaf(Widened(atom)) == COUNTER for atom in alone)


def _factor(atom: Expression, leaf: Leaf | None, *, signed: bool) -> str:
    wide = {"unsigned": "int", "unsigned long long": "long long"}.get(atom.type)
    if not signed or wide is None:
        return show(atom, leaf, _UNARY)
    text = show(atom, leaf)
    return f"int({text})" if wide == "int" else f"static_cast<long long>({text})"


def _reduction(node: Reduce | Fold) -> str:
    """Return a form for people; emitters lower reductions to loops before they print."""
    ranges = ", ".join(f"{loop.name} in {show(loop.lower)}..{show(loop.upper)}" for loop in node.loops)
    if isinstance(node, Reduce):
        start = show(node.initial)
        lead = "" if start in ("0", "0.0f", "0.f", "0.0") else f"{start} {node.op} "
        return f"{lead}reduce[{node.op}; {ranges}]({show(node.body)})"
    states = ", ".join(
        f"{state.name} = {show(initial)} -> {show(update)}"
        for state, initial, update in zip(node.states, node.initials, node.updates, strict=True)
    )
    return f"fold[{ranges}]({states}).{node.states[node.index].name}"
