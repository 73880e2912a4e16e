"""Give parameters, axes, loops and states of an algorithm other names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Fold, Load, Loop, Reduce, Sym, walk
from kernelskill.algorithm.model import Algorithm, Axis, Parameter
from kernelskill.algorithm.rewriting import rebuild


def bound_names(algorithm: Algorithm) -> tuple[str, ...]:
    """Return the names of axes, loops and states, each once."""
    found = dict.fromkeys(axis.name for axis in algorithm.axes)
    for store in algorithm.stores:
        found.update(dict.fromkeys(loop.name for loop in store.loops))
        for expression in store.expressions:
            for node in walk(expression):
                if isinstance(node, Reduce | Fold):
                    found.update(dict.fromkeys(loop.name for loop in node.loops))
                if isinstance(node, Fold):
                    found.update(dict.fromkeys(state.name for state in node.states))
    return tuple(found)


def renamed(algorithm: Algorithm, names: Mapping[str, str]) -> Algorithm:
    """Return an algorithm under other names, all given at once.

    Where two parameters get one name, the first one stays.
    """

    def change(expression: Expression) -> Expression:
        return renamed_expression(expression, names)

    changed = algorithm.mapped(change)
    stores = tuple(
        replace(
            store,
            buffer=names.get(store.buffer, store.buffer),
            loops=tuple(_loop(loop, names) for loop in store.loops),
        )
        for store in changed.stores
    )
    axes = tuple(replace(axis, name=names.get(axis.name, axis.name)) for axis in changed.axes)
    axes = tuple(_with_weight(axis, names) for axis in axes)
    parameters: dict[str, Parameter] = {}
    for parameter in algorithm.parameters:
        fresh = renamed_parameter(parameter, names.get(parameter.name, parameter.name))
        parameters.setdefault(fresh.name, fresh)
    return replace(changed, axes=axes, stores=stores, parameters=tuple(parameters.values()))


def renamed_expression(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Return an expression with symbols, buffers, loops and states under other names."""
    # By way of names that nothing has: a sum that becomes a single symbol must not be renamed again.
    passing = {old: f"\0{new}" for old, new in names.items()}
    final = {f"\0{new}": new for new in names.values()}
    return _renamed_once(_renamed_once(expression, passing), final)


def _renamed_once(expression: Expression, names: Mapping[str, str]) -> Expression:
    def change(node: Expression) -> Expression | None:
        match node:
            case Sym():
                return replace(node, name=names[node.name]) if node.name in names else None
            case Load():
                return replace(node, buffer=names[node.buffer]) if node.buffer in names else None
            case Reduce():
                return replace(node, loops=tuple(_loop(loop, names) for loop in node.loops))
            case Fold():
                states = tuple(replace(s, name=names.get(s.name, s.name)) for s in node.states)
                return replace(node, loops=tuple(_loop(loop, names) for loop in node.loops), states=states)
            case _:
                return None

    return rebuild(expression, change)


def renamed_parameter(parameter: Parameter, name: str) -> Parameter:
    """Return a parameter under another name, its declaration too."""
    if name == parameter.name:
        return parameter
    text = re.sub(
        rf"\b{re.escape(parameter.name)}\b(?!.*\b{re.escape(parameter.name)}\b)", name, parameter.text
    )
    return replace(parameter, name=name, text=text)


def _loop(loop: Loop, names: Mapping[str, str]) -> Loop:
    return replace(loop, name=names.get(loop.name, loop.name))


def _with_weight(axis: Axis, names: Mapping[str, str]) -> Axis:
    """Rename what a digit of a flat index is divided by."""
    binding = axis.binding
    if binding is None or binding.weight is None:
        return axis
    return replace(axis, binding=replace(binding, weight=renamed_expression(binding.weight, names)))
