"""Give axes, loops and states of a lifted kernel the user's names, each of them once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Expression, Fold, Loop, Num, Reduce, Sym, walk
from kernelskill.algorithm.lifting.draft import Draft
from kernelskill.algorithm.model import Axis
from kernelskill.algorithm.rewriting import rebuild
from kernelskill.algorithm.types import is_wide

_PLAIN = {1: ("i",), 2: ("row", "col"), 3: ("plane", "row", "col")}
_RESERVED = frozenset(
    {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "int", "float", "double", "half", "auto"}
)


@dataclass
class Names:
    """Hands out each name once."""

    taken: set[str] = field(default_factory=set)

    def give(self, wanted: str) -> str:
        """Return a name like the one wanted that nothing else has."""
        base = wanted if wanted.isidentifier() else "i"
        name, count = base, 1
        while name in self.taken or name in _RESERVED:
            count += 1
            name = f"{base}{count}"
        self.taken.add(name)
        return name


def order_axes(draft: Draft) -> None:
    """Put the axis with the largest stride of the first store first."""
    index = draft.stores[0].index
    ordered = sorted(draft.axes, key=lambda name: integers.stride_order(index, name))
    draft.axes = {name: draft.axes[name] for name in ordered}


def rename_all(draft: Draft, taken: set[str]) -> None:
    """Name axes after the user's variables, loops after theirs; no name is used twice."""
    names = Names(set(taken))
    table: dict[str, Sym] = {}
    plain = list(_PLAIN.get(len(draft.axes), ()))
    for position, axis in enumerate(draft.axes.values()):
        entry = next((n for n in draft.named if _is_axis(n.expression, axis.name)), None)
        wide = is_wide(axis.kind) or (entry is not None and is_wide(entry.kind)) or _is_wide(draft, axis.name)
        if entry is not None:
            wanted = entry.name
        elif "@" in axis.name:
            wanted = axis.name.split("@")[0]
        else:
            wanted = plain[position] if plain else f"i{position}"
        table[axis.name] = Sym(names.give(wanted), "long long" if wide else "int")
    for name, kind in _bound_names(draft).items():
        if name not in table:
            table[name] = Sym(names.give(name.split("@")[0]), kind)
    _apply(draft, table)


def _is_axis(expression: Expression, name: str) -> bool:
    return isinstance(expression, Sym) and expression.name == name


def _is_wide(draft: Draft, name: str) -> bool:
    """Whether the user computes with the axis in 64 bits."""
    return any(
        is_wide(node.type)
        for entry in draft.named
        for node in (entry.expression,)
        if node.depends_on(name) and _is_axis(node, name)
    )


def _bound_names(draft: Draft) -> dict[str, str]:
    """Return every loop and state in the order of the stores, with its type."""
    found: dict[str, str] = {}
    for store in draft.stores:
        for loop in store.loops:
            found.setdefault(loop.name, loop.kind)
        for expression in store.expressions:
            for node in walk(expression):
                if isinstance(node, Reduce | Fold):
                    for loop in node.loops:
                        found.setdefault(loop.name, loop.kind)
                if isinstance(node, Fold):
                    for state in node.states:
                        found.setdefault(state.name, state.kind)
    return found


def _apply(draft: Draft, table: dict[str, Sym]) -> None:
    def renamed(name: str) -> str:
        return table[name].name if name in table else name

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Sym):
            return table.get(node.name)
        if isinstance(node, Reduce):
            return replace(node, loops=_renamed_loops(node.loops, table))
        if isinstance(node, Fold):
            states = tuple(table.get(state.name, state) for state in node.states)
            return replace(node, loops=_renamed_loops(node.loops, table), states=states)
        return None

    draft.change(lambda expression: rebuild(expression, change))
    draft.stores = [replace(store, loops=_renamed_loops(store.loops, table)) for store in draft.stores]
    axes: dict[str, Axis] = {}
    for axis in draft.axes.values():
        kind = table[axis.name].kind if axis.name in table else axis.kind
        axes[renamed(axis.name)] = replace(
            axis,
            name=renamed(axis.name),
            lower=rebuild(axis.lower, change),
            upper=rebuild(axis.upper, change),
            kind=kind,
        )
    draft.axes = axes


def _renamed_loops(loops: tuple[Loop, ...], table: dict[str, Sym]) -> tuple[Loop, ...]:
    return tuple(replace(loop, name=table[loop.name].name) if loop.name in table else loop for loop in loops)


def readable_names(draft: Draft) -> tuple[tuple[Expression, str], ...]:
    """Return what the user calls the expressions that are still there, the first name of each."""
    bound = {axis.name for axis in draft.axes.values()} | set(_bound_names(draft))
    used = {node for expression in draft.expressions() for node in walk(expression)}
    found: dict[Expression, str] = {}
    for entry in draft.named:
        node = entry.expression
        is_plain = isinstance(node, Sym | Num) or integers.value_of(node) is not None
        if not is_plain and node in used and node not in found and entry.name not in bound:
            found[node] = entry.name
    return tuple(found.items())
