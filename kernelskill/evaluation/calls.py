"""From a task and the sizes of one case to the calls that a candidate must survive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from kernelskill.backends.base import Call, PointerArgument
from kernelskill.schema.base import Record
from kernelskill.schema.task import Promise, Role, Task

Layout = Literal["plain", "offset", "aliased"]
PAD_BYTE = 0xA5
"""What stands before the data of an offset buffer; must still stand there afterwards."""
COPY_BYTES = 1 << 24


class Extent(Record):
    """Size of one pointer's array in one case."""

    size_bytes: int
    element_bytes: int


class Arrangement(Record):
    """One way to lay out a call's arrays in memory."""

    layout: Layout
    call: Call
    alias: tuple[str, str] | None = None
    """Input and output that share one buffer."""

    def buffer_of(self, pointer: str) -> str:
        """Return the buffer in which a pointer's array lies."""
        return self.call.pointers[pointer].buffer

    def offset_of(self, pointer: str) -> int:
        """Return the byte offset of a pointer's array in its buffer."""
        return self.call.pointers[pointer].offset


Scalars = Mapping[str, int | float | bool | str]


def plain(extents: Mapping[str, Extent], scalars: Scalars) -> Arrangement:
    """Place every array at the start of a buffer of its own."""
    return Arrangement(
        layout="plain",
        call=Call(
            buffers={name: extent.size_bytes for name, extent in extents.items()},
            pointers={name: PointerArgument(buffer=name) for name in extents},
            scalars=dict(scalars),
        ),
    )


def offset(task: Task, extents: Mapping[str, Extent], scalars: Scalars) -> Arrangement | None:
    """Place every array one element past an aligned address; None where alignment is promised."""
    if Promise.ALIGNED16 in task.promise:
        return None
    return Arrangement(
        layout="offset",
        call=Call(
            buffers={name: extent.size_bytes + extent.element_bytes for name, extent in extents.items()},
            pointers={
                name: PointerArgument(buffer=name, offset=extent.element_bytes)
                for name, extent in extents.items()
            },
            scalars=dict(scalars),
        ),
    )


def aliased(extents: Mapping[str, Extent], scalars: Scalars, alias: tuple[str, str]) -> Arrangement | None:
    """Let one input and one output share a buffer; None where their sizes differ in this case."""
    source, target = alias
    if extents[source] != extents[target]:
        return None
    return Arrangement(
        layout="aliased",
        alias=alias,
        call=Call(
            buffers={name: extent.size_bytes for name, extent in extents.items() if name != target},
            pointers={name: PointerArgument(buffer=source if name == target else name) for name in extents},
            scalars=dict(scalars),
        ),
    )


def permitted_aliases(task: Task) -> tuple[tuple[str, str], ...]:
    """Return the (input, output) pairs that the signature lets a caller pass as one buffer.

    Whether the original gives right results that way is another question.
    """
    if Promise.NO_ALIAS in task.promise:
        return ()
    free = [pointer for pointer in task.signature.pointers if not pointer.is_restrict]
    inputs = [p for p in free if p.is_const and task.roles[p.name] is Role.INPUT]
    outputs = [p for p in free if not p.is_const and task.roles[p.name] is Role.OUTPUT]
    return tuple(
        (source.name, target.name)
        for target in outputs
        for source in inputs
        if source.element is not None and source.element == target.element
    )


def contents(
    arrangement: Arrangement, files: Mapping[str, Path], element_bytes: Mapping[str, int], folder: Path
) -> dict[str, Path]:
    """Return the file to load into each buffer, writing padded copies where the layout needs them.

    Args:
        arrangement: The layout.
        files: Pointer name to the raw bytes of its array; pointers without contents are absent.
        element_bytes: Pointer name to the padding of an offset layout, unused elsewhere.
        folder: Where padded copies are kept; an existing copy is taken as it is.
    """
    if arrangement.layout != "offset":
        return {arrangement.buffer_of(name): path for name, path in files.items()}
    return {
        arrangement.buffer_of(name): _padded(path, element_bytes[name], folder / f"{name}.padded")
        for name, path in files.items()
    }


def _padded(source: Path, pad: int, target: Path) -> Path:
    if target.is_file():
        return target
    folder = target.parent
    folder.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(".partial")
    with source.open("rb") as reader, temporary.open("wb") as writer:
        writer.write(bytes([PAD_BYTE]) * pad)
        while part := reader.read(COPY_BYTES):
            writer.write(part)
    temporary.replace(target)
    return target
