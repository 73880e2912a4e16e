"""Integer accumulators to which a step adds one of a few constants, chosen by a small value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kernelskill.algorithm.expression import (
    COMPARISONS,
    Binary,
    Cast,
    Expression,
    Poly,
    Select,
    Sym,
    Unary,
    walk,
)
from kernelskill.algorithm.integers import constant, subtract, value_of
from kernelskill.algorithm.rewriting import rebuild, replace_outermost
from kernelskill.algorithm.types import is_integer, is_signed, size_of

MOST_CASES = 8
LARGEST = 1 << 20
"""Of an amount: so that what a word of cases comes to fits 32 bits."""
_WORDS = ("int", "unsigned", "long long", "unsigned long long")

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


@dataclass(frozen=True)
class Accumulator:
    """What a loop does to one variable in every step."""

    name: str
    """Under which `update` reads the variable; empty for one that is not read: `update` is what is added."""
    kind: str
    update: Expression


def case_count(node: Expression) -> int | None:
    """Return how many values an integer can have, zero the least; None where that is not known or many."""
    found: int | None = None
    if isinstance(node, Cast) and is_integer(node.kind):
        return case_count(node.operand) if node.kind != "bool" else None
    if not isinstance(node, Binary) or not is_integer(node.type):
        return None
    left, right = value_of(node.left), value_of(node.right)
    if node.op == "&":
        masks = [mask for mask in (left, right) if mask is not None and mask >= 0]
        found = min(masks) + 1 if masks else None
    elif node.op == "%" and right is not None and right > 0 and _is_never_negative(node.left):
        found = right
    elif node.op == ">>" and right is not None and not is_signed(node.left.type):
        left_over = 8 * size_of(node.left.type) - right
        found = 1 << left_over if 0 < left_over < 32 else None
    return found if found is not None and found <= MOST_CASES else None


def _is_never_negative(node: Expression) -> bool:
    return not is_signed(node.type) or case_count(node) is not None


def choices(expressions: Sequence[Expression]) -> Iterator[Expression]:
    """Yield the small values by which expressions choose, larger expressions first."""
    found = {
        node: None
        for expression in expressions
        for each in walk(expression)
        if isinstance(each, Select) or (isinstance(each, Binary) and each.op in COMPARISONS)
        for node in walk(each.condition if isinstance(each, Select) else each)
        if (case_count(node) or 0) > 1
    }
    yield from sorted(found, key=lambda node: (-node.size, node.key))


def amounts(accumulator: Accumulator, choice: Expression) -> tuple[int, ...] | None:
    """Return what is added in each case; None where that is anything but a constant.

    Sums modulo 2^32 or 2^64, as those of unsigned variables are, come as the smallest of both signs.
    """
    if accumulator.kind not in _WORDS:
        return None
    found = []
    for case in range(case_count(choice) or 0):
        value = constant(case, choice.type)
        decided = replace_outermost(accumulator.update, lambda node, v=value: v if node == choice else None)  # type: ignore[misc]
        amount = _added(rebuild(decided, _folded), accumulator)
        if amount is None or abs(amount) > LARGEST:
            return None
        found.append(amount)
    return tuple(found)


def _folded(node: Expression) -> Expression | None:
    """Return the constant that an operation on constants comes to, in its type; None for anything else."""
    if not isinstance(node, Cast | Binary | Unary) or not is_integer(node.type):
        return None
    known = [value_of(child) for child in node.children]
    values = [value for value in known if value is not None]
    if len(values) < len(known):
        return None
    if node.type == "bool":
        is_negation = isinstance(node, Unary) and node.op == "!"
        simple = is_negation or isinstance(node, Cast)
        return constant(int(bool(values[0]) is not is_negation), "bool") if simple else None
    if isinstance(node, Unary):
        return None
    value = values[0]
    if isinstance(node, Binary):
        operation = _FOLDED.get(node.op)
        # Beyond these nothing depends on how C promotes and shifts.
        if operation is None or len(values) < 2 or not all(0 <= each < 32 for each in values):
            return None
        value = operation(*values)
    every = 1 << 8 * size_of(node.type)
    value %= every
    return constant(value - every if is_signed(node.type) and value >= every // 2 else value, node.type)


def _added(update: Expression, accumulator: Accumulator) -> int | None:
    """Return the constant by which an update exceeds its variable."""
    if not accumulator.name:
        amount = value_of(update)
        return None if amount is None else _nearest(amount, accumulator.kind)
    own = Sym(accumulator.name)
    if update == own:
        return 0
    if isinstance(update, Binary) and update.kind == accumulator.kind and update.op in ("+", "-"):
        left, right = value_of(update.left), value_of(update.right)
        if update.left == own and right is not None:
            return _nearest(right if update.op == "+" else -right, accumulator.kind)
        if update.right == own and left is not None and update.op == "+":
            return _nearest(left, accumulator.kind)
        return None
    return value_of(subtract(update, own)) if isinstance(update, Poly) else None


def _nearest(amount: int, kind: str) -> int:
    """Return the number that is nearest to zero of those that are the same to an unsigned type."""
    if is_signed(kind):
        return amount
    every = 1 << 8 * size_of(kind)
    amount %= every
    return amount - every if amount >= every // 2 else amount
