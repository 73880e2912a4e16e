"""Turn parallel points that update one element into a loop that accumulates."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm.expression import Expression, Loop, Num, Reduce
from kernelskill.algorithm.integers import conjunction, constant, selected
from kernelskill.algorithm.model import Algorithm, IllegalMove, Store
from kernelskill.algorithm.types import is_float

_LIMITS = {
    ("max", "int"): "-2147483647 - 1",
    ("min", "int"): "2147483647",
    ("max", "unsigned"): "0u",
    ("min", "unsigned"): "4294967295u",
    ("max", "long long"): "-9223372036854775807ll - 1",
    ("min", "long long"): "9223372036854775807ll",
}


def accumulated(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm with the axes along which points update the same element as loops.

    Each remaining point updates its element once, by what the loop accumulated.

    Raises:
        IllegalMove: Not all stores are updates, or every axis leads to another element.
    """
    if any(store.mode == "=" or store.loops for store in algorithm.stores):
        raise IllegalMove("not every store is an atomic update")
    free = [
        axis
        for axis in algorithm.axes
        if not any(store.index.depends_on(axis.name) for store in algorithm.stores)
    ]
    if not free:
        raise IllegalMove("every point updates another element")
    names = [axis.name for axis in free]
    if any(axis.lower.depends_on(*names) or axis.upper.depends_on(*names) for axis in algorithm.axes):
        raise IllegalMove("the length of one axis depends on another")
    loops = tuple(axis.loop for axis in free)
    stores = tuple(_accumulated(store, loops) for store in algorithm.stores)
    kept = tuple(axis for axis in algorithm.axes if axis not in free)
    return replace(algorithm, axes=kept, stores=stores)


def _accumulated(store: Store, loops: tuple[Loop, ...]) -> Store:
    neutral = neutral_value(store.mode, store.kind)
    body = selected(conjunction(store.guard), store.value, neutral) if store.guard else store.value
    return replace(store, value=Reduce(store.mode, loops, body, neutral, store.kind), guard=())


def neutral_value(op: str, kind: str) -> Expression:
    """Return the value that changes nothing when an operation takes it.

    Raises:
        IllegalMove: None is known for the type.
    """
    if is_float(kind):
        if op != "+":
            raise IllegalMove("only sums of floats are accumulated")
        return Num("0.0f" if kind == "float" else "0.0", kind)
    if op in ("+", "|", "^"):
        return constant(0, kind)
    if op == "&":
        return constant(-1, kind)
    if (op, kind) not in _LIMITS:
        raise IllegalMove(f"no neutral value of {op} is known for {kind}")
    return Num(_LIMITS[op, kind], kind)
