"""Say in a few lines, for people, what an algorithm computes."""

from __future__ import annotations

from kernelskill.algorithm.expression import Expression, Fold, Loop, Reduce, reductions
from kernelskill.algorithm.model import Algorithm, Axis, Store
from kernelskill.algorithm.printing import show

_ATOMIC = {"+": "+=", "max": "max=", "min": "min=", "&": "&=", "|": "|=", "^": "^="}


def describe(algorithm: Algorithm) -> str:
    """Return an algorithm as text: its axes, what it accumulates, what it stores, and notes.

    Reductions that occur often are given a name and written once.
    """
    lines = [f"{algorithm.kernel}:"]
    lines += [f"  for every {_axis(axis)}" for axis in algorithm.axes]
    names = _reduction_names(algorithm)
    for node, name in names.items():
        lines.append(f"    {name} = {_shortened(node, names, own=True)}")
    for store in algorithm.stores:
        lines.append(f"    {_store(store, names)}")
    lines += [f"  note: {note}" for note in algorithm.notes]
    return "\n".join(lines)


def _axis(axis: Axis) -> str:
    how = f"  (from {axis.binding.source} {axis.binding.dimension})" if axis.binding is not None else ""
    return f"{_range(axis.loop)}{how.replace(' )', ')')}"


def _range(loop: Loop) -> str:
    return f"{loop.name} in {show(loop.lower)} .. {show(loop.upper)}"


def _reduction_names(algorithm: Algorithm) -> dict[Expression, str]:
    """Return a name for every reduction, inner ones first."""
    given = dict(algorithm.names)
    found: dict[Expression, str] = {}
    taken = {axis.name for axis in algorithm.axes} | {p.name for p in algorithm.parameters}
    for expression in algorithm.expressions:
        for node in reversed(reductions(expression)):
            if node in found:
                continue
            default = node.states[node.index].name if isinstance(node, Fold) else "total"
            base = given.get(node, default)
            name, count = base, 1
            while name in taken:
                count += 1
                name = f"{base}{count}"
            taken.add(name)
            found[node] = name
    return found


def _shortened(expression: Expression, names: dict[Expression, str], *, own: bool = False) -> str:
    """Return the text of an expression with named reductions as their names."""

    def leaf(node: Expression) -> str | None:
        return names.get(node) if not own or node != expression else None

    if own and isinstance(expression, Reduce):
        ranges = ", ".join(_range(loop) for loop in expression.loops)
        start = show(expression.initial, leaf)
        return f"{start} {expression.op} reduce over {ranges} of {show(expression.body, leaf)}"
    if own and isinstance(expression, Fold):
        ranges = ", ".join(_range(loop) for loop in expression.loops)
        steps = ", ".join(
            f"{state.name} = {show(initial, leaf)} then {show(update, leaf)}"
            for state, initial, update in zip(
                expression.states, expression.initials, expression.updates, strict=True
            )
        )
        return f"the last {expression.states[expression.index].name} of a recurrence over {ranges}: {steps}"
    return show(expression, leaf)


def _store(store: Store, names: dict[Expression, str]) -> str:
    operator = "=" if store.mode == "=" else f"(atomic) {_ATOMIC[store.mode]}"
    text = f"{store.buffer}[{_shortened(store.index, names)}] {operator} {_shortened(store.value, names)}"
    if store.loops:
        text += "  for " + ", ".join(_range(loop) for loop in store.loops)
    if store.guard:
        text += "  if " + " and ".join(_shortened(test, names) for test in store.guard)
    return text
