"""C arithmetic on expressions: conversions, the usual types, and what may be a polynomial.

Signed integers and indices are polynomials. Unsigned arithmetic that may be meant to wrap (hashes,
random numbers) keeps its operations.
"""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import (
    COMPARISONS,
    Binary,
    Cast,
    Expression,
    Num,
    Poly,
    Sym,
    Unary,
    walk,
)
from kernelskill.algorithm.integers import Ranges
from kernelskill.algorithm.types import is_float, is_integer, is_signed, is_wide, joined, promoted, size_of

_LARGE = 1 << 16
"""A factor or addend of unsigned arithmetic beyond which it is no index."""
RECURRENT = "%"
"""First character of the symbols that stand for what a loop carries."""


def zero_of(kind: str, *, negative: bool = False) -> Expression:
    """Return zero of a type."""
    return number(0, kind) if not negative else Num(f"-{_float_text(0, kind)}", kind)


def number(value: int, kind: str) -> Expression:
    """Return a whole number of a type."""
    if is_integer(kind):
        return integers.constant(value, kind)
    if kind in ("half", "bfloat16"):
        return Cast(kind, Num(f"{value}.0f", "float"))
    return Num(_float_text(value, kind), kind)


def _float_text(value: int, kind: str) -> str:
    return f"{value}.0" if kind == "double" else f"{value}.0f"


def wrapped(value: int, kind: str) -> int:
    """Return an integer as a type holds it."""
    if kind == "bool":
        return int(value != 0)
    bits = 8 * size_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed(kind) and value >> (bits - 1) else value


def is_plain_index(expression: Expression) -> bool:
    """Whether unsigned arithmetic on it is index arithmetic: sizes, indices and small constants only."""
    for monomial, factor in integers.terms_of(expression).items():
        if abs(factor) > _LARGE:
            return False
        for atom in monomial:
            if isinstance(atom, Sym):
                if atom.name.startswith(RECURRENT):
                    return False
            elif not _is_index_atom(atom):
                return False
    return True


def _is_index_atom(atom: Expression) -> bool:
    if isinstance(atom, Binary) and atom.op in ("/", "%"):
        return is_plain_index(atom.left) and is_plain_index(atom.right)
    if isinstance(atom, Cast) and is_integer(atom.kind):
        return is_plain_index(atom.operand)
    return type(atom).__name__ == "Call" and all(is_plain_index(child) for child in atom.children)


def has_negative_terms(expression: Expression) -> bool:
    """Whether a term of a polynomial is subtracted."""
    return any(factor < 0 for factor in integers.terms_of(expression).values())


def convert(value: Expression, kind: str) -> Expression:
    """Return a value converted to a type; conversions that cannot change an index are left out."""
    source = value.type
    if source == kind:
        return value
    if is_integer(source) and is_integer(kind):
        return _integer_conversion(value, kind)
    known = integers.value_of(value) if is_integer(source) else None
    if known is not None and is_float(kind):
        return number(known, kind)
    if isinstance(value, Cast) and value.operand.type == kind and _holds(value.kind, kind):
        return value.operand
    if kind == "bool":
        return Binary("!=", value, zero_of(source), "bool")
    if is_integer(source) and not is_signed(source):
        value = unsigned_value(value, source)
    return Cast(kind, value)


def _holds(wide: str, narrow: str) -> bool:
    """Whether one floating-point type holds every value of another."""
    return is_float(wide) and is_float(narrow) and size_of(wide) > size_of(narrow)


def _integer_conversion(value: Expression, kind: str) -> Expression:
    source, known = value.type, integers.value_of(value)
    if known is not None:
        return integers.constant(wrapped(known, kind), kind)
    if kind == "bool":
        return Binary("!=", value, integers.constant(0, source), "bool")
    if size_of(kind) < 4:
        return Cast(kind, value)
    if isinstance(value, Sym | Poly):
        to_unsigned = not is_signed(kind) and is_signed(source)
        if to_unsigned and not is_plain_index(value):
            return Cast(kind, value)
        narrower = size_of(kind) < size_of(source)
        if narrower and not is_plain_index(value):
            return Cast(kind, value)
        return retagged(value, kind)
    is_promotion = size_of(source) < 4 and source != "bool" and kind == "int"
    is_quotient = isinstance(value, Binary) and value.op in ("/", "%") and _is_index_atom(value)
    if is_quotient and is_wide(kind) and not is_wide(source):
        # The value is the same, but what is multiplied with it has 64 bits from here on.
        return Poly((((value,), 1),), kind)
    return value if is_promotion or is_quotient else Cast(kind, value)


def retagged(value: Expression, kind: str) -> Expression:
    """Return an index under another integer type of the same value."""
    if isinstance(value, Sym):
        return replace(value, kind=kind)
    return integers.typed(value, kind)


def condition(value: Expression) -> Expression:
    """Return a value as a truth value."""
    if value.type == "bool":
        return value
    known = integers.value_of(value) if is_integer(value.type) else None
    if known is not None:
        return integers.constant(int(known != 0), "bool")
    return Binary("!=", value, zero_of(value.type), "bool")


