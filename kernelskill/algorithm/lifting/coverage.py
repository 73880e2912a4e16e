"""Whether a grid provably reaches as far as a guard lets threads work."""

from __future__ import annotations

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Binary, Call, Cast, Expression, Select
from kernelskill.algorithm.lifting.launch import Binding
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_integer

_BITS = 31


def covers(extent: Expression, needed: Expression, launch: Binding) -> bool:
    """Whether an axis of a launch, `gridDim * blockDim` long, reaches `needed`; proven, not guessed."""
    if reaches(extent, needed):
        return True
    in_host = launch.in_host_terms(extent), launch.in_host_terms(needed)
    return reaches(*in_host)


def reaches(extent: Expression, needed: Expression) -> bool:
    """Whether one value is provably no less than another, both in the same terms; the extent is that of a launch."""
    extent, needed = _unwrapped(_plain(extent)), _plain(needed)
    for least in _least(extent):
        known = integers.value_of(integers.subtract(least, needed))
        if (known is not None and known >= 0) or _is_multiple(least, needed):
            return True
    return False


def _is_multiple(extent: Expression, needed: Expression) -> bool:
    """Whether an extent, which is positive in any launch, is some times what is needed."""
    (first, *more), (second, *others) = (
        list(integers.terms_of(e).items()) or [((), 0)] for e in (extent, needed)
    )
    same = first[0] == second[0] and bool(first[0])
    return same and not more and not others and first[1] >= second[1] > 0


def _plain(expression: Expression) -> Expression:
    """Leave out conversions between integers, as sizes keep their value; `>>` is a division."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Cast) and is_integer(node.kind) and is_integer(node.operand.type):
            return node.operand
        if isinstance(node, Binary) and node.op == ">>":
            bits = integers.value_of(node.right)
            if bits is not None and 0 <= bits < _BITS:
                return Binary("/", node.left, integers.constant(1 << bits), node.kind)
        return None

    return rebuild(expression, change)


def _unwrapped(extent: Expression) -> Expression:
    """Read unsigned sums in a size as numbers: one that wraps makes the grid larger only."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Binary) and node.op in ("+", "-") and is_integer(node.kind):
            return integers.add(node.left, node.right, -1 if node.op == "-" else 1)
        return None

    return rebuild(extent, change)


def _least(extent: Expression) -> list[Expression]:
    """Return values that a product of grid and block is never below (where it is positive at all)."""
    found = [extent]
    for monomial, factor in integers.terms_of(extent).items():
        for atom in monomial:
            if isinstance(atom, Call) and atom.function == "max" and factor > 0:
                for side in atom.arguments:
                    found += _least(_replaced(extent, atom, side))
                return found
            if isinstance(atom, Select):
                both = [_least(_replaced(extent, atom, side)) for side in (atom.first, atom.second)]
                return [value for value in both[0] if value in both[1]]
            if isinstance(atom, Binary) and atom.op == "/" and factor > 0:
                rest = integers.product(other for other in monomial if other is not atom)
                scale = integers.multiply(rest, integers.constant(factor))
                below = _divided(extent, atom, scale)
                if below is not None:
                    found += _least(below)
                    return found
    return found


def _divided(extent: Expression, atom: Binary, scale: Expression) -> Expression | None:
    """Use `(a / b) * b >= a - b + 1`."""
    quotient, rest = integers.exact_division(scale, atom.right)
    if integers.value_of(rest) != 0 or integers.value_of(quotient) != 1:
        return None
    others = integers.subtract(extent, integers.multiply(atom, scale))
    low = integers.add(integers.subtract(atom.left, atom.right), integers.constant(1))
    return integers.add(others, low)


def _replaced(extent: Expression, atom: Expression, value: Expression) -> Expression:
    return rebuild(extent, lambda node: value if node == atom else None)
