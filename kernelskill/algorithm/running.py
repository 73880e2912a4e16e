"""Recurrences that keep a running maximum or mean, as reductions in sequence.

An online softmax rescales its sum whenever the maximum grows; Welford's method moves a mean and a sum of
squares along. Both give what two reductions give that need the result of the first: rounding differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from kernelskill.algorithm.expression import Expression, Fold, Loop, reductions, walk
from kernelskill.algorithm.model import Algorithm, Store
from kernelskill.algorithm.picks import as_pick
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.running_maximum import as_rescaled
from kernelskill.algorithm.running_mean import as_running_mean
from kernelskill.algorithm.types import is_float


@dataclass(frozen=True)
class _Form:
    """What a fold is in other words."""

    value: Expression
    inside: Expression
    """The value where it is known that the loop ran."""
    names: tuple[tuple[Expression, str], ...]
    note: str


def without_running(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm with running maxima and means as reductions; other recurrences stay as they are."""
    taken = _names(algorithm)
    loops: dict[Loop, Loop] = {}
    forms: dict[Fold, _Form] = {}
    for expression in algorithm.expressions:
        for fold in reductions(expression):
            if isinstance(fold, Fold) and fold not in forms and as_pick(fold) is None and _is_plain(fold):
                second = loops.setdefault(fold.loops[0], _fresh(fold.loops[0], taken))
                form = _form(fold, second)
                if form is not None:
                    forms[fold] = form
    if not forms:
        return algorithm

    def change(node: Expression) -> Expression | None:
        return forms[node].value if isinstance(node, Fold) and node in forms else None

    stores = tuple(_within_loops(store, forms) for store in algorithm.stores)
    changed = replace(algorithm, stores=stores).mapped(lambda expression: rebuild(expression, change))
    known = {expression for expression, _ in changed.names}
    named = tuple(entry for form in forms.values() for entry in form.names if entry[0] not in known)
    notes = tuple(form.note for form in forms.values())
    return replace(
        changed,
        names=(*changed.names, *dict.fromkeys(named)),
        notes=tuple(dict.fromkeys((*algorithm.notes, *notes))),
    )


def _within_loops(store: Store, forms: Mapping[Fold, _Form]) -> Store:
    """Return a store that says no more about a recurrence over loops that ran if its own loops run."""
    ranges = {(loop.lower, loop.upper) for loop in store.loops}

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Fold) or node not in forms:
            return None
        loop = node.loops[0]
        return forms[node].inside if (loop.lower, loop.upper) in ranges else None

    return replace(store, value=rebuild(store.value, change))


def _is_plain(fold: Fold) -> bool:
    """Whether all states are of one type, float or double, and nothing is computed in another."""
    kind = fold.type
    if len(fold.loops) != 1 or kind not in ("float", "double") or any(s.kind != kind for s in fold.states):
        return False
    names = {state.name for state in fold.states}
    carried = (node for update in fold.updates for node in walk(update) if node.depends_on(*names))
    return all(node.type == kind for node in carried if is_float(node.type))


@lru_cache(maxsize=256)
def _form(fold: Fold, second: Loop) -> _Form | None:
    name = fold.states[fold.index].name
    rescaled = as_rescaled(fold, second)
    if rescaled is not None:
        note = (
            f"{name} is summed against the final maximum instead of rescaling it as the maximum grows:"
            " rows with infinities for which the running form gives NaN may give a number"
        )
        names = ((rescaled.maximum, rescaled.maximum_name), (rescaled.total, name))
        return _Form(rescaled.total, rescaled.total, names, note)
    mean = as_running_mean(fold, second)
    if mean is not None:
        note = f"{name} is computed from the whole sum instead of a running mean; it rounds otherwise"
        return _Form(mean.value, mean.inside, mean.names, note)
    return None


def _names(algorithm: Algorithm) -> set[str]:
    taken = {parameter.name for parameter in algorithm.parameters} | set(algorithm.ranges)
    return taken | set(_states(algorithm))


def _states(algorithm: Algorithm) -> Iterator[str]:
    for expression in algorithm.expressions:
        for fold in reductions(expression):
            if isinstance(fold, Fold):
                yield from (state.name for state in fold.states)


def _fresh(loop: Loop, taken: set[str]) -> Loop:
    """Return the loop under a name that no other has: the second pass is inside nothing of the first."""
    number = 2
    while f"{loop.name}_{number}" in taken:
        number += 1
    return Loop(f"{loop.name}_{number}", loop.lower, loop.upper, loop.kind)
