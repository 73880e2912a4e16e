"""States of which a loop uses a few bits in the middle: multiplied by a power of two, these bits are the highest.

A linear step modulo 2^32 is one of the multiplied state, too: `(a * s + c) << m` is `a * (s << m) + (c << m)`. What stood
above the bits is lost, so that nothing else may use it. Then a case is taken by one shift, without a mask.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm.expression import Binary, Cast, Expression, Sym
from kernelskill.algorithm.integers import constant, value_of

_EVERY = 1 << 32
_WORD = "unsigned"


@dataclass(frozen=True)
class LowBits:
    """A state whose bits above those of the cases are gone."""

    shift: int
    update: Expression
    choice: Expression
    """The case as the highest bits."""

    def initial(self, value: Expression) -> Expression:
        """Return the first value of the state."""
        return Binary("<<", value, constant(self.shift), _WORD)


def low_bits(state: Sym, update: Expression, choice: Expression) -> LowBits | None:
    """Return how a state is kept of which nothing but its own step and the case is used; None where it can't be."""
    step, place = _linear(update, state), _bits(choice)
    if state.type != _WORD or step is None or place is None:
        return None
    source, lowest, width = place
    taken = _linear(source, state)
    shift = 32 - lowest - width
    if taken is None or not taken[0] or shift <= 0:
        return None
    highest = Binary(">>", _sum(taken, state, shift), constant(32 - width), _WORD)
    return LowBits(shift, _sum(step, state, shift), highest)


def _bits(choice: Expression) -> tuple[Expression, int, int] | None:
    """Return of what a case is some neighbouring bits, the lowest of them, and how many they are."""
    while isinstance(choice, Cast) and choice.kind in ("int", _WORD):
        choice = choice.operand
    if not isinstance(choice, Binary) or choice.op not in ("&", "%"):
        return None
    known, source = value_of(choice.right), choice.left
    cases = 0 if known is None else known + 1 if choice.op == "&" else known
    if cases < 2 or cases & (cases - 1) or source.type != _WORD:
        return None
    lowest = 0
    if isinstance(source, Binary) and source.op == ">>":
        by = value_of(source.right)
        if by is None or source.left.type != _WORD:
            return None
        source, lowest = source.left, by
    return source, lowest, cases.bit_length() - 1


def _linear(node: Expression, state: Sym) -> tuple[int, int] | None:
    """Return factor and summand of a linear function of a state modulo 2^32; None for any other function."""
    if node == state:
        return 1, 0
    known = value_of(node)
    if known is not None:
        return 0, known % _EVERY
    if not isinstance(node, Binary) or node.kind != _WORD or node.op not in ("+", "-", "*"):
        return None
    left, right = _linear(node.left, state), _linear(node.right, state)
    if left is None or right is None:
        return None
    if node.op == "*":
        if left[0] and right[0]:
            return None
        factor, (scale, more) = (left[1], right) if not left[0] else (right[1], left)
        return scale * factor % _EVERY, more * factor % _EVERY
    sign = 1 if node.op == "+" else -1
    return (left[0] + sign * right[0]) % _EVERY, (left[1] + sign * right[1]) % _EVERY


def _sum(linear: tuple[int, int], state: Sym, shift: int) -> Expression:
    """Return a linear function of the multiplied state."""
    factor, summand = linear[0], (linear[1] << shift) % _EVERY
    scaled = state if factor == 1 else Binary("*", state, constant(factor, _WORD), _WORD)
    return scaled if not summand else Binary("+", scaled, constant(summand, _WORD), _WORD)
