"""Algorithm: what a lifted kernel computes, apart from how it is mapped to the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from kernelskill.algorithm.expression import Expression, Fold, Loop, walk
from kernelskill.algorithm.integers import Ranges
from kernelskill.computed import computed

StoreMode = Literal["=", "+", "max", "min", "&", "|", "^"]


class CannotLift(Exception):
    """A kernel is outside what can be read as an algorithm, with the reason in words for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class IllegalMove(Exception):
    """A move does not apply to a schedule, or its legality cannot be proven."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel."""

    text: str
    """The whole declaration as the user wrote it, template types resolved."""
    name: str
    kind: str
    """Canonical scalar type, of the pointee for pointers."""
    is_pointer: bool
    is_const: bool = False
    """Whether a pointer's elements are const."""
    is_restrict: bool = False
    view: str = ""
    """Declared pointee (`float4`, a struct) where `kind` is the type of its fields: elements count in fields."""
    usual: int | None = field(default=None, compare=False)
    """Value where the user times, if known: it puts choices in order, and nothing relies on it."""


@dataclass(frozen=True)
class Binding:
    """How the user's launch produced an axis; what an identity schedule repeats."""

    dimension: Literal["x", "y", "z", ""]
    """Dimension of grid and block."""
    source: Literal["global", "thread", "block"]
    """`blockIdx * blockDim + threadIdx`, or one of the two indices."""
    strided: bool = False
    """Whether each thread walks along it in strides of all threads of that source."""
    weight: Expression | None = None
    """Where the axis is a digit of a flat index: what the index is divided by."""
    wraps: bool = False
    """Whether a digit repeats: it is the remainder by its length."""


@dataclass(frozen=True)
class Axis:
    """A parallel axis: points along it are independent."""

    name: str
    lower: Expression
    upper: Expression
    binding: Binding | None = None
    kind: str = field(default="int", compare=False)
    """Type of the index in the source."""

    @property
    def loop(self) -> Loop:
        """The axis as a loop."""
        return Loop(self.name, self.lower, self.upper, self.kind)


@dataclass(frozen=True)
class Store:
    """A write by every point of the parallel space (times its own loops)."""

    buffer: str
    index: Expression
    value: Expression
    loops: tuple[Loop, ...] = ()
    """Loops round the store within one point; iterations write different elements."""
    guard: tuple[Expression, ...] = ()
    """All must hold; ranges of axes are not repeated here."""
    mode: StoreMode = "="
    """`=` or what is done atomically to the element."""
    kind: str = "float"
    """Element type of the buffer."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Everything it evaluates, ranges of its loops included."""
        ranges = tuple(bound for loop in self.loops for bound in (loop.lower, loop.upper))
        return (self.index, self.value, *self.guard, *ranges)


@dataclass(frozen=True)
class Algorithm:
    """What one kernel launch computes.

    Loads mean memory as it was when the kernel began; stores happen in their order, all of a point's
    values being computed first where a buffer is both read and written.
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    axes: tuple[Axis, ...]
    """Outermost (largest stride of the first store) first."""
    stores: tuple[Store, ...]
    names: tuple[tuple[Expression, str], ...] = ()
    """What the user called an expression; for readable output only."""
    notes: tuple[str, ...] = field(default=())
    """What lifting changed or assumed, in words for the report."""
    joined: bool = False
    """Whether threads of a block exchange values in the source, and so read before any of them writes.

    That order is not kept: buffers that are written must not overlap those that are read.
    """
    reorders: bool = False
    """Whether lifting took sums of floats in another order: what threads had apart is one sum here."""

    @computed
    def ranges(self) -> Ranges:
        """Ranges of the parallel axes, the stores' loops and all loops inside expressions."""
        found: dict[str, tuple[Expression, Expression]] = {a.name: (a.lower, a.upper) for a in self.axes}
        for store in self.stores:
            loops = list(store.loops)
            for expression in store.expressions:
                loops += [loop for node in walk(expression) for loop in getattr(node, "loops", ())]
            found.update({loop.name: (loop.lower, loop.upper) for loop in loops})
        return found

    @computed
    def states(self) -> frozenset[str]:
        """Names under which recurrences carry values from step to step: known inside of them alone."""
        nodes = (node for expression in self.expressions for node in walk(expression))
        return frozenset(state.name for node in nodes if isinstance(node, Fold) for state in node.states)

    @property
    def expressions(self) -> Iterator[Expression]:
        """Everything that the stores evaluate."""
        for store in self.stores:
            yield from store.expressions

    def axis(self, name: str) -> Axis:
        """Return the parallel axis of that name.

        Raises:
            KeyError: There is none.
        """
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise KeyError(name)

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of that name.

        Raises:
            KeyError: There is none.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)

    def mapped(self, change: Callable[[Expression], Expression]) -> Algorithm:
        """Return the algorithm with every expression replaced, ranges of axes included."""

        def loop(entry: Loop) -> Loop:
            return Loop(entry.name, change(entry.lower), change(entry.upper), entry.kind)

        stores = tuple(
            replace(
                store,
                index=change(store.index),
                value=change(store.value),
                guard=tuple(change(g) for g in store.guard),
                loops=tuple(loop(entry) for entry in store.loops),
            )
            for store in self.stores
        )
        axes = tuple(replace(a, lower=change(a.lower), upper=change(a.upper)) for a in self.axes)
        names = tuple((change(expression), name) for expression, name in self.names)
        return replace(self, axes=axes, stores=stores, names=names)
