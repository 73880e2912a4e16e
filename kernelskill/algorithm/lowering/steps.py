"""What one step of a loop does to its accumulators.

Steps that are left out are written as branches, not as values that change nothing: a product taken in under a branch
is fused with its sum as in the user's kernel, and costs nothing where it is left out. What a compiler makes of
`s += c ? a * b : 0` is a product, a selection and a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from kernelskill.algorithm.expression import Expression, Reduce, Select
from kernelskill.algorithm.integers import conjuncts, negated
from kernelskill.algorithm.lifting.arithmetic import zero_of
from kernelskill.algorithm.lifting.recurrences import neutral_for
from kernelskill.algorithm.lowering.context import AxisText, Context
from kernelskill.algorithm.lowering.hoisting import Accumulation
from kernelskill.algorithm.lowering.loop_heads import accumulate
from kernelskill.algorithm.lowering.values import print_values
from kernelskill.algorithm.types import cuda_name, is_float


@dataclass(frozen=True)
class Member:
    """One reduction of a group, its loops renamed to those of the group."""

    original: Accumulation
    renamed: Accumulation
    name: str
    """Name of its accumulator; of the first state of a fold."""
    dims: tuple[AxisText, ...]

    @property
    def subscript(self) -> str:
        """Text that picks the current point's accumulator."""
        return "".join(f"[{text.point}]" for text in self.dims)


def state_name(context: Context, member: Member, number: int) -> str:
    """Return the text of one state of a fold at the current point."""
    assert not isinstance(member.original, Reduce)
    key = f"{member.name}/{number}"
    if key not in context.step_names:
        state = member.original.states[number].name
        context.step_names[key] = member.name if number == 0 else context.names.fresh(state)
    return context.step_names[key] + member.subscript


def body_of(member: Member) -> tuple[Expression, ...]:
    """Return what a step evaluates."""
    reduction = member.renamed
    return (reduction.body,) if isinstance(reduction, Reduce) else reduction.updates


def take_in(context: Context, members: Sequence[Member]) -> None:
    """Write what one step does to accumulators; those that change under the same conditions come together."""
    groups: dict[tuple[Expression, ...], list[tuple[Member, tuple[Expression, ...]]]] = {}
    for member in members:
        conditions: tuple[Expression, ...] = ()
        body = body_of(member)
        if isinstance(member.renamed, Reduce):
            step = masked(member.renamed)
            conditions, body = step.conditions, (step.body,)
        groups.setdefault(conditions, []).append((member, body))
    for conditions, group in groups.items():
        with ExitStack() as stack:
            if conditions:
                tests = " && ".join(
                    context.show(each, 2 if len(conditions) > 1 else 0) for each in conditions
                )
                stack.enter_context(context.out.block(f"if ({tests})"))
            values = print_values(context, [each for _, body in group for each in body])
            context.out.lines(values.declarations)
            texts = iter(values.texts)
            for member, body in group:
                _combine(context, member, [next(texts) for _ in body])


def _combine(context: Context, member: Member, texts: list[str]) -> None:
    reduction = member.renamed
    if isinstance(reduction, Reduce):
        target = member.name + member.subscript
        context.out.line(accumulate(context, reduction.op, reduction.kind, target, texts[0]))
        return
    targets = [state_name(context, member, number) for number in range(len(texts))]
    changed = [(t, text, s) for t, text, s in zip(targets, texts, reduction.states, strict=True) if t != text]
    if len(changed) == 1:
        context.out.line(f"{changed[0][0]} = {changed[0][1]};")
        return
    fresh = []
    for _, text, state in changed:
        fresh.append(context.names.fresh(f"next_{state.name}"))
        context.out.line(f"const {cuda_name(state.type)} {fresh[-1]} = {text};")
    for (target, _, _), name in zip(changed, fresh, strict=True):
        context.out.line(f"{target} = {name};")


@dataclass(frozen=True)
class Masked:
    """What a step takes into its accumulator, and under which conditions."""

    conditions: tuple[Expression, ...]
    body: Expression


def masked(step: Reduce) -> Masked:
    """Return the conditions under which a step changes its accumulator, outer ones first, and what it takes in."""
    conditions: list[Expression] = []
    body = step.body
    while isinstance(body, Select):
        if _changes_nothing(step, body.second):
            conditions += conjuncts(body.condition)
            body = body.first
        elif _changes_nothing(step, body.first):
            conditions += conjuncts(negated(body.condition))
            body = body.second
        else:
            break
    return Masked(tuple(conditions), body)


def _changes_nothing(step: Reduce, value: Expression) -> bool:
    """Whether taking in a value leaves the accumulator as it is, zeros' signs and NaN included."""
    if value == neutral_for(step.op, step.kind, step.initial):
        return True
    return step.op == "+" and is_float(step.kind) and value == zero_of(step.kind, negative=True)
