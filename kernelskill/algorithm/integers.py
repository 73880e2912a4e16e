"""Integer arithmetic on expressions: polynomials over atoms, exact division, affine coefficients.

What is built here assumes that no operation wraps; arithmetic that may wrap by intention (hashes,
random numbers) must be kept as `Binary` by whoever builds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import gcd

from kernelskill.algorithm.expression import (
    COMPARISONS,
    Binary,
    Expression,
    Monomial,
    Poly,
    Select,
    Sym,
    Unary,
)
from kernelskill.algorithm.types import is_integer, joined

Ranges = Mapping[str, tuple[Expression, Expression]]
"""Symbol -> its half-open range."""


def constant(value: int, kind: str = "int") -> Poly:
    """Return an integer constant."""
    return Poly((((), value),) if value else (), kind)


def value_of(expression: Expression) -> int | None:
    """Return the value of an integer constant; None for anything else."""
    if not isinstance(expression, Poly):
        return None
    if not expression.terms:
        return 0
    (monomial, factor), *rest = expression.terms
    return factor if not rest and not monomial else None


def terms_of(expression: Expression) -> dict[Monomial, int]:
    """Return monomials with their coefficients; an atom is one monomial."""
    return dict(expression.terms) if isinstance(expression, Poly) else {(expression,): 1}


def poly(terms: Mapping[Monomial, int], kind: str = "int") -> Expression:
    """Return the sum of terms in its one form; a single atom with coefficient one is the atom itself."""
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if len(kept) == 1:
        ((monomial, factor),) = kept.items()
        if factor == 1 and len(monomial) == 1:
            return monomial[0]
        return Poly(((monomial, factor),), kind)
    ordered = sorted(kept.items(), key=lambda term: (len(term[0]), [atom.key for atom in term[0]]))
    return Poly(tuple(ordered), kind)


def typed(expression: Expression, kind: str) -> Expression:
    """Return a polynomial under another integer type; other nodes as they are."""
    return replace(expression, kind=kind) if isinstance(expression, Poly) else expression


def add(left: Expression, right: Expression, factor: int = 1) -> Expression:
    """Return `left + factor * right`."""
    total = terms_of(left)
    for monomial, count in terms_of(right).items():
        total[monomial] = total.get(monomial, 0) + factor * count
    return poly(total, joined(left.type, right.type))


def subtract(left: Expression, right: Expression) -> Expression:
    """Return `left - right`."""
    return add(left, right, -1)


def multiply(left: Expression, right: Expression) -> Expression:
    """Return the product."""
    total: dict[Monomial, int] = {}
    for first, a in terms_of(left).items():
        for second, b in terms_of(right).items():
            monomial = tuple(sorted((*first, *second), key=lambda atom: atom.key))
            total[monomial] = total.get(monomial, 0) + a * b
    return poly(total, joined(left.type, right.type))


def product(factors: Iterable[Expression]) -> Expression:
    """Return the product of factors; one for none."""
    result: Expression = constant(1)
    for factor in factors:
        result = multiply(result, factor)
    return result


def exact_division(dividend: Expression, divisor: Expression) -> tuple[Expression, Expression]:
    """Split a dividend into `quotient * divisor + rest`, term by term; the divisor must be one term.

    The quotient is what is divisible exactly; the rest need not be smaller than the divisor.
    """
    parts = terms_of(divisor)
    if len(parts) != 1:
        return constant(0), dividend
    ((atoms, factor),) = parts.items()
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, count in terms_of(dividend).items():
        left = list(monomial)
        divisible = count % factor == 0
        for atom in atoms:
            if atom in left:
                left.remove(atom)
            else:
                divisible = False
        if divisible:
            quotient[tuple(left)] = count // factor
        else:
            rest[monomial] = count
    return poly(quotient, dividend.type), poly(rest, dividend.type)


def coefficient(expression: Expression, name: str) -> Expression | None:
    """Return the factor of a symbol; None where the value depends on it other than as degree one."""
    found: dict[Monomial, int] = {}
    for monomial, factor in terms_of(expression).items():
        own = [atom for atom in monomial if isinstance(atom, Sym) and atom.name == name]
        rest = tuple(atom for atom in monomial if atom not in own)
        if len(own) > 1 or any(atom.depends_on(name) for atom in rest):
            return None
        if own:
            found[rest] = found.get(rest, 0) + factor
    return poly(found, expression.type)


def stride_order(index: Expression, name: str) -> tuple[int, int, int]:
    """Return a key that sorts names by their strides in an index, the largest first, unknown ones last."""
    factor = coefficient(index, name)
    if factor is None:
        return (1, 0, 0)
    terms = terms_of(factor)
    degree = max((len(monomial) for monomial in terms), default=-1)
    return (0, -degree, -max((abs(count) for count in terms.values()), default=0))


def without(expression: Expression, *names: str) -> Expression:
    """Return the terms that depend on none of the symbols."""
    kept = {
        monomial: factor
        for monomial, factor in terms_of(expression).items()
        if not any(atom.depends_on(*names) for atom in monomial)
    }
    return poly(kept, expression.type)


def never_equal(first: Expression, second: Expression, names: Iterable[str]) -> bool:
    """Whether two indices differ whatever values some symbols have in either: a distance that no step bridges."""
    symbols = tuple(names)
    fixed = without(first, *symbols), without(second, *symbols)
    distance = value_of(subtract(*fixed))
    if distance is None:
        return False
    step = 0
    for expression, rest in zip((first, second), fixed, strict=True):
        for factor in terms_of(subtract(expression, rest)).values():
            step = gcd(step, factor)
    return distance % step != 0 if step else distance != 0


def divide(left: Expression, right: Expression) -> Expression:
    """Return C's quotient (towards zero); folded only where it is exact without knowing ranges."""
    a, b = value_of(left), value_of(right)
    if b == 1:
        return left
    if a is not None and b:
        return constant(abs(a) // abs(b) * (1 if a * b >= 0 else -1), joined(left.type, right.type))
    return Binary("/", left, right, joined(left.type, right.type))


def remainder(left: Expression, right: Expression) -> Expression:
    """Return C's remainder (sign of the dividend); folded only where it is exact without knowing ranges."""
    a, b = value_of(left), value_of(right)
    if b == 1:
        return constant(0)
    if a is not None and b:
        return constant(abs(a) % abs(b) * (1 if a >= 0 else -1), joined(left.type, right.type))
    return Binary("%", left, right, joined(left.type, right.type))


def negated(condition: Expression) -> Expression:
    """Return the opposite of a condition; comparisons of integers are turned round."""
    flipped = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
    known = value_of(condition)
    if known is not None:
        return constant(int(not known), "bool")
    if isinstance(condition, Binary):
        if condition.op in flipped and is_integer(condition.left.type) and is_integer(condition.right.type):
            return replace(condition, op=flipped[condition.op])
        if condition.op == "||":
            return Binary("&&", negated(condition.left), negated(condition.right), "bool")
    if isinstance(condition, Unary) and condition.op == "!":
        return condition.operand
    return Unary("!", condition, "bool")


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """Return the conditions that `&&` joins."""
    if isinstance(condition, Binary) and condition.op == "&&":
        return (*conjuncts(condition.left), *conjuncts(condition.right))
    return (condition,)


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """Return the conditions joined by `&&`; true for none."""
    result: Expression | None = None
    for condition in conditions:
        result = condition if result is None else Binary("&&", result, condition, "bool")
    return constant(1, "bool") if result is None else result


def compared(op: str, left: Expression, right: Expression) -> Expression:
    """Return a comparison, decided where both sides are constants or equal integers."""
    if is_integer(left.type) and is_integer(right.type):
        difference = value_of(subtract(left, right))
        if difference is not None:
            outcome = {
                "<": difference < 0,
                "<=": difference <= 0,
                ">": difference > 0,
                ">=": difference >= 0,
                "==": difference == 0,
                "!=": difference != 0,
            }[op]
            return constant(int(outcome), "bool")
    return Binary(op, left, right, "bool")


def rebuilt(node: Binary) -> Expression:
    """Return an operation whose operands changed, simplified again."""
    if node.op in COMPARISONS:
        return compared(node.op, node.left, node.right)
    if node.op == "/" and is_integer(node.type):
        return divide(node.left, node.right)
    if node.op == "%" and is_integer(node.type):
        return remainder(node.left, node.right)
    if node.op in ("&&", "||"):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            known = value_of(side)
            if known is not None:
                decided = bool(known) is (node.op == "||")
                return constant(int(node.op == "||"), "bool") if decided else other
    return node


def selected(condition: Expression, first: Expression, second: Expression) -> Expression:
    """Return a selection, decided where the condition is constant or both sides are equal."""
    known = value_of(condition)
    if known is not None:
        return first if known else second
    return first if first == second else Select(condition, first, second)


def is_below(expression: Expression, bound: Expression, ranges: Ranges) -> bool:
    """Whether `0 <= expression < bound` follows from ranges that start at zero (mixed radix)."""
    value, limit = value_of(expression), value_of(bound)
    if value is not None:
        if limit is not None:
            return 0 <= value < limit
        return False
    if isinstance(expression, Sym):
        known = ranges.get(expression.name)
        if known is None or value_of(known[0]) != 0:
            return False
        high = value_of(known[1])
        return known[1] == bound or (high is not None and limit is not None and high <= limit)
    return _is_mixed_radix(expression, bound, ranges)


def _is_mixed_radix(expression: Expression, bound: Expression, ranges: Ranges) -> bool:
    """Whether an expression is `high * low_size + low` with both digits in range, and bound their product."""
    for monomial, factor in terms_of(bound).items():
        if len(terms_of(bound)) != 1:
            return False
        candidates: list[Expression] = list(dict.fromkeys(monomial))
        candidates += [constant(factor)] if factor > 1 else []
        for size in candidates:
            low_size = exact_division(bound, size)[0]
            if value_of(low_size) in (0, 1):
                continue
            high, low = exact_division(expression, low_size)
            if value_of(high) == 0 or not is_below(high, size, ranges):
                continue
            if value_of(low) == 0 or is_below(low, low_size, ranges):
                return True
    return False


def simplify_division(node: Expression, ranges: Ranges) -> Expression | None:
    """Resolve `(q * d + r) / d` and `% d` where `0 <= r < d` and `q >= 0` follow from ranges; else None."""
    if not isinstance(node, Binary) or node.op not in ("/", "%") or not is_integer(node.type):
        return None
    quotient, rest = exact_division(node.left, node.right)
    if value_of(rest) != 0 and not is_below(rest, node.right, ranges):
        return None
    if not is_non_negative(quotient, ranges):
        return None
    return quotient if node.op == "/" else rest


def is_non_negative(expression: Expression, ranges: Ranges) -> bool:
    """Whether a polynomial is a sum of non-negative terms over non-negative symbols.

    Symbols without a range (sizes) are not assumed to be non-negative, except as factors of one
    another's extents: a range `0 <= x < n` that is not empty makes its n positive.
    """
    positive = {
        atom.name for _, high in ranges.values() for atom in _size_atoms(high) if isinstance(atom, Sym)
    }
    for monomial, factor in terms_of(expression).items():
        if factor < 0:
            return False
        for atom in monomial:
            if not isinstance(atom, Sym):
                return False
            known = ranges.get(atom.name)
            if known is None and atom.name not in positive:
                return False
            if known is not None and (value_of(known[0]) is None or (value_of(known[0]) or 0) < 0):
                return False
    return True


def _size_atoms(extent: Expression) -> Iterable[Expression]:
    """Return the atoms of an extent that is a single symbol: positive wherever the range is not empty."""
    return (extent,) if isinstance(extent, Sym) else ()
