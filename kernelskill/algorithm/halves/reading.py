"""Read an expression over bytes as values in halves of words, with the bounds of every step."""

from __future__ import annotations

from collections.abc import Callable

from kernelskill.algorithm.expression import (
    COMPARISONS,
    LOGICAL,
    Binary,
    Call,
    Cast,
    Expression,
    Load,
    Poly,
    Select,
    Sym,
    Unary,
    loads,
)
from kernelskill.algorithm.halves.model import (
    BYTES,
    Bits,
    Both,
    Chosen,
    Equal,
    Extreme,
    Flag,
    Half,
    Magnitude,
    Not,
    NotNegative,
    Shifted,
    Tap,
    Truth,
    Uniform,
    number,
    require_halves,
    require_signed,
    total,
)
from kernelskill.algorithm.integers import value_of
from kernelskill.algorithm.model import IllegalMove
from kernelskill.algorithm.types import is_integer, is_signed, joined, promoted, size_of
from kernelskill.algorithm.windows import clamp_sides

_MOST_NODES = 4000
_ORDERS = frozenset({"<", "<=", ">", ">="})

TapOf = Callable[[Load], Tap | None]
"""Gives the register of a byte that is held in one."""


class Reader:
    """Reads values of one point. Every method raises `IllegalMove` where halves of words cannot hold a step."""

    def __init__(self, tap_of: TapOf, parameters: frozenset[str] = frozenset()) -> None:
        self._tap_of, self._parameters = tap_of, parameters
        self._values: dict[Expression, Half] = {}

    def value(self, node: Expression) -> Half:
        """Return an integer with its bounds."""
        if node not in self._values:
            if not is_integer(node.type):
                raise IllegalMove(f"values are {node.type}, not integers")
            if node.size > _MOST_NODES:
                raise IllegalMove("the expression is too long")
            found = self._read(node)
            require_halves(found)
            _require_type(found, node.type)
            self._values[node] = found
        return self._values[node]

    def _read(self, node: Expression) -> Half:
        match node:
            case Load():
                return self._load(node)
            case Sym() if self._is_uniform(node) and size_of(node.kind) <= 2:
                return Uniform(node, *_bounds(node.kind))
            case Poly():
                return self._sum(node)
            case Cast():
                return Truth(self.flag(node)) if node.kind == "bool" else self.value(node.operand)
            case Call():
                return self._called(node)
            case Select():
                return self._chosen(node)
            case Binary():
                return self._binary(node)
            case Unary() if node.op == "!":
                return Truth(self.flag(node))
        raise IllegalMove(f"{type(node).__name__.lower()} of unknown bounds")

    def _load(self, node: Load) -> Half:
        if node.kind not in BYTES:
            raise IllegalMove(f"elements of {node.buffer} are {node.kind}, not unsigned bytes")
        found = self._tap_of(node)
        if found is None:
            raise IllegalMove(f"an element of {node.buffer} does not come with the rows of the others")
        return found

    def _sum(self, node: Poly) -> Half:
        parts: list[tuple[Half, int]] = []
        for monomial, factor in node.terms:
            if len(monomial) > 1:
                raise IllegalMove("values are multiplied with one another")
            parts.append((self.value(monomial[0]), factor) if monomial else (number(factor), 1))
        return total(parts)

    def _called(self, node: Call) -> Half:
        name = node.function.removeprefix("std::").removeprefix("::")
        values = [self.value(argument) for argument in node.arguments]
        if name == "abs" and len(values) == 1:
            return _magnitude(values[0])
        if name in ("min", "max") and len(values) == 2:
            first, second = node.arguments
            _require_order(first, second, *values)
            return _extreme(name, *values)
        raise IllegalMove(f"{node.function} is not computed in halves of words")

    def _chosen(self, node: Select) -> Half:
        for op in ("max", "min"):
            sides = clamp_sides(node, op)
            if sides is not None:
                values = [self.value(side) for side in sides]
                _require_order(*sides, *values)
                return _extreme(op, *values)
        nested = _nested_clamp(node)
        if nested is not None:
            op, inner, bound, own = nested
            _require_order(own, bound, self.value(own), self.value(bound))
            return _extreme(op, self.value(inner), self.value(bound))
        first, second = self.value(node.first), self.value(node.second)
        if self._is_magnitude(node.condition, first, second):
            return _magnitude(first)
        if first.low < 0 or second.low < 0:
            require_signed(first)
            require_signed(second)
        flag = self.flag(node.condition)
        if first.low == first.high and second.low == second.high:
            return total([(Truth(flag), first.low - second.low)], second.low)
        return Chosen(flag, first, second)

    def _is_magnitude(self, test: Expression, first: Half, second: Half) -> bool:
        """Whether a choice between a value and its opposite takes what is not negative."""
        if (
            not isinstance(test, Binary)
            or test.op not in _ORDERS
            or total([(first, 1), (second, 1)]) != number(0)
        ):
            return False
        _require_order(test.left, test.right, *self._sides(test))
        left, right = self._sides(test)
        return right == number(0) and left == (second if test.op[0] == "<" else first)

    def _binary(self, node: Binary) -> Half:
        if node.op in COMPARISONS or node.op in LOGICAL:
            return Truth(self.flag(node))
        left, right = self.value(node.left), self.value(node.right)
        known = right.low if right.low == right.high else None
        if node.op in ("+", "-"):
            return total([(left, 1), (right, 1 if node.op == "+" else -1)])
        if node.op in ("&", "|", "^"):
            return _bits(node.op, left, right)
        if known is None:
            what = {"*": "values are multiplied with one another", "<<": "a shift", ">>": "a shift"}
            raise IllegalMove(
                f"{what.get(node.op, 'a division')}{'' if node.op == '*' else ' by what is not constant'}"
            )
        return _by_constant(node.op, left, known)

    def flag(self, node: Expression) -> Flag:
        """Return a condition."""
        if isinstance(node, Binary) and node.op in COMPARISONS:
            return self._compared(node)
        if isinstance(node, Binary) and node.op in LOGICAL | {"&", "|"} and node.type == "bool":
            return Both("&" if node.op in ("&&", "&") else "|", self.flag(node.left), self.flag(node.right))
        if isinstance(node, Unary) and node.op == "!":
            return Not(self.flag(node.operand))
        if isinstance(node, Cast) and node.kind == "bool":
            return self.flag(node.operand)
        value = self.value(node)
        return value.flag if isinstance(value, Truth) else _differ(value, number(0))

    def _is_uniform(self, node: Expression) -> bool:
        """Whether a value is the same for all points: of parameters alone."""
        return bool(node.symbols) and node.symbols <= self._parameters and not loads(node)

    def _sides(self, node: Binary) -> tuple[Half, Half]:
        """Return what is compared; of a parameter it only matters where it lies from the other side's bounds."""
        for own, other in ((node.left, node.right), (node.right, node.left)):
            if (
                self._is_uniform(own)
                and promoted(own.type) == joined(own.type, other.type)
                and size_of(own.type) == 4
            ):
                bounds = self.value(other)
                least = 0 if own.type == "unsigned" else bounds.low - 1
                held = Uniform(own, least, max(least, bounds.high + 1))
                return (held, bounds) if own is node.left else (bounds, held)
        return self.value(node.left), self.value(node.right)

    def _compared(self, node: Binary) -> Flag:
        left, right = self._sides(node)
        _require_order(node.left, node.right, left, right)
        if node.op in ("==", "!="):
            return _differ(left, right) if node.op == "!=" else _same(left, right)
        if node.op in ("<", ">"):
            less = _not_below(left, right) if node.op == "<" else _not_below(right, left)
            return Not(less)
        return _not_below(left, right) if node.op == ">=" else _not_below(right, left)


