"""Join recurrences over one range that carry a state in common: one loop computes what several did.

What is lifted store by store names, for each, only the states that it needs. Two results of one random number
generator, for example, are two recurrences that both draw its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Fold, Load, walk
from kernelskill.algorithm.model import Algorithm
from kernelskill.algorithm.picks import as_pick
from kernelskill.algorithm.renaming import bound_names, renamed_expression
from kernelskill.algorithm.rewriting import rebuild


def with_joined_folds(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm in which recurrences that share a state are one, as far as nothing new is loaded."""
    whole: dict[Fold, Fold] = {}
    places: dict[Fold, dict[int, int]] = {}
    groups: list[tuple[Fold, list[Fold]]] = []
    for fold in _recurrences(algorithm):
        for number, (joint, members) in enumerate(groups):
            found = _joined(joint, fold)
            if found is not None:
                joint, places[fold] = found
                groups[number] = (joint, [*members, fold])
                break
        else:
            places[fold] = {index: index for index in range(len(fold.states))}
            groups.append((fold, [fold]))
    for joint, members in groups:
        if len(members) > 1:
            whole.update(dict.fromkeys(members, joint))
    if not whole:
        return algorithm

    def change(node: Expression) -> Expression | None:
        key = replace(node, index=0) if isinstance(node, Fold) else None
        if key is None or key not in whole or not isinstance(node, Fold):
            return None
        return replace(whole[key], index=places[key][node.index])

    return algorithm.mapped(lambda expression: rebuild(expression, change))


def _recurrences(algorithm: Algorithm) -> Iterator[Fold]:
    """Yield every recurrence once, by its first state, that depends on nothing but parameters and axes."""
    inner = set(bound_names(algorithm)) - {axis.name for axis in algorithm.axes}
    nodes = (node for expression in algorithm.expressions for node in walk(expression))
    folds = dict.fromkeys(replace(node, index=0) for node in nodes if isinstance(node, Fold))
    for fold in folds:
        if not fold.symbols & inner and as_pick(fold) is None:
            yield fold


def _joined(first: Fold, second: Fold) -> tuple[Fold, dict[int, int]] | None:
    """Return both as one, and where the states of the second one are in it; None where they share no state."""
    other = _over_the_loops_of(first, second)
    if other is None:
        return None
    shared = _shared(first, other)
    own = [index for index in range(len(other.states)) if index not in shared]
    lonely = [index for index in range(len(first.states)) if index not in shared.values()]
    if not shared or any(_loads(first, index) for index in lonely) or any(_loads(other, i) for i in own):
        return None
    names = {other.states[index].name: first.states[place].name for index, place in shared.items()}
    taken = {state.name for state in first.states} | first.symbols | other.symbols
    for index in own:
        name = other.states[index].name
        names[name] = _fresh(name, taken)
        taken.add(names[name])
    joint = replace(
        first,
        states=(*first.states, *(replace(other.states[i], name=names[other.states[i].name]) for i in own)),
        initials=(*first.initials, *(other.initials[i] for i in own)),
        updates=(*first.updates, *(renamed_expression(other.updates[i], names) for i in own)),
    )
    return joint, shared | {index: len(first.states) + place for place, index in enumerate(own)}


def _over_the_loops_of(first: Fold, second: Fold) -> Fold | None:
    """Return the second recurrence with the loop variables of the first one; None where ranges differ."""
    if len(first.loops) != len(second.loops):
        return None
    names = {
        mine.name: theirs.name
        for mine, theirs in zip(second.loops, first.loops, strict=True)
        if mine.name != theirs.name
    }
    clash = {state.name for state in second.states} | second.symbols
    if clash & set(names.values()):
        return None
    fresh = renamed_expression(second, names) if names else second
    same = isinstance(fresh, Fold) and [(x, x.kind) for x in fresh.loops] == [
        (x, x.kind) for x in first.loops
    ]
    return fresh if same and isinstance(fresh, Fold) else None


def _shared(first: Fold, second: Fold) -> dict[int, int]:
    """Return which states of the second recurrence are states of the first one, all by the same steps."""
    pairs: dict[int, int] = {}
    for index, (state, initial) in enumerate(zip(second.states, second.initials, strict=True)):
        alike = [
            place
            for place, (other, start) in enumerate(zip(first.states, first.initials, strict=True))
            if (other.type, start) == (state.type, initial) and place not in pairs.values()
        ]
        named = [place for place in alike if first.states[place].name == state.name]
        if alike:
            pairs[index] = (named or alike)[0]
    # What one pair takes for granted about another must hold: pairs that do not fit go until all do.
    while pairs:
        names = {second.states[i].name: f"\1{first.states[place].name}" for i, place in pairs.items()}
        known = {first.states[place].name: f"\1{first.states[place].name}" for place in pairs.values()}
        fits = {
            index: place
            for index, place in pairs.items()
            if renamed_expression(second.updates[index], names)
            == renamed_expression(first.updates[place], known)
        }
        if fits == pairs:
            return pairs
        pairs = fits
    return pairs


def _loads(fold: Fold, index: int) -> bool:
    """Whether a state reads memory: where the other recurrence runs, that may be out of bounds."""
    parts = (fold.initials[index], fold.updates[index])
    return any(isinstance(node, Load) for part in parts for node in walk(part))


def _fresh(name: str, taken: set[str]) -> str:
    number, fresh = 2, name
    while fresh in taken:
        number, fresh = number + 1, f"{name}_{number}"
    return fresh
