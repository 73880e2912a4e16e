"""Recurrences that pick one step by its value, such as arg-max."""

from __future__ import annotations

from dataclasses import dataclass

from kernelskill.algorithm.expression import Binary, Expression, Fold, Select, Sym

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Pick:
    """What a fold keeps of the step that it picks."""

    value: int
    """State that holds the value compared."""
    step: int
    """State that holds the loop variable of the picked step."""
    op: str
    """A step is picked where its value is `op` the value kept."""


def as_pick(fold: Fold) -> Pick | None:
    """Read a fold as the choice of one step; None where it is something else.

    Every state must change under one comparison of a step's value with the value kept, to something
    that depends on the step only, and one state must keep the loop variable: it decides between equals.
    """
    if len(fold.loops) != 1:
        return None
    names = {state.name for state in fold.states}
    choices = [_choice(state, update) for state, update in zip(fold.states, fold.updates, strict=True)]
    for position, choice in enumerate(choices):
        op = _compared(choice[0], choice[1], fold.states[position]) if choice is not None else ""
        if not op or choice is None:
            continue
        alike = all(c is not None and c[0] == choice[0] and not c[1].depends_on(*names) for c in choices)
        steps = [i for i, c in enumerate(choices) if c is not None and c[1] == Sym(fold.loops[0].name)]
        if alike and steps:
            return Pick(position, steps[0], op)
    return None


def _choice(state: Sym, update: Expression) -> tuple[Expression, Expression] | None:
    """Return the condition under which a state changes, and what it becomes."""
    if isinstance(update, Select) and update.second == state:
        return update.condition, update.first
    return None


def _compared(condition: Expression, fresh: Expression, state: Sym) -> str:
    """Return the operator of `fresh op state`; empty where the condition is another one."""
    if not isinstance(condition, Binary) or condition.op not in _MIRRORED:
        return ""
    if (condition.left, condition.right) == (fresh, state):
        return condition.op
    return _MIRRORED[condition.op] if (condition.left, condition.right) == (state, fresh) else ""