def _nested_clamp(node: Select) -> tuple[str, Expression, Expression, Expression] | None:
    """Return how a value is kept between two constants where both tests are of the value itself.

    `v < 0 ? 0 : v > 255 ? 255 : v` is `max(min(v, 255), 0)`, since 0 is not above 255.

    Returns:
        `max` or `min`, the inner choice, the bound that is tested first, and the value; None for other choices.
    """
    test = node.condition
    if not isinstance(test, Binary) or test.op not in _ORDERS:
        return None
    for bound, inner, is_taken in ((node.first, node.second, True), (node.second, node.first, False)):
        if bound not in (test.left, test.right):
            continue
        own, is_below = (
            (test.left, test.op[0] == "<") if bound == test.right else (test.right, test.op[0] == ">")
        )
        op = "max" if is_below == is_taken else "min"
        sides = clamp_sides(inner, "min" if op == "max" else "max")
        if sides is None or own not in sides:
            continue
        known, other = value_of(bound), value_of(sides[1] if sides[0] == own else sides[0])
        if known is not None and other is not None and (known <= other if op == "max" else known >= other):
            return op, inner, bound, own
    return None


def _magnitude(value: Half) -> Half:
    require_signed(value)
    require_signed(total([(value, -1)]))
    return Magnitude(value) if value.low < 0 else value


