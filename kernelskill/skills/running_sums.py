"""Launches of one thread that take the running sum of a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Load, Reduce, Sym
from kernelskill.algorithm.lifting import Lifted
from kernelskill.algorithm.model import Store
from kernelskill.skills.scan_points import HostTerms
from kernelskill.skills.transformation import SkillRefused


@dataclass(frozen=True)
class RunningSums:
    """What such a launch leaves."""

    array: str
    """The launcher's pointer to the running sums."""
    includes_own: bool
    """Whether each includes the number at its place."""
    totals: tuple[str, ...]
    """Parameters whose first element gets the sum of all."""


def read_running_sums(lifted: Lifted, sums: str, number: Expression, kind: str) -> RunningSums:
    """Return what a launch does.

    Args:
        lifted: The launch.
        sums: The launcher's pointer to the numbers.
        number: How many there are, as the launcher knows it.
        kind: Of the numbers.

    Raises:
        SkillRefused: It does something else.
    """
    terms, name = HostTerms(lifted), lifted.algorithm.kernel
    refusal = SkillRefused(f"{name} does more, or else, than to take the running sum of {sums}")
    found: list[RunningSums] = []
    totals: list[str] = []
    if lifted.algorithm.axes:
        raise refusal
    for store in lifted.algorithm.stores:
        if store.guard or store.mode != "=" or store.kind != kind:
            raise refusal
        summed = _summed(store, kind, terms, sums)
        if summed is None:
            raise refusal
        if not store.loops:
            if integers.value_of(store.index) != 0 or terms.of(summed) != number:
                raise refusal
            totals.append(store.buffer)
            continue
        loop = store.loops[0]
        if integers.value_of(loop.lower) != 0 or terms.of(loop.upper) != number:
            raise SkillRefused(f"{name} may take another number of sums than there are")
        step = integers.value_of(integers.subtract(summed, loop.symbol))
        if len(store.loops) != 1 or store.index != loop.symbol or step not in (0, 1):
            raise refusal
        found.append(RunningSums(terms.buffer(store.buffer), step == 1, ()))
    if len(found) != 1:
        raise refusal
    return RunningSums(found[0].array, found[0].includes_own, tuple(totals))


def _summed(store: Store, kind: str, terms: HostTerms, sums: str) -> Expression | None:
    """Return how many numbers, from the first one on, a store adds up."""
    value = store.value
    if not isinstance(value, Reduce) or value.op != "+" or value.kind != kind or len(value.loops) != 1:
        return None
    inner, body = value.loops[0], value.body
    is_plain = isinstance(body, Load) and body.index == Sym(inner.name, inner.kind)
    if not is_zero(value.initial) or not isinstance(body, Load) or not is_plain:
        return None
    if terms.buffer(body.buffer) != sums or integers.value_of(inner.lower) != 0:
        return None
    return inner.upper


def is_zero(expression: Expression) -> bool:
    """Whether an expression is the number zero."""
    text = getattr(expression, "text", None)
    return integers.value_of(expression) == 0 or text in ("0.0f", "0.f", "0.0", "0.", "0f")
