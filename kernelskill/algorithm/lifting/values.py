"""What a name of a kernel stands for during symbolic execution."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelskill.algorithm.expression import Expression
from kernelskill.algorithm.types import size_of


@dataclass(frozen=True)
class Layout:
    """A type of memory elements: a scalar, or several fields of one scalar type (`float4`, a plain struct)."""

    name: str
    kind: str
    """Canonical scalar type of every field."""
    fields: tuple[str, ...] = ()
    """Names of the fields; empty for a scalar."""

    @property
    def width(self) -> int:
        """Scalars in one element."""
        return len(self.fields) or 1

    @property
    def is_scalar(self) -> bool:
        return not self.fields

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return size_of(self.kind) * self.width


def scalar(kind: str) -> Layout:
    """Return the layout of a scalar type."""
    return Layout(kind, kind)


@dataclass(frozen=True)
class Pointer:
    """An address: `offset` counts scalars of the buffer, whatever the pointer's own type."""

    buffer: str
    offset: Expression
    layout: Layout
    rows: tuple[int, ...] = ()
    """Shape of what it points at, where that is an array."""

    @property
    def stride(self) -> int:
        """Scalars from one element to the next."""
        count = self.layout.width
        for extent in self.rows:
            count *= extent
        return count


@dataclass(frozen=True)
class Aggregate:
    """A value with several scalars: a vector or a struct."""

    layout: Layout
    parts: tuple[Expression | None, ...]


@dataclass(frozen=True)
class Array:
    """A local array; cells row by row."""

    layout: Layout
    shape: tuple[int, ...]
    cells: tuple[Expression | None, ...]


@dataclass(frozen=True)
class Dim3:
    """A `dim3` on the host."""

    parts: tuple[Expression, Expression, Expression]


@dataclass(frozen=True)
class Poison:
    """A value that must not be used, with the reason."""

    reason: str


@dataclass(frozen=True)
class MemoryPlace:
    """Elements of a buffer."""

    buffer: str
    index: Expression
    layout: Layout


@dataclass(frozen=True)
class SlotPlace:
    """A variable or one scalar of it that can be assigned to."""

    number: int
    part: int | None = None
    dimensions: tuple[int, ...] = ()
    """Extents of an array that are still to be indexed."""


@dataclass(frozen=True)
class LocalPointer:
    """The address of a variable or of one scalar of it."""

    number: int
    part: int | None
    layout: Layout


@dataclass(frozen=True)
class Struct:
    """A struct that is passed by value, with fields of any kind."""

    name: str
    fields: tuple[tuple[str, Value], ...]

    def field(self, name: str) -> Value | None:
        """Return a field's value; None for an unknown name."""
        return dict(self.fields).get(name)


@dataclass(frozen=True)
class CrossLane:
    """What a shuffle brings from another lane of the warp."""

    source: Expression
    how: str
    distance: int


Value = (
    CrossLane
    | Expression
    | Pointer
    | Aggregate
    | Array
    | Dim3
    | Poison
    | MemoryPlace
    | SlotPlace
    | LocalPointer
    | Struct
)
"""What a variable holds; a place is what a reference refers to."""
Slot = tuple[int, int | None]
"""A variable's number, and which scalar of an aggregate or array it is."""


@dataclass(frozen=True)
class Variable:
    """A declared variable of the kernel, or of a function called."""

    name: str
    layout: Layout
    is_pointer: bool = False
    shape: tuple[int, ...] = ()


Place = SlotPlace | MemoryPlace


def position_of(value: Value | None) -> Expression | None:
    """Return what moves when a variable counts: an integer itself, a pointer's offset."""
    if isinstance(value, Pointer):
        return value.offset
    return value if isinstance(value, Expression) else None


def at_position(value: Value | None, position: Expression) -> Value:
    """Return a counting variable's value at another position."""
    return replace(value, offset=position) if isinstance(value, Pointer) else position


def scalars_of(value: Value | None) -> tuple[Expression | None, ...] | None:
    """Return the scalars of an aggregate or array; None for other values."""
    if isinstance(value, Aggregate):
        return value.parts
    return value.cells if isinstance(value, Array) else None


def with_scalar(value: Aggregate | Array, part: int, scalar_value: Expression | None) -> Aggregate | Array:
    """Return an aggregate or array with one scalar replaced."""
    if isinstance(value, Aggregate):
        return replace(value, parts=(*value.parts[:part], scalar_value, *value.parts[part + 1 :]))
    return replace(value, cells=(*value.cells[:part], scalar_value, *value.cells[part + 1 :]))