def binary(op: str, left: Expression, right: Expression, ranges: Ranges) -> Expression:
    """Return a binary operation of C on scalars."""
    if op in ("&&", "||"):
        node = Binary(op, condition(left), condition(right), "bool")
        return integers.rebuilt(node)
    kind = joined(left.type, right.type)
    if op in COMPARISONS:
        return _comparison(op, left, right, kind)
    if op in ("<<", ">>"):
        return _shift(op, left, right, ranges)
    if not is_integer(kind):
        return Binary(op, convert(left, kind), convert(right, kind), kind)
    left, right = _promoted(left), _promoted(right)
    if op in ("+", "-", "*"):
        return _ring(op, left, right, kind)
    if op in ("/", "%"):
        return _division(op, left, right, kind, ranges)
    return _bitwise(op, left, right, kind, ranges)


def _promoted(value: Expression) -> Expression:
    return convert(value, "int") if value.type == "bool" else value


def _ring(op: str, left: Expression, right: Expression, kind: str) -> Expression:
    if is_signed(kind) or (is_plain_index(left) and is_plain_index(right)):
        factor = -1 if op == "-" else 1
        result = integers.multiply(left, right) if op == "*" else integers.add(left, right, factor)
        if is_signed(kind) or is_plain_index(result):
            known = integers.value_of(result)
            if known is not None:
                return integers.constant(wrapped(known, kind), kind)
            return retagged(result, kind)
    return Binary(op, left, right, kind)


def _division(op: str, left: Expression, right: Expression, kind: str, ranges: Ranges) -> Expression:
    if not is_signed(kind):
        left, right = unsigned_value(left, kind), unsigned_value(right, kind)
    node = integers.divide(left, right) if op == "/" else integers.remainder(left, right)
    if isinstance(node, Binary):
        node = replace(node, kind=kind)
        exact = integers.simplify_division(node, ranges)
        if exact is not None:
            return exact
        quotient, rest = integers.exact_division(left, right)
        if integers.value_of(rest) == 0:
            return quotient if op == "/" else integers.constant(0, kind)
    return node


def _shift(op: str, left: Expression, right: Expression, ranges: Ranges) -> Expression:
    kind = promoted(left.type)
    left, bits = _promoted(left), integers.value_of(right)
    value = integers.value_of(left)
    if bits is not None and 0 <= bits < 64:
        if value is not None:
            return integers.constant(wrapped(value << bits if op == "<<" else value >> bits, kind), kind)
        if op == "<<" and (is_signed(kind) or is_plain_index(left)) and bits < 31:
            return _ring("*", left, integers.constant(1 << bits, kind), kind)
        if op == ">>" and is_known_non_negative(left, ranges):
            return _division("/", left, integers.constant(1 << bits, kind), kind, ranges)
    return Binary(op, left, right, kind)


def is_known_non_negative(value: Expression, ranges: Ranges) -> bool:
    """Whether an index is not negative, as its type or the ranges of its symbols say."""
    if not is_plain_index(value) or has_negative_terms(value):
        return False
    return not is_signed(value.type) or integers.is_non_negative(value, ranges)


def _bitwise(op: str, left: Expression, right: Expression, kind: str, ranges: Ranges) -> Expression:
    a, b = integers.value_of(left), integers.value_of(right)
    if a is not None and b is not None:
        value = {"&": a & b, "|": a | b, "^": a ^ b}[op]
        return integers.constant(wrapped(value, kind), kind)
    if op == "&":
        for side, mask in ((left, b), (right, a)):
            low_bits = mask is not None and mask > 0 and mask & (mask + 1) == 0
            if mask is not None and low_bits and is_known_non_negative(side, ranges):
                return _division("%", side, integers.constant(mask + 1, kind), kind, ranges)
    return Binary(op, left, right, kind)


def _comparison(op: str, left: Expression, right: Expression, kind: str) -> Expression:
    if not is_integer(kind):
        return Binary(op, convert(left, kind), convert(right, kind), "bool")
    left, right = _promoted(left), _promoted(right)
    if not is_signed(kind):
        left, right = unsigned_value(left, kind), unsigned_value(right, kind)
    return integers.compared(op, left, right)


def unsigned_value(value: Expression, kind: str) -> Expression:
    """Return an integer as an operand of an unsigned comparison or division, where `n - 1` may wrap."""
    known = integers.value_of(value)
    if known is not None:
        return integers.constant(wrapped(known, kind), kind)
    if not has_negative_terms(value):
        is_safe = not is_integer(value.type) or not is_signed(value.type) or is_plain_index(value)
        return value if is_safe else Cast(kind, value)
    if is_signed(value.type):
        return Cast(kind, value)
    terms = integers.terms_of(value)
    positive = integers.poly({m: f for m, f in terms.items() if f > 0}, value.type)
    negative = integers.poly({m: -f for m, f in terms.items() if f < 0}, value.type)
    return Binary("-", positive, negative, value.type)


def negative(value: Expression, ranges: Ranges) -> Expression:
    """Return `-x`."""
    if is_integer(value.type):
        return binary("-", integers.constant(0, promoted(value.type)), value, ranges)
    if isinstance(value, Num):
        text = value.text[1:] if value.text.startswith("-") else f"-{value.text}"
        return Num(text, value.kind)
    return Unary("-", value, value.type)


def recurrent_symbols(expression: Expression) -> frozenset[str]:
    """Return the free symbols that stand for what a loop carries."""
    return frozenset(name for name in expression.symbols if name.startswith(RECURRENT))


def contains(expression: Expression, node: Expression) -> bool:
    """Whether a node occurs inside an expression."""
    return any(entry == node for entry in walk(expression))