def _not_below(left: Half, right: Half) -> Flag:
    difference = total([(left, 1), (right, -1)])
    require_signed(difference, "a difference")
    return NotNegative(difference)


def _same(left: Half, right: Half) -> Flag:
    if min(left.low, right.low) >= 0:
        require_signed(left)
        require_signed(right)
        return Equal(left, right)
    return Both("&", _not_below(left, right), _not_below(right, left))


def _differ(left: Half, right: Half) -> Flag:
    if right == number(0) and left.low >= 0:
        return _not_below(left, number(1))
    return Not(_same(left, right))


def _extreme(op: str, left: Half, right: Half) -> Half:
    if left.low < 0 or right.low < 0:
        require_signed(left)
        require_signed(right)
    upper, lower = (left, right) if left.low >= right.high else (right, left)
    if upper.low >= lower.high:  # known whatever the bytes are
        return upper if op == "max" else lower
    return Extreme("max" if op == "max" else "min", left, right)


def _bits(op: str, left: Half, right: Half) -> Half:
    if left.low < 0 or right.low < 0:
        raise IllegalMove("bits of values that may be negative")
    return Bits(op, left, right)


def _by_constant(op: str, left: Half, known: int) -> Half:
    """Return a product, shift, quotient or remainder by a constant."""
    if op == "*":
        return total([(left, known)])
    if op == "<<" and 0 <= known < 16:
        return total([(left, 1 << known)])
    is_power = known > 0 and known & (known - 1) == 0
    if op in ("/", "%") and not is_power:
        raise IllegalMove(f"a division by {known}, which is no power of two")
    if left.low < 0:
        raise IllegalMove("a value that may be negative is shifted or divided")
    if op == "%":
        return Bits("&", left, number(known - 1))
    count = known if op == ">>" else known.bit_length() - 1
    if not 0 <= count < 16:
        raise IllegalMove(f"a shift by {count}")
    return Shifted(left, count) if count else left


def _bounds(kind: str) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    bits = 8 * size_of(kind)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed(kind) else (0, (1 << bits) - 1)


def _require_type(value: Half, kind: str) -> None:
    """Refuse a value that its C type would cut off or wrap."""
    if kind == "bool":
        return
    below, above = _bounds(kind)
    if value.low < below or value.high > above:
        raise IllegalMove(f"a value from {value.low} to {value.high} may leave the range of {kind}")


def _require_order(left: Expression, right: Expression, first: Half, second: Half) -> None:
    """Refuse to compare as unsigned what may be negative."""
    if joined(left.type, right.type).startswith("unsigned") and min(first.low, second.low) < 0:
        raise IllegalMove("what may be negative is compared as unsigned")
