"""Loops round a store as parallel axes: what one thread did in turn, many may do."""

from __future__ import annotations

from dataclasses import replace

from kernelskill.algorithm import integers
from kernelskill.algorithm.expression import Load, Loop, Sym, walk
from kernelskill.algorithm.model import Algorithm, Axis, Store


def with_loops_as_axes(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm with the loops round its only store as axes, as far as that is the same work.

    Turns of such a loop write different elements. What is stored must not be read by other turns, and the range
    must be one and the same for all points; another loop stays what it is. The axis with the largest stride of the
    store comes first.
    """
    if len(algorithm.stores) != 1:
        return algorithm
    (store,) = algorithm.stores
    if store.mode != "=" or _is_read(store):
        return algorithm
    promoted = [loop for loop in store.loops if _is_same_for_all(loop, algorithm)]
    if not promoted:
        return algorithm
    kept = tuple(loop for loop in store.loops if loop not in promoted)
    axes = [*algorithm.axes, *(Axis(loop.name, loop.lower, loop.upper, kind=loop.kind) for loop in promoted)]
    axes.sort(key=lambda axis: integers.stride_order(store.index, axis.name))
    return replace(algorithm, axes=tuple(axes), stores=(replace(store, loops=kept),))


def _is_read(store: Store) -> bool:
    nodes = (node for expression in store.expressions for node in walk(expression))
    return any(isinstance(node, Load) and node.buffer == store.buffer for node in nodes)


def _is_same_for_all(loop: Loop, algorithm: Algorithm) -> bool:
    """Whether the range of a loop depends on nothing but parameters."""
    moving = set(algorithm.ranges)
    nodes = [node for bound in (loop.lower, loop.upper) for node in walk(bound)]
    return not any(
        isinstance(node, Load) or (isinstance(node, Sym) and node.name in moving) for node in nodes
    )
